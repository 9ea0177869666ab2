// Settings -> milliseconds of a request for many choices over one prompt, from the call to the last token.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { timeToFirstTokens } from './first-tokens.mjs';

const { model, threads, choices, promptTokens, outputTokens } = settingsOfProcess();
const contextSize = Math.ceil((promptTokens + outputTokens) / 256) * 256;
const runtime = await createRuntime({ model, gpu: false, threads, contextSize, maxSequences: choices });

await timeToFirstTokens(runtime, 'Hello'); // loads the model
const start = performance.now();
await runtime.createCompletion({
  messages: [{ role: 'user', content: wordPrompt(promptTokens, 1) }],
  n: choices,
  max_completion_tokens: outputTokens,
  ignore_eos: true,
  temperature: 0.8,
  seed: 1,
  logprobs: true,
});
const ms = performance.now() - start;
await runtime.close();
report({ ms });
