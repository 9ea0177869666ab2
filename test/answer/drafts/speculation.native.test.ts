/** Drafts in answers of the embedded model: what they save, and what keeps them away. */
import { describe, expect, it } from 'vitest';
import type { ChatCompletion } from '../../../src/protocol/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { measureNoSteps } from '../../fakes/step-costs.ts';
import { type Fields, openRuntime, PARIS, PARIS_ANSWER, request, STORY } from '../asking.ts';

measureNoSteps();
const { ask, runtime, stream } = openRuntime();
const NEVER_SEEN: Fields = { cache_salt: 'of one test' };

/** Steps that an answer took, and what was drafted for it. */
async function measure(question: string, given: Fields) {
  const fields: Fields = { speculation: 'auto', ...given };
  const before = runtime().stats();
  const answer = await ask(question, fields);
  const after = runtime().stats();
  const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } =
    answer.usage.completion_tokens_details!;
  expect(after.acceptedTokens - before.acceptedTokens).toBe(accepted);
  expect(after.draftedTokens - before.draftedTokens).toBe(accepted + rejected);
  if (!fields.use_beam_search)
    expect(after.generatedTokens - before.generatedTokens).toBe(answer.usage.completion_tokens);
  return {
    answer,
    accepted,
    rejected,
    steps: after.steps - before.steps,
    message: answer.choices[0]!.message,
  };
}

const prediction = (content: string) => ({ prediction: { type: 'content' as const, content } });

