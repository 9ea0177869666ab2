// Settings -> time to the first token of all choices on a 512-token prompt, for n = 1 and n = 16.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { timeToFirstTokens } from './first-tokens.mjs';

const { model, threads, rounds, promptTokens = 512, choices = 16 } = settingsOfProcess();
const contextSize = Math.ceil((promptTokens + 64) / 256) * 256;
const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize,
  maxSequences: choices,
});

const oneMs = [];
const manyMs = [];
await timeToFirstTokens(runtime, wordPrompt(promptTokens, 0)); // warms up
for (let round = 0; round < rounds; round++) {
  oneMs.push(await timeToFirstTokens(runtime, wordPrompt(promptTokens, 1 + 2 * round)));
  manyMs.push(await timeToFirstTokens(runtime, wordPrompt(promptTokens, 2 + 2 * round), choices));
}
await runtime.close();
report({ oneMs, manyMs, choices, promptTokens });
