// Settings -> when bare llama_decode was through with each token. `bare` holds the program's own settings: kv_unified, flash_attn ...
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { buildBare } from '../bare/build.mjs';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { sayReady } from '../lib/turns.mjs';

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
const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
await lines.next(); // the prompts are computed
sayReady();
const { value } = await lines.next();
const { stepEndsMs } = JSON.parse(value);
await once(child, 'exit');
report({ timesMs: Array(sequences).fill(stepEndsMs) });
