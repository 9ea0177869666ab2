// Settings -> when the tokens came of this library: streaming completions with the whole sampler and log-probabilities.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { sayReady } from '../lib/turns.mjs';

const {
  model,
  warmUp,
  sequences,
  promptTokens,
  outputTokens,
  threads,
  isDeep = false,
  runtime: options = {},
} = settingsOfProcess();
/** Tokens that the template of the benchmark's model adds to a turn. */
const TEMPLATE_TOKENS = 8;
const contextSize = Math.ceil((promptTokens + outputTokens) / 256) * 256;

/** Reads an answer of so many tokens to a prompt of so many. */
async function generate(runtime, index, promptTokens, tokens, onToken) {
  const stream = await runtime.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(promptTokens - TEMPLATE_TOKENS, index) }],
    max_completion_tokens: tokens,
    ignore_eos: true,
    temperature: 0.8,
    top_k: 40,
    top_p: 0.95,
    min_p: 0.05,
    repetition_penalty: 1.1,
    frequency_penalty: 0.1,
    seed: 1 + index,
    logprobs: true,
    top_logprobs: 5,
    stream: true,
  });
  let count = 0;
  for await (const chunk of stream)
    for (const choice of chunk.choices)
      for (const _token of choice.logprobs?.content ?? []) {
        count += 1;
        onToken();
      }
  if (count !== tokens) throw new Error(`${count} tokens came, ${tokens} were asked for`);
}

if (warmUp) {
  const runtime = await createRuntime({ model: warmUp.model, gpu: false, threads: 1 });
  for (let index = 0; index < warmUp.answers; index++)
    await generate(runtime, index, warmUp.promptTokens ?? promptTokens, warmUp.tokens, () => {});
  await runtime.close();
}
const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize,
  maxSequences: sequences,
  kvTokens: sequences * contextSize,
  ...options,
});
// Long prompts come into the cache first, one by one, so that no answer begins while others' prompts are computed.
for (let index = 0; isDeep && index < sequences; index++)
  await generate(runtime, index, promptTokens, 1, () => {});
const clock = new TokenClock(sequences, sayReady);
await Promise.all(
  Array.from({ length: sequences }, (_, index) =>
    generate(runtime, index, promptTokens, outputTokens, () => clock.tick(index)),
  ),
);
await runtime.close();
report({ timesMs: clock.timesMs });
