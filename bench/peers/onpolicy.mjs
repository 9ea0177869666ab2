// Settings -> tokens per second of this library: streaming completions with the whole sampler and log-probabilities.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess, TokenClock } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const { model, sequences, promptTokens, outputTokens, threads, runtime: options = {} } = settingsOfProcess();
/** Of a turn in the template of the benchmark's model. */
const TEMPLATE_TOKENS = 8;
const contextSize = Math.ceil((promptTokens + outputTokens) / 256) * 256;

const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize,
  maxSequences: sequences,
  ...options,
});

const clock = new TokenClock(sequences);

async function generate(index) {
  const stream = await runtime.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(promptTokens - TEMPLATE_TOKENS, index) }],
    max_completion_tokens: outputTokens,
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
  for await (const chunk of stream)
    for (const choice of chunk.choices)
      for (const _token of choice.logprobs?.content ?? []) clock.tick(index);
  if (clock.count(index) !== outputTokens)
    throw new Error(`${clock.count(index)} tokens came, ${outputTokens} were asked for`);
}

await Promise.all(Array.from({ length: sequences }, (_, index) => generate(index)));
await runtime.close();
report({ ...clock.figures(), peakMb: process.resourceUsage().maxRSS / 1024 });
