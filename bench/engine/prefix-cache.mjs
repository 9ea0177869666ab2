// Settings -> time to the first token of two requests that begin with the same 2,000 tokens: the first, then the second.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { timeToFirstTokens } from './first-tokens.mjs';

const { model, threads, rounds, prefixTokens = 2000 } = settingsOfProcess();
const contextSize = Math.ceil((prefixTokens + 128) / 256) * 256;
const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize,
  maxSequences: 2,
});

const firstMs = [];
const secondMs = [];
await timeToFirstTokens(runtime, wordPrompt(16, 0)); // warms up
for (let round = 0; round < rounds; round++) {
  const prefix = wordPrompt(prefixTokens, 1 + round);
  firstMs.push(await timeToFirstTokens(runtime, `${prefix} first`));
  secondMs.push(await timeToFirstTokens(runtime, `${prefix} second`));
}
await runtime.close();
report({ firstMs, secondMs, prefixTokens });
