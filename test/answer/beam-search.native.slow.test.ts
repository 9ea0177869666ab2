import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '../../src/protocol/index.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { promptLogits, whyNoBareEngine } from '../models/formats/reference/bare-engine.ts';
import { PARIS, STORY } from './asking.ts';
import { ask, closeRuntimes, EMBEDDED, LAYOUTS, openRuntime, TINY_LLAMA } from './models.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await openRuntime(EMBEDDED, undefined);
});
afterAll(closeRuntimes);

function beams(
  question: string,
  n: number,
  fields: Partial<ChatCompletionRequest> = {},
): ReturnType<typeof ask> {
  const { temperature: _, ...request } = ask(question, {
    n,
    use_beam_search: true,
    return_token_ids: true,
    ...fields,
  });
  return request;
}

async function search(
  question: string,
  n: number,
  fields: Partial<ChatCompletionRequest> = {},
): Promise<ChatCompletion> {
  return await runtime.createCompletion(beams(question, n, fields));
}

const missing = whyNoBareEngine();
if (missing) process.stderr.write(`skipped: beam search against an exhaustive search: ${missing}\n`);

describe.skipIf(missing !== null)('beam search against an exhaustive search on the bare engine', () => {
  it.each(LAYOUTS)('with %s', async (_, kvTokens) => {
    const on = await openRuntime(TINY_LLAMA, kvTokens, { maxSequences: 32 });
    const allowed = [40, 80, 120];
    for (const question of ['One', 'Two words', 'And three more']) {
      const answer = await on.createCompletion(
        beams(question, 27, { allowed_token_ids: allowed, max_tokens: 3, logprobs: true }),
      );
      const prompt = answer.prompt_token_ids!;
      const all = allowed.flatMap((a) => allowed.flatMap((b) => allowed.map((c) => [a, b, c])));
      const scored = all.map((tokens) => {
        const rows = promptLogits(TINY_LLAMA, [...prompt, ...tokens], 'f32');
        const logprobs = tokens.map((token, i) => logprobOf(rows[prompt.length - 1 + i]!, token));
        return { tokens, logprobs, score: logprobs.reduce((sum, logprob) => sum + logprob, 0) };
      });
      scored.sort((a, b) => b.score - a.score);
      expect(answer.choices.map((choice) => choice.token_ids)).toEqual(scored.map(({ tokens }) => tokens));
      for (const [i, choice] of answer.choices.entries())
        for (const [at, { logprob }] of choice.logprobs!.content.entries())
          expect(logprob).toBeCloseTo(scored[i]!.logprobs[at]!, 3);
    }
  });
});

function logprobOf(row: Float32Array, token: number): number {
  const max = row.reduce((best, value) => Math.max(best, value), -Infinity);
  return row[token]! - max - Math.log(row.reduce((sum, value) => sum + Math.exp(value - max), 0));
}

/** Sum of what a choice reports. */
function scoreOf(choice: ChatCompletion['choices'][number]): number {
  return choice.logprobs!.content.reduce((sum, { logprob }) => sum + logprob, 0);
}

