// Settings -> time of a prompt without and with scores of its tokens, in turns.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, threads, rounds, promptTokens = 2000 } = settingsOfProcess();
const contextSize = Math.ceil((promptTokens + 64) / 256) * 256;
const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize,
  maxSequences: 1,
  prefixCache: false,
});

async function time(length, index, fields) {
  const messages = [{ role: 'user', content: wordPrompt(length, index) }];
  const startMs = performance.now();
  const answer = await runtime.createCompletion({ messages, max_completion_tokens: 1, ...fields });
  const ms = performance.now() - startMs;
  const scores = answer.prompt_logprobs?.length ?? 0;
  if (fields.prompt_logprobs !== undefined && scores !== answer.usage.prompt_tokens)
    throw new Error(`${scores} scores came for ${answer.usage.prompt_tokens} tokens`);
  return ms;
}

await time(32, 0, { prompt_logprobs: 1 }); // warms up
const plainMs = [];
const scoredMs = [];
for (let round = 0; round < rounds; round++) {
  plainMs.push(await time(promptTokens, 1 + round, {}));
  scoredMs.push(await time(promptTokens, 1 + round, { prompt_logprobs: 1 }));
}
await runtime.close();
report({ plainMs, scoredMs, promptTokens });