describe('speculation', () => {
  it('makes an answer that is predicted take fewer steps', async () => {
    const plain = await measure(STORY, { speculation: false });
    const story = plain.message.content!;
    const right = await measure(STORY, { ...NEVER_SEEN, ...prediction(story) });
    const changed = story.replace(/\w+(?=\W*$)/, 'cabbage');
    const nearly = await measure(STORY, { cache_salt: 'b', ...prediction(changed) });
    const parts = { type: 'content' as const, content: [{ type: 'text' as const, text: story }] };
    const asParts = await measure(STORY, { cache_salt: 'c', prediction: parts });
    for (const { message } of [right, nearly, asParts]) expect(message).toEqual(plain.message);
    expect(right.steps).toBeLessThan(plain.steps / 2);
    expect(right.accepted).toBeGreaterThan(right.answer.usage.completion_tokens / 2);
    expect(asParts.accepted).toBeGreaterThan(10);
    expect(nearly.rejected).toBeGreaterThan(0);
    expect([plain.accepted, plain.rejected]).toEqual([0, 0]);
  });

  it('checks no drafts with false', async () => {
    const { accepted, rejected } = await measure(PARIS, { speculation: false, ...prediction(PARIS_ANSWER) });
    expect([accepted, rejected]).toEqual([0, 0]);
  });

  it('drafts what stood before, also under a grammar', async () => {
    const text = Array.from({ length: 12 }, (_, i) => `the ${i % 2 ? 'old' : 'new'} town`).join(', ');
    const held: Fields = { structured_outputs: { choice: [text] }, logprobs: true };
    const ngram: Fields = { ...held, speculation: { method: 'ngram' } };
    const plain = await measure(PARIS, { ...held, speculation: false });
    const { accepted, steps, message } = await measure(PARIS, ngram);
    expect(plain.message.content).toBe(text);
    expect(message.content).toBe(text);
    expect(accepted).toBeGreaterThan(plain.answer.usage.completion_tokens / 3);
    expect(steps).toBeLessThan(0.7 * plain.steps);
  });

  it('drafts what was written at the same place of a grammar, in the answer', async () => {
    const regex = '[ab](1[xy]{4}2[pq]{4})+';
    const held: Fields = { structured_outputs: { regex }, logprobs: true, ignore_eos: true, max_tokens: 40 };
    const plain = await measure(PARIS, { ...held, speculation: false });
    const ngram = { method: 'ngram', minMatch: 32 } as const; // no text repeats that long
    const drafted = await measure(PARIS, { ...held, speculation: ngram });
    expect(drafted.message.content).toBe(plain.message.content);
    expect(drafted.accepted).toBeGreaterThan(3);
  });

  it('drafts what another answer has at the same place of the grammar, behind other text', async () => {
    const [a, b] = await Promise.all(
      ['a', 'b'].map(async (text) => (await runtime().tokenize(text)).at(-1)!),
    );
    const begin = (token: number | undefined, cache_salt: string) =>
      measure(PARIS, {
        structured_outputs: { regex: '[ab]{8}(1[xy]{4}2[pq]{4})' },
        logit_bias: { [token!]: 100 },
        logprobs: true,
        cache_salt,
        speculation: { method: 'suffix' },
      });
    await begin(a, 'places');
    const behindOther = await begin(b, 'places');
    const alone = await begin(b, 'no places');
    expect(behindOther.message.content).toBe(alone.message.content);
    expect(behindOther.accepted).toBeGreaterThan(alone.accepted);
  });

  it('drafts what was answered before, under the same salt only', async () => {
    const salted = (cache_salt: string): Fields => ({ cache_salt, speculation: { method: 'suffix' } });
    const first = await measure(STORY, salted('one'));
    const again = await measure(STORY, salted('one'));
    const other = await measure(STORY, salted('two'));
    expect(again.message).toEqual(first.message);
    expect(again.accepted).toBeGreaterThan(again.answer.usage.completion_tokens / 2);
    expect(again.steps).toBeLessThan(other.steps);
    expect(other.accepted).toBe(first.accepted);
  });

  it('streams several tokens in a chunk, each with its log-probability', async () => {
    const fields: Fields = { logprobs: true, return_token_ids: true };
    const plain = await ask(STORY, { ...fields, speculation: false });
    const story = plain.choices[0]!.message.content!;
    const chunks = await stream(STORY, {
      ...fields,
      speculation: 'auto',
      cache_salt: 'stream',
      ...prediction(story),
    });
    const own = chunks.flatMap(({ choices }) => choices);
    const entries = own.flatMap(({ logprobs }) => logprobs?.content ?? []);
    expect(entries.map(({ token }) => token)).toEqual(
      plain.choices[0]!.logprobs!.content.map(({ token }) => token),
    );
    expect(Math.max(...own.map(({ token_ids }) => token_ids?.length ?? 0))).toBeGreaterThan(1);
    for (const { token_ids, logprobs } of own)
      expect(logprobs?.content.length ?? 0).toBe(token_ids?.length ?? 0);
  });

  it('checks the predictions of many answers in one step', async () => {
    const plain = await ask(STORY, { temperature: 1, top_k: 1, speculation: false });
    const { content } = plain.choices[0]!.message;
    const many = await measure(STORY, { temperature: 1, top_k: 1, n: 16, ...prediction(content!) });
    expect(many.answer.choices.map(({ message }) => message.content)).toEqual(Array(16).fill(content));
    expect(many.accepted).toBeGreaterThan(16 * 10);
  });

  it.each<[string, Fields]>([
    ['logits processors', { logits_processors: [() => {}] }],
    ['beams', { use_beam_search: true, n: 2, temperature: undefined }],
  ])('keeps away from %s', async (_, fields) => {
    const { accepted, rejected } = await measure(PARIS, { ...prediction(PARIS_ANSWER), ...fields });
    expect([accepted, rejected]).toEqual([0, 0]);
  });

  it('is an option of the runtime, and keeps no answers without memory for them', async () => {
    const count = async (options: object, fields: Fields = {}): Promise<number> => {
      await using other = await createRuntime({ threads: 1, ...options });
      let answer: ChatCompletion | undefined;
      for (let i = 0; i < 2; i++)
        answer = await other.createCompletion({ ...request(STORY, fields), stream: false });
      return answer!.usage.completion_tokens_details!.accepted_prediction_tokens;
    };
    expect(await count({})).toBeGreaterThan(10);
    expect(await count({ speculation: false })).toBe(0);
    expect(await count({ speculation: false }, { speculation: 'auto' })).toBeGreaterThan(10);
    expect(await count({ speculation: 'auto', answerIndexBytes: 0 })).toBeLessThan(10);
    await expect(createRuntime({ speculation: { method: 'ngram', maxTokens: 0 } })).rejects.toThrow(
      'speculation.maxTokens: expected an integer from 1 to 32 or null, got 0',
    );
    const config = {
      method: 'ngram',
      num_speculative_tokens: 4,
      prompt_lookup_min: 2,
      prompt_lookup_max: 5,
    } as const;
    expect(await count({ speculative_config: { ...config, method: 'suffix' } })).toBeGreaterThan(10);
    await expect(createRuntime({ speculative_config: config, speculation: false })).rejects.toThrow(
      'speculative_config: expected no value with speculation',
    );
    await expect(
      createRuntime({ speculative_config: { ...config, num_speculative_tokens: 0 } }),
    ).rejects.toThrow('speculative_config.num_speculative_tokens: expected an integer from 1 to 32, got 0');
    await expect(createRuntime({ speculation: true as never })).rejects.toThrow(
      'speculation: expected false, auto, an object with a method, or null, got true',
    );
  });
});
