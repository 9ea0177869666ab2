// Settings -> when the tokens of many sequences came, with a JSON Schema or without. Greedy, so that rounds agree.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { sayReady } from '../lib/turns.mjs';

const { model, threads, sequences, outputTokens, variant } = settingsOfProcess();
const PROMPT_TOKENS = 32;

/** A document under it goes on for longer than any run: keys and punctuation are forced, texts and numbers are not. */
const item = {
  type: 'object',
  properties: {
    id: { type: 'integer', minimum: 0 },
    title: { type: 'string', minLength: 10, maxLength: 80 },
    kind: { enum: ['book', 'film', 'song', 'play'] },
    tags: { type: 'array', items: { type: 'string', minLength: 3 }, minItems: 2, maxItems: 4 },
    rating: { type: 'number', minimum: 0, maximum: 10 },
  },
  required: ['id', 'title', 'kind', 'tags', 'rating'],
  additionalProperties: false,
};
const json = { type: 'array', items: item, minItems: 10000 };
const VARIANTS = {
  free: {},
  schema: { structured_outputs: { json } },
  // Log-probabilities make every token a sampled one: what the masks alone cost.
  sampled: { structured_outputs: { json }, logprobs: true },
};

const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize: Math.ceil((PROMPT_TOKENS + outputTokens + 64) / 256) * 256,
  maxSequences: sequences,
});
const clock = new TokenClock(sequences, sayReady);

async function generate(index) {
  const stream = await runtime.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(PROMPT_TOKENS, index) }],
    max_completion_tokens: outputTokens,
    ignore_eos: true,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
    ...VARIANTS[variant],
  });
  for await (const { usage } of stream)
    while (clock.count(index) < (usage?.completion_tokens ?? 0)) clock.tick(index);
  if (clock.count(index) !== outputTokens)
    throw new Error(`${clock.count(index)} tokens came, ${outputTokens} were asked for`);
}

await Promise.all(Array.from({ length: sequences }, (_, index) => generate(index)));
await runtime.close();
report({ timesMs: clock.timesMs });