describe('beam search', () => {
  it('gives n different answers, best first, the same every time, alone and in company', async () => {
    const [first, again] = await Promise.all([
      search(STORY, 4, { max_tokens: 12, logprobs: true, ignore_eos: true }),
      search(STORY, 4, { max_tokens: 12, logprobs: true, ignore_eos: true }),
      runtime.createCompletion(ask(STORY, { max_tokens: 20 })),
      search(PARIS, 3),
    ]);
    const texts = first!.choices.map(({ token_ids }) => token_ids!.join());
    expect(new Set(texts).size).toBe(4);
    expect(first!.choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    const scores = first!.choices.map(scoreOf);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(again!.choices.map(({ token_ids }) => token_ids)).toEqual(
      first!.choices.map(({ token_ids }) => token_ids),
    );
    expect(first!.usage.completion_tokens).toBe(48);
    for (const choice of first!.choices)
      expect(choice).toMatchObject({ finish_reason: 'length', stop_reason: null });
    expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
  });

  it('with one beam is greedy, and computes the prompt once with many', async () => {
    const greedy = await runtime.createCompletion(ask(PARIS, { return_token_ids: true }));
    const one = await search(PARIS, 1);
    expect(one.choices[0]!.message.content).toBe(greedy.choices[0]!.message.content);
    expect(one.choices[0]!.token_ids).toEqual(greedy.choices[0]!.token_ids!.slice(0, -1));
    const before = runtime.stats().promptTokens;
    const many = await search('A question of its own.', 8, { max_tokens: 4 });
    expect(runtime.stats().promptTokens - before).toBe(
      many.usage.prompt_tokens - many.usage.prompt_tokens_details!.cached_tokens,
    );
  });

  it('names the end token, and keeps it only when asked to', async () => {
    const cut = await search(PARIS, 2);
    const eos = 958;
    expect(cut.choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: eos });
    expect(cut.choices[0]!.token_ids).not.toContain(eos);
    expect(cut.usage.completion_tokens).toBe(
      cut.choices.reduce((sum, { token_ids }) => sum + token_ids!.length, 0),
    );
    const kept = await search(PARIS, 2, {
      include_stop_str_in_output: true,
      logprobs: true,
      top_logprobs: 2,
    });
    expect(kept.choices[0]!.token_ids).toEqual([...cut.choices[0]!.token_ids!, eos]);
    expect(kept.choices[0]!.message.content).toBe(cut.choices[0]!.message.content);
    expect(kept.choices[0]!.logprobs!.content).toHaveLength(kept.choices[0]!.token_ids!.length);
    for (const { logprob, top_logprobs } of kept.choices[0]!.logprobs!.content) {
      expect(top_logprobs).toHaveLength(2);
      expect(logprob).toBeLessThanOrEqual(top_logprobs[0]!.logprob);
    }
    const ignored = await search(PARIS, 2, { ignore_eos: true, max_tokens: 14 });
    for (const choice of ignored.choices)
      expect(choice).toMatchObject({ finish_reason: 'length', stop_reason: null });
  });

  it('honours stop strings and stop ids', async () => {
    const plain = (await search(PARIS, 1)).choices[0]!;
    expect(plain.message.content).toBe('The capital of France is Paris.');
    const stopped = await search(PARIS, 3, { stop: ['France', 'nowhere'] });
    expect(stopped.choices[0]).toMatchObject({
      finish_reason: 'stop',
      stop_reason: 'France',
      message: { content: 'The capital of ' },
    });
    for (const { message } of stopped.choices) expect(message.content).not.toContain('France');
    const kept = await search(PARIS, 1, { stop: ['France'], include_stop_str_in_output: true });
    expect(kept.choices[0]!.message.content).toBe('The capital of France');
    const id = plain.token_ids![2]!;
    const byId = await search(PARIS, 1, { stop_token_ids: [id] });
    expect(byId.choices[0]).toMatchObject({
      finish_reason: 'stop',
      stop_reason: id,
      token_ids: plain.token_ids!.slice(0, 2),
    });
  });

  it('honours bad words, allowed ids and bias', async () => {
    for (const { message } of (await search(PARIS, 4, { bad_words: ['Paris'], max_tokens: 12 })).choices)
      expect(message.content).not.toContain('Paris');
    const allowed = await search(STORY, 4, { allowed_token_ids: [65, 66, 67], max_tokens: 4 });
    for (const { token_ids } of allowed.choices)
      for (const id of token_ids!) expect([65, 66, 67]).toContain(id);
    const biased = await search(STORY, 3, { logit_bias: { 70: 100 }, max_tokens: 5, logprobs: true });
    expect(biased.choices[0]!.token_ids).toEqual(new Array(5).fill(70));
    expect(biased.choices[0]!.logprobs!.content[0]!.logprob).toBeLessThan(-1); // the model's own
  });

  it('prefers long answers with a large length penalty and short ones with a small one', async () => {
    const lengths = async (length_penalty: number): Promise<number> =>
      (await search(STORY, 4, { length_penalty, max_tokens: 24, logit_bias: { 958: 6 } })).choices[0]!
        .token_ids!.length;
    expect(await lengths(20)).toBeGreaterThan(await lengths(-20));
  });

  it('gives as many hypotheses as there are', async () => {
    const answer = await search(STORY, 3, { allowed_token_ids: [65], max_tokens: 3 });
    expect(answer.choices.map(({ token_ids }) => token_ids)).toEqual([[65, 65, 65]]);
  });

  it('streams the roles, then one chunk per hypothesis', async () => {
    const whole = await search(PARIS, 3);
    const chunks: ChatCompletionChunk[] = [];
    const request = { ...beams(PARIS, 3), stream: true as const, stream_options: {} };
    for await (const chunk of await runtime.createCompletion(request)) chunks.push(chunk);
    expect(chunks).toHaveLength(3 + 3 + 1);
    for (const [i, chunk] of chunks.slice(0, 3).entries())
      expect(chunk.choices).toEqual([
        expect.objectContaining({ index: i, delta: expect.objectContaining({ role: 'assistant' }) }),
      ]);
    for (const [i, { choices }] of chunks.slice(3, 6).entries()) {
      const { message, finish_reason, stop_reason, token_ids } = whole.choices[i]!;
      expect(choices).toEqual([
        expect.objectContaining({
          index: i,
          delta: expect.objectContaining({ content: message.content }),
          finish_reason,
          stop_reason,
          token_ids,
        }),
      ]);
    }
    expect(chunks.at(-1)!.usage).toMatchObject({ completion_tokens: whole.usage.completion_tokens });
  });

  it('refuses more beams than can run, and is taken out when it is aborted', async () => {
    await expect(search(STORY, 17)).rejects.toMatchObject({ code: 'INVALID_REQUEST', param: 'n' });
    const abort = new AbortController();
    const running = runtime.createCompletion(beams(STORY, 4, { max_tokens: 400, ignore_eos: true }), {
      signal: abort.signal,
    });
    await expect.poll(() => runtime.stats().running, { interval: 2 }).toBeGreaterThan(0);
    abort.abort();
    await expect(running).rejects.toMatchObject({ code: 'ABORTED' });
    await expect.poll(() => runtime.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
  });

  it('goes through where the cache holds fewer tokens than its beams have', async () => {
    const tight = await openRuntime(EMBEDDED, 256, { contextSize: 256, maxSequences: 8 });
    const request = beams(STORY, 8, { max_tokens: 60, ignore_eos: true });
    const roomy = await openRuntime(EMBEDDED, 4096, { contextSize: 256, maxSequences: 8 });
    const [a, b] = [await tight.createCompletion(request), await roomy.createCompletion(request)];
    expect(a.choices[0]!.token_ids).toEqual(b.choices[0]!.token_ids);
    expect(a.choices).toHaveLength(8);
  });
});
