/** Each part of the contract of engines, tested on every engine. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionRequest,
} from '../../../src/protocol/index.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { turns } from '../../fakes/engine-requests.ts';
import { ask, closeAll, ENGINES, modelOf, openRuntime, questions } from './engines.ts';

afterAll(closeAll);

const PARIS = 'What is the capital of France?';
const COUNT = 'Count from 1 to 9.';
const STORY = 'Tell me a story.';

describe.each(ENGINES)('%s', (engine) => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await openRuntime(modelOf(engine));
  });

  type Fields = Partial<ChatCompletionRequest>;
  const answer = (question: string, fields: Fields = {}): Promise<ChatCompletion> =>
    runtime.createCompletion(ask(question, fields));
  const text = async (question: string, fields: Fields = {}): Promise<string | null> =>
    (await answer(question, fields)).choices[0]!.message.content;
  const texts = async (question: string, fields: Fields): Promise<(string | null)[]> =>
    (await answer(question, fields)).choices.map(({ message }) => message.content);
  const chunks = async (question: string, fields: Fields = {}): Promise<ChatCompletionChunk[]> => {
    const seen: ChatCompletionChunk[] = [];
    for await (const chunk of await runtime.createCompletion({ ...ask(question, fields), stream: true }))
      seen.push(chunk);
    return seen;
  };
  const settled = async (): Promise<void> => {
    const idle = { running: 0, waiting: 0, kvTokensInUse: 0 };
    await expect.poll(() => runtime.stats(), { timeout: 5000, interval: 5 }).toMatchObject(idle);
  };

  describe('sampling', () => {
    it('answers greedily, and the same in company', async () => {
      const prompts = questions(24);
      const alone: (string | null)[] = [];
      for (const question of prompts) alone.push(await text(question, { max_tokens: 30 }));
      const together = await Promise.all(prompts.map((question) => text(question, { max_tokens: 30 })));
      expect(together).toEqual(alone);
      expect(alone).not.toContain('');
    });

    it('draws the same for a seed, something else for another, whatever runs beside it', async () => {
      const fields = { temperature: 1, seed: 7, max_tokens: 20 };
      const first = await text(STORY, fields);
      const beside = questions(6).map((question) => text(question, { max_tokens: 12 }));
      expect(await text(STORY, fields)).toBe(first);
      await Promise.all(beside);
      expect(await text(STORY, { ...fields, seed: 8 })).not.toBe(first);
    });

    it('gives n choices of their own, choice i with seed + i', async () => {
      const fields = { temperature: 1.5, seed: 7, max_tokens: 12 };
      const many = await texts(STORY, { ...fields, n: 6 });
      expect(new Set(many).size).toBeGreaterThan(3);
      expect(many[2]).toBe(await text(STORY, { ...fields, seed: 9 }));
    });

    it('takes top_k, min_p, penalties, bias, allowed ids, bad words and min_tokens', async () => {
      const greedy = await answer(PARIS, { return_token_ids: true });
      const ids = greedy.choices[0]!.token_ids!;
      expect(await text(PARIS, { temperature: 2, top_k: 1, seed: 1 })).toBe(
        greedy.choices[0]!.message.content,
      );
      expect(await text(PARIS, { temperature: 2, min_p: 0.999, seed: 1 })).toBe(
        greedy.choices[0]!.message.content,
      );
      const biased = await answer(PARIS, { logit_bias: { [ids[0]!]: -100 }, return_token_ids: true });
      expect(biased.choices[0]!.token_ids![0]).not.toBe(ids[0]);
      const only = await answer(PARIS, {
        allowed_token_ids: [ids[0]!],
        max_tokens: 3,
        return_token_ids: true,
      });
      expect(only.choices[0]!.token_ids).toEqual([ids[0], ids[0], ids[0]]);
      expect(await text(PARIS, { bad_words: ['Paris'] })).not.toContain('Paris');
      const long = await answer(PARIS, { min_tokens: 20, max_tokens: 24 });
      expect(long.usage.completion_tokens).toBeGreaterThanOrEqual(20);
      expect(await text(COUNT, { presence_penalty: 2, frequency_penalty: 2 })).not.toBe(await text(COUNT));
    });
  });

  describe('the end of an answer', () => {
    it('comes at stop strings, stop ids and the limit', async () => {
      const stopped = await answer(COUNT, { stop: [', 5'] });
      expect(stopped.choices[0]).toMatchObject({
        finish_reason: 'stop',
        stop_reason: ', 5',
        message: { content: '1, 2, 3, 4' },
      });
      const kept = await text(COUNT, { stop: [', 5'], include_stop_str_in_output: true });
      expect(kept).toBe('1, 2, 3, 4, 5');
      const cut = await answer(COUNT, { max_tokens: 3, return_token_ids: true });
      expect(cut.choices[0]).toMatchObject({ finish_reason: 'length' });
      expect(cut.choices[0]!.token_ids).toHaveLength(3);
      const id = cut.choices[0]!.token_ids![2]!;
      const byId = await answer(COUNT, { stop_token_ids: [id] });
      expect(byId.choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: id });
    });

    it('does not come where ignore_eos holds it back', async () => {
      const long = await answer(PARIS, { ignore_eos: true, max_tokens: 40 });
      expect(long.usage.completion_tokens).toBe(40);
    });
  });

  it('streams the same text that it answers as a whole', async () => {
    const whole = await answer(STORY, { n: 3, temperature: 1, seed: 3, max_tokens: 30, logprobs: true });
    const parts = await chunks(STORY, { n: 3, temperature: 1, seed: 3, max_tokens: 30, logprobs: true });
    for (const { index, message, logprobs } of whole.choices) {
      const deltas = parts.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
      expect(deltas.map(({ delta }) => delta.content ?? '').join('')).toBe(message.content);
      expect(deltas.flatMap((choice) => choice.logprobs?.content ?? []).map(({ token }) => token)).toEqual(
        logprobs!.content!.map(({ token }) => token),
      );
    }
  });

  describe('log-probabilities', () => {
    it('name the chosen token and the best ones, which sum to one over the vocabulary', async () => {
      const { choices } = await answer(PARIS, { logprobs: true, top_logprobs: -1, max_tokens: 4 });
      for (const { logprob, top_logprobs: top } of choices[0]!.logprobs!.content!) {
        expect(top[0]!.logprob).toBe(logprob);
        expect(top.reduce((sum, one) => sum + Math.exp(one.logprob), 0)).toBeCloseTo(1, 4);
      }
    });

    it('of a prompt are the same in one step and in many', async () => {
      const question = questions(8).join(' ');
      const small = await openRuntime(modelOf(engine), { maxBatchTokens: 24 });
      const fields = { prompt_logprobs: 3, max_tokens: 1 };
      const [whole, chunked] = [
        await answer(question, fields),
        await small.createCompletion(ask(question, fields)),
      ];
      expect(whole.prompt_logprobs![0]).toBeNull();
      for (const [at, entry] of whole.prompt_logprobs!.entries())
        for (const [id, { logprob }] of Object.entries(entry ?? {})) {
          const other = chunked.prompt_logprobs![at]![id];
          // Fused attention adds up in 16 bits, which the logits of unlikely tokens show most.
          if (other) expect(Math.abs(logprob - other.logprob)).toBeLessThan(3e-2 * Math.max(1, -logprob / 4));
        }
    });
  });

  describe('constraints', () => {
    it('hold every choice to a schema, a pattern or a list', async () => {
      const schema = {
        type: 'object',
        properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', maximum: 150 } },
        required: ['name', 'age'],
        additionalProperties: false,
      };
      const question = 'Extract the name and age as JSON: Lena is 53 years old.';
      const held = await texts(question, {
        n: 4,
        temperature: 1.2,
        seed: 1,
        max_tokens: 80,
        structured_outputs: { json: schema },
      });
      for (const content of held)
        expect(Object.keys(JSON.parse(content!) as object).toSorted()).toEqual(['age', 'name']);
      const digits = { regex: '[0-9]{3}-[a-f]{2}' };
      expect(await text(STORY, { structured_outputs: digits, temperature: 1, seed: 2 })).toMatch(
        /^[0-9]{3}-[a-f]{2}$/,
      );
      const choice = ['Berlin', 'Paris'].map((city) => `The capital of France is ${city}.`);
      expect(await text(PARIS, { structured_outputs: { choice } })).toBe(choice[1]);
    });

    it('let a host edit the logits of each token', async () => {
      const seen: number[] = [];
      const content = await text(PARIS, {
        max_tokens: 4,
        logits_processors: [
          (output: Int32Array, logits: Float32Array) => {
            seen.push(output.length);
            logits.fill(-Infinity);
            logits[40 + output.length] = 0;
          },
        ],
      });
      expect(seen).toEqual([0, 1, 2, 3]);
      expect(content).toHaveLength(4);
    });
  });

  it('searches with beams', async () => {
    const found = await answer(COUNT, { use_beam_search: true, n: 3, max_tokens: 40 });
    expect(found.choices).toHaveLength(3);
    expect(found.choices[0]!.message.content).toBe(await text(COUNT));
    expect(new Set(found.choices.map(({ message }) => message.content)).size).toBe(3);
  });

  describe('the cache', () => {
    it('serves a prompt that begins like one before, with the same answer', async () => {
      const question = questions(12).join(' ');
      const first = await answer(question, { max_tokens: 12 });
      const again = await answer(question, { max_tokens: 12 });
      const longer = await answer(`${question} Thank you.`, { max_tokens: 12 });
      expect(again.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThan(50);
      expect(longer.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThan(50);
      expect(again.choices[0]!.message.content).toBe(first.choices[0]!.message.content);
      const other = await answer(question, { max_tokens: 12, cache_salt: 'mine' });
      expect(other.usage.prompt_tokens_details!.cached_tokens).toBe(0);
      expect(other.choices[0]!.message.content).toBe(first.choices[0]!.message.content);
    });

    it('gives way when it is full, and every answer is right', async () => {
      const tight = await openRuntime(modelOf(engine), { kvTokens: 300, contextSize: 256 });
      const prompts = questions(12);
      const fields = { max_tokens: 60, ignore_eos: true };
      const crowded = await Promise.all(
        prompts.map((question) => tight.createCompletion(ask(question, fields))),
      );
      for (const [i, question] of prompts.entries())
        expect(crowded[i]!.usage.completion_tokens, question).toBe(60);
      const alone = await text(prompts[3]!, fields);
      expect(crowded[3]!.choices[0]!.message.content!.slice(0, 12)).toBe(alone!.slice(0, 12));
    });

    it('is handed from one runtime to another', async () => {
      const other = await openRuntime(modelOf(engine));
      const question = questions(12).join(' ');
      const saved = await answer(question, { kv_transfer_params: { do_remote_decode: true } });
      const resumed = await other.createCompletion(
        ask(question, { kv_transfer_params: saved.kv_transfer_params!, max_tokens: 20 }),
      );
      expect(resumed.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThan(50);
      expect(resumed.choices[0]!.message.content).toBe(await text(question, { max_tokens: 20 }));
    });
  });

  it('stops at an abort, alone and among others, and frees what it used', async () => {
    const controller = new AbortController();
    const before = runtime.stats().generatedTokens;
    const stopped = runtime.createCompletion(ask(STORY, { max_tokens: 600, ignore_eos: true }), {
      signal: controller.signal,
    });
    const others = questions(5).map((question) => text(question, { max_tokens: 20 }));
    await expect.poll(() => runtime.stats().generatedTokens, { interval: 2 }).toBeGreaterThan(before);
    controller.abort();
    await expect(stopped).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await Promise.all(others)).not.toContain('');
    await settled();
  });

  it('runs many requests that come and go', async () => {
    const prompts = questions(40);
    const expected = await Promise.all(prompts.map((question) => text(question, { max_tokens: 24 })));
    const jittered = await Promise.all(
      prompts.map(async (question, i) => {
        await turns((i * 37) % 90);
        return await text(question, { max_tokens: 24 });
      }),
    );
    expect(jittered).toEqual(expected);
    await settled();
  });
});
