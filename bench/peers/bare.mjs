// Settings -> tokens per second of bare llama_decode. `bare` holds the program's own settings: kv_unified, flash_attn ...
import { execFileSync } from 'node:child_process';
import { buildBare } from '../bare/build.mjs';
import { report, settingsOfProcess } from '../measure.mjs';

const { model, sequences, promptTokens, outputTokens, threads, bare = {} } = settingsOfProcess();
const { program, libraries } = await buildBare();
const words = Object.entries({
  libraries,
  model,
  sequences,
  prompt: promptTokens,
  steps: outputTokens,
  threads,
  ...bare,
}).map(([key, value]) => `${key}=${value}`);
const figures = JSON.parse(execFileSync(program, words, { encoding: 'utf8' }));
report({ ...figures, typical: (1000 * sequences) / figures.medianStepMs });
