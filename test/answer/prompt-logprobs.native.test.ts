import { afterAll, describe, expect, it } from 'vitest';
import { createPromptScores } from '../../src/sampling/prompt-scores.ts';
import { logSoftmax } from '../fakes/reference-sampler.ts';
import { promptLogits, whyNoBareEngine } from '../models/formats/reference/bare-engine.ts';
import { ask, closeRuntimes, EMBEDDED, LAYOUTS, openRuntime, TINY_LLAMA } from './models.ts';

afterAll(closeRuntimes);

const QUESTION = 'What is the capital of France? And which rivers flow through it?';

const missing = whyNoBareEngine();
if (missing) process.stderr.write(`skipped: prompt_logprobs against the bare engine: ${missing}\n`);

describe.skipIf(missing !== null)('prompt_logprobs against one plain forward pass', () => {
  it.each(
    LAYOUTS.flatMap(([layout, kvTokens]) =>
      [true, false].flatMap((prefixCache) =>
        (
          [
            ['tiny-llama', TINY_LLAMA, 'f32', 512],
            ['tiny-llama in chunks', TINY_LLAMA, 'f32', 24],
            ['the embedded model', EMBEDDED, 'fused', 512],
          ] as const
        ).map((each) => [...each, layout, kvTokens, prefixCache] as const),
      ),
    ),
  )(
    '%s: the log-softmax at every position, within 1e-4 (%s, %s, batches of %i, %s, %s, prefix cache %s)',
    async (_, model, precision, maxBatchTokens, __, kvTokens, prefixCache) => {
      const runtime = await openRuntime({ path: model, kernels: 'plain' }, kvTokens, {
        prefixCache,
        maxBatchTokens,
      });
      await runtime.createCompletion(ask(QUESTION, { max_tokens: 2 })); // what a cache could give is there
      const answer = await runtime.createCompletion(
        ask(QUESTION, { prompt_logprobs: 5, return_token_ids: true, max_tokens: 2 }),
      );
      expect(answer.usage.prompt_tokens_details?.cached_tokens).toBe(0);
      const prompt = answer.prompt_token_ids!;
      const entries = answer.prompt_logprobs!;
      expect(entries).toHaveLength(prompt.length);
      expect(entries[0]).toBeNull();
      const rows = promptLogits(model, prompt, precision);
      for (const [at, token] of prompt.entries()) {
        if (at === 0) continue;
        const exact = logSoftmax(rows[at - 1]!);
        const entry = entries[at]!;
        for (const [id, { logprob }] of Object.entries(entry))
          expect(Math.abs(logprob - exact[Number(id)]!)).toBeLessThan(1e-4);
        const best = Object.values(entry).filter(({ rank }) => rank <= 5);
        expect(best.map(({ rank }) => rank).toSorted()).toEqual([1, 2, 3, 4, 5]);
        expect(Object.keys(entry).length).toBe(entry[token]!.rank <= 5 ? 5 : 6);
        expect(entry[token]!.rank).toBeGreaterThan(
          exact.filter((value) => value > exact[token]! + 2e-4).length,
        );
        const fifth = exact.toSorted((a, b) => b - a)[4]!;
        for (const { logprob } of best) expect(logprob).toBeGreaterThan(fifth - 2e-4);
      }
      await runtime.close();
    },
  );
});

