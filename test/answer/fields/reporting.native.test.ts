/** Fields about reports in answers: log-probabilities, and the order and usage of chunks. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { PARIS } from '../asking.ts';
import { ask, chunksOf, type Fields, onlyThese, specialId } from './model.ts';

let runtime: Runtime;
let eos = 0;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
  eos = await specialId(runtime, '<|im_end|>');
});
afterAll(() => runtime.close());

const USER = [{ role: 'user' as const, content: PARIS }];

/** The answer of just these tokens, as far as they are let. */
async function sayIds(ids: readonly number[], fields: Fields): Promise<ChatCompletion['choices'][number]> {
  const logits_processors = [onlyThese(ids, eos)];
  return (await ask(runtime, 'Say it.', { logits_processors, return_token_ids: true, ...fields }))
    .choices[0]!;
}

describe('log-probabilities', () => {
  it('top_logprobs null counts as 0; the chosen token stands in the entry, the best k beside it', async () => {
    expect(
      (await ask(runtime, PARIS, { logprobs: true, top_logprobs: null })).choices[0]!.logprobs!.content[0]!
        .top_logprobs,
    ).toEqual([]);
    const [rare] = await runtime.tokenize('zebra');
    const choice = await sayIds([rare!], { logprobs: true, top_logprobs: 2 });
    const [entry] = choice.logprobs!.content;
    expect(entry!.top_logprobs).toHaveLength(2);
    expect(entry!.logprob).toBeLessThan(entry!.top_logprobs[1]!.logprob);
    expect(entry!.top_logprobs.map(({ token }) => token)).not.toContain(entry!.token);
  });

  it('are those of the model before bias, masks, penalties and temperature', async () => {
    const plain = await ask(runtime, PARIS, { logprobs: true, top_logprobs: 5, max_tokens: 1 });
    const steered = await ask(runtime, PARIS, {
      logprobs: true,
      top_logprobs: 5,
      max_tokens: 1,
      temperature: 0.3,
      logit_bias: { 300: 20 },
      allowed_token_ids: [300, 301],
      presence_penalty: 1,
      structured_outputs: { regex: '.*' },
    });
    expect(steered.choices[0]!.logprobs!.content[0]!.top_logprobs).toEqual(
      plain.choices[0]!.logprobs!.content[0]!.top_logprobs,
    );
  });

  describe('of the tokens of logprob_token_ids', () => {
    const ids = [301, 7, 300, 12, 7];
    /** Returns the log-probabilities of these tokens by `top_logprobs: -1`, which takes another path through the sampler. */
    const fromAll = async (of: Runtime, fields: Fields) => {
      const asked = { logprobs: true, return_tokens_as_token_ids: true, max_tokens: 3, seed: 1, ...fields };
      const whole = (await ask(of, PARIS, { ...asked, top_logprobs: -1 })).choices[0]!.logprobs!.content;
      return whole.map((entry) => ({
        ...entry,
        top_logprobs: [301, 7, 300, 12].map(
          (id) => entry.top_logprobs.find(({ token }) => token === `token_id:${id}`)!,
        ),
      }));
    };
    const some: Fields = { logprobs: true, return_tokens_as_token_ids: true, max_tokens: 3, seed: 1 };
    const filtered: Fields = { temperature: 0.7, top_k: 40, logit_bias: { 300: 20 }, presence_penalty: 1 };

    it.each<[string, Fields]>([
      ['greedy', {}],
      ['filtered', filtered],
      ['constrained', { structured_outputs: { regex: '[a-z ]+' } }],
      ['edited', { logits_processors: [() => {}] }],
      ['with drafts', { speculation: 'auto', prediction: { type: 'content', content: PARIS } }],
      ['with a count of best ones, which they replace', { top_logprobs: 2 }],
    ])('%s: the same numbers as in the whole vocabulary, in their order, each once', async (_, fields) => {
      const { content } = (await ask(runtime, PARIS, { ...some, ...fields, logprob_token_ids: ids }))
        .choices[0]!.logprobs!;
      expect(content).toEqual(await fromAll(runtime, fields));
    });

    it('of the processed kind are those after filters', async () => {
      await using on = await createRuntime({ threads: 1, logprobsMode: 'processed' });
      const { content } = (await ask(on, PARIS, { ...some, ...filtered, logprob_token_ids: ids })).choices[0]!
        .logprobs!;
      expect(content).toEqual(await fromAll(on, filtered));
    });

    it('stream, and stand beside the chosen token of a text completion', async () => {
      const request = { ...some, logprob_token_ids: ids };
      const whole = (await ask(runtime, PARIS, request)).choices[0]!.logprobs!.content;
      const chunks = await chunksOf(runtime, { messages: USER, ...request, stream: true });
      expect(chunks.flatMap(({ choices }) => choices[0]?.logprobs?.content ?? [])).toEqual(whole);
      const text = await runtime.createTextCompletion({
        prompt: 'The capital of Peru is',
        max_tokens: 1,
        temperature: 0,
        logprobs: 0,
        logprob_token_ids: ids,
        return_tokens_as_token_ids: true,
        return_token_ids: true,
      });
      const { top_logprobs } = text.choices[0]!.logprobs!;
      const named = [...new Set([...ids, text.choices[0]!.token_ids![0]!])].map((id) => `token_id:${id}`);
      expect(Object.keys(top_logprobs[0]!).sort()).toEqual(named.sort());
    });

    it('are bounded as the best ones are', async () => {
      const all = Array.from({ length: 900 }, (_, i) => i);
      const many = { ...some, n: 8, temperature: 1, max_tokens: 900, logprob_token_ids: all };
      await expect(ask(runtime, PARIS, many)).rejects.toThrow(
        /^logprob_token_ids: 900 alternatives for up to/,
      );
      await expect(ask(runtime, PARIS, { ...some, logprob_token_ids: [1e6] })).rejects.toThrow(
        /^logprob_token_ids\.0: expected a token id below/,
      );
    });
  });

  it('of the processed kind have the floor -9999 where nothing may be drawn; a cap counts for both fields', async () => {
    await using on = await createRuntime({ threads: 1, logprobsMode: 'processed', maxLogprobs: 5 });
    const fields = { logprobs: true, max_tokens: 1, allowed_token_ids: [300, 301], temperature: 1 };
    const { choices } = await ask(on, PARIS, { ...fields, top_logprobs: 3 });
    const values = choices[0]!.logprobs!.content[0]!.top_logprobs.map(({ logprob }) => logprob);
    expect(Math.exp(values[0]!) + Math.exp(values[1]!)).toBeCloseTo(1, 4);
    expect(values[2]).toBe(-9999);
    for (const over of [
      { ...fields, top_logprobs: 6 },
      { ...fields, top_logprobs: -1 },
      { prompt_logprobs: 6 },
    ])
      await expect(ask(on, PARIS, over)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('token names are ids in both levels when asked for, and bytes stay those of the text', async () => {
    const fields = { logprobs: true, top_logprobs: 2, max_tokens: 1 };
    const [named, ids] = [
      (await ask(runtime, PARIS, fields)).choices[0]!.logprobs!.content[0]!,
      (await ask(runtime, PARIS, { ...fields, return_tokens_as_token_ids: true })).choices[0]!.logprobs!
        .content[0]!,
    ];
    for (const [i, { token, bytes }] of ids.top_logprobs.entries()) {
      expect(token).toMatch(/^token_id:\d+$/);
      expect(bytes).toEqual(named.top_logprobs[i]!.bytes);
    }
    expect(ids.bytes).toEqual(named.bytes);
  });

  it('of the prompt are null for streams and without asking, also with echo', async () => {
    expect((await ask(runtime, PARIS, { echo: true })).prompt_logprobs).toBeNull();
    const request = { messages: USER, temperature: 0 };
    await expect(
      runtime.createCompletion({ ...request, prompt_logprobs: 1, stream: true }),
    ).rejects.toMatchObject({ param: 'prompt_logprobs' });
    for (const chunk of await chunksOf(runtime, { ...request, prompt_logprobs: 0 }))
      expect(chunk).not.toHaveProperty('prompt_logprobs');
  });
});

describe('streams', () => {
  const request = { messages: USER, temperature: 0 };

  it('prompt ids are in the role chunks only, null without asking; keys come in their order', async () => {
    const fields = { temperature: 1, seed: 2, n: 2, max_tokens: 3 };
    const asked = await chunksOf(runtime, {
      ...request,
      ...fields,
      return_token_ids: true,
      stream_options: {},
    });
    expect(asked.slice(0, 2).map((chunk) => chunk.prompt_token_ids!.length)).toEqual([17, 17]);
    for (const chunk of asked.slice(2)) expect(chunk).not.toHaveProperty('prompt_token_ids');
    expect(Object.keys(asked[0]!).slice(0, 5)).toEqual(['id', 'object', 'created', 'model', 'choices']);
    for (const index of [0, 1]) {
      const own = asked.slice(2).flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
      expect(own.flatMap(({ token_ids }) => token_ids)).toHaveLength(3);
      expect(own.at(-1)!.finish_reason).toBe('length'); // the last text and the end in one chunk
    }
    expect(asked.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 17, completion_tokens: 6, total_tokens: 23 },
    });
    const plain = await chunksOf(runtime, { ...request, ...fields });
    expect(plain[0]!.prompt_token_ids).toBeNull();
    expect(plain.at(-1)!.choices).toHaveLength(1); // no usage chunk
  });

  it.each<[string, Fields['stream_options'], boolean, boolean]>([
    ['nothing', undefined, false, false],
    ['null', null, false, false],
    ['{}', {}, true, false],
    ['include_usage null', { include_usage: null }, false, false],
    ['include_usage', { include_usage: true }, true, false],
    ['continuous_usage_stats alone', { continuous_usage_stats: true }, true, true],
    [
      'continuous_usage_stats without include_usage',
      { include_usage: false, continuous_usage_stats: true },
      false,
      false,
    ],
  ])('stream_options %s', async (_, stream_options, atEnd, inEach) => {
    const chunks = await chunksOf(runtime, {
      ...request,
      ...(stream_options === undefined ? {} : { stream_options }),
    });
    expect(chunks.at(-1)!.choices.length === 0).toBe(atEnd);
    const body = atEnd ? chunks.slice(0, -1) : chunks;
    for (const chunk of body) expect('usage' in chunk).toBe(inEach);
  });

  it('counts of each chunk are those of its own choice, the last one sums them', async () => {
    const fields = {
      n: 3,
      temperature: 1,
      seed: 4,
      max_tokens: 5,
      ignore_eos: true,
      stream_options: { continuous_usage_stats: true },
    };
    const chunks = await chunksOf(runtime, { ...request, ...fields });
    for (const index of [0, 1, 2]) {
      const counts = chunks
        .filter(({ choices }) => choices[0]?.index === index)
        .map(({ usage }) => usage!.completion_tokens);
      expect(counts[0]).toBe(0);
      expect(counts.at(-1)).toBe(5);
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    }
    expect(chunks.at(-1)!.usage).toMatchObject({ completion_tokens: 15, total_tokens: 32 });
  });
});

describe('stream_interval', () => {
  it('is the number of new tokens of a chunk but the first and the last', async () => {
    const fields = { max_tokens: 20, ignore_eos: true, return_token_ids: true, temperature: 0 };
    const asked = { messages: [{ role: 'user' as const, content: 'Count.' }], ...fields };
    const countsOf = async (stream_interval: number | null): Promise<number[]> =>
      (await chunksOf(runtime, { ...asked, stream_interval, speculation: false }))
        .flatMap(({ choices }) => choices.map(({ token_ids }) => token_ids?.length ?? 0))
        .filter((count) => count > 0);
    const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);
    expect(sum(await countsOf(null))).toBe(20);
    const counts = await countsOf(6);
    expect(sum(counts)).toBe(20);
    expect(counts.length).toBeLessThan(6);
    for (const count of counts.slice(1, -1)) expect(count).toBeGreaterThanOrEqual(6);
    const texts = await Promise.all(
      [null, 7].map(async (stream_interval) => {
        let text = '';
        const prompt = 'Count.';
        const stream = await runtime.createTextCompletion({
          prompt,
          ...fields,
          stream_interval,
          stream: true,
        });
        for await (const { choices } of stream) text += choices[0]!.text;
        return text;
      }),
    );
    expect(texts[0]).toBe(texts[1]);
  });
});