describe('prompt_logprobs', () => {
  it('with 0 give the prompt token alone, with -1 the whole vocabulary', async () => {
    const runtime = await openRuntime(EMBEDDED, undefined);
    const alone = await runtime.createCompletion(
      ask('Hello', { prompt_logprobs: 0, max_tokens: 1, return_token_ids: true }),
    );
    const ids = alone.prompt_token_ids!;
    for (const [at, entry] of alone.prompt_logprobs!.entries())
      if (at > 0) expect(Object.keys(entry!)).toEqual([String(ids[at])]);
    const all = await runtime.createCompletion(ask('Hello', { prompt_logprobs: -1, max_tokens: 1 }));
    const vocabulary = Object.values(all.prompt_logprobs![3]!);
    expect(vocabulary).toHaveLength(1024);
    expect(vocabulary.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 3);
    expect(vocabulary.map(({ rank }) => rank).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 1024 }, (_, i) => i + 1),
    );
    for (const [at, entry] of alone.prompt_logprobs!.entries())
      if (at > 0)
        expect(all.prompt_logprobs![at]![ids[at]!]!.logprob).toBeCloseTo(entry![ids[at]!]!.logprob, 4);
    expect(await runtime.detokenize([ids[3]!])).toBe(alone.prompt_logprobs![3]![ids[3]!]!.decoded_token);
  });

  it('are computed once for all choices', async () => {
    const runtime = await openRuntime(TINY_LLAMA, undefined);
    const before = runtime.stats().promptTokens;
    const answer = await runtime.createCompletion(
      ask(QUESTION, { prompt_logprobs: 1, n: 4, temperature: 1, seed: 3, max_tokens: 4 }),
    );
    expect(answer.prompt_logprobs).toHaveLength(answer.usage.prompt_tokens);
    expect(answer.choices).toHaveLength(4);
    expect(runtime.stats().promptTokens - before).toBe(answer.usage.prompt_tokens);
    const plain = await runtime.createCompletion(
      ask(QUESTION, { n: 4, temperature: 1, seed: 3, max_tokens: 4 }),
    );
    expect(answer.choices.map(({ message }) => message.content)).toEqual(
      plain.choices.map(({ message }) => message.content),
    );
    expect(plain.prompt_logprobs).toBeNull();
  });

  it('stream nothing', async () => {
    const runtime = await openRuntime(EMBEDDED, undefined);
    const request = { ...ask('Hello', { prompt_logprobs: 0, max_tokens: 2 }), stream: true as const };
    for await (const chunk of await runtime.createCompletion(request))
      expect(chunk).not.toHaveProperty('prompt_logprobs');
  });

  it('of a long prompt hold the whole vocabulary only up to a limit', async () => {
    const runtime = await openRuntime(EMBEDDED, undefined, { contextSize: 1024 });
    const words = Array.from({ length: 200 }, (_, i) => `w${i % 7}`).join(' ');
    const answer = await runtime.createCompletion(ask(words, { prompt_logprobs: -1, max_tokens: 1 }));
    expect(answer.prompt_logprobs!.length).toBeGreaterThan(400);
    expect(Object.keys(answer.prompt_logprobs!.at(-1)!)).toHaveLength(1024);
    expect(() => createPromptScores(-1, new Int32Array(4000), 150_000)).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(/at most 1048 fit/),
      }),
    );
  });
});

describe('top_logprobs', () => {
  it('of many tokens hold the whole vocabulary only up to a limit, or in a stream', async () => {
    const runtime = await openRuntime(EMBEDDED, undefined);
    const whole = { logprobs: true, top_logprobs: -1, temperature: 1, seed: 3 };
    await expect(
      runtime.createCompletion(ask('Hello', { ...whole, n: 5, max_tokens: 1000 })),
    ).rejects.toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        param: 'top_logprobs',
        message: expect.stringMatching(/up to 5000 tokens .* max_completion_tokens of at most 819 /),
      }),
    );
    await expect(
      runtime.createCompletion(ask('Hello', { ...whole, top_logprobs: 1000, n: 5, max_tokens: 1000 })),
    ).rejects.toThrow(/1000 alternatives/);
    const { choices } = await runtime.createCompletion(ask('Hello', { ...whole, max_tokens: 2 }));
    expect(choices[0]!.logprobs!.content![0]!.top_logprobs).toHaveLength(1024);
    const few = { ...whole, top_logprobs: 20, n: 5, max_tokens: 1000, stop: ['e'] };
    expect((await runtime.createCompletion(ask('Hello', few))).choices).toHaveLength(5);
    const request = {
      ...ask('Hello', { ...whole, n: 5, max_tokens: 1000, stop: ['e'] }),
      stream: true as const,
    };
    let count = 0;
    for await (const chunk of await runtime.createCompletion(request))
      for (const { top_logprobs } of chunk.choices[0]?.logprobs?.content ?? []) {
        expect(top_logprobs).toHaveLength(1024);
        count += 1;
      }
    expect(count).toBeGreaterThan(0);
  });
});
