/** Log-probabilities, ranks and best tokens against float64 log-softmax; rows with infinities and NaN. */
import { describe, expect, it } from 'vitest';
import { testing as addon } from '../addon/testing-addon.ts';
import { maskOf, randomRow } from '../fakes/random-row.ts';
import { bestFirst, logSoftmax, ReferenceSampler } from '../fakes/reference-sampler.ts';
import { nativeSampler } from '../fakes/sampling.ts';

const expectClose = (got: ArrayLike<number>, expected: ArrayLike<number>, tolerance = 1e-4) => {
  expect(got.length).toBe(expected.length);
  for (let i = 0; i < got.length; i++)
    if (got[i] !== expected[i]) expect(Math.abs(got[i]! - expected[i]!), `[${i}]`).toBeLessThan(tolerance);
};

describe('scoreRow', () => {
  it.each([
    [1, 0],
    [5, 5],
    [64, 3],
    [1000, 1000],
    [32_000, 20],
    [151_936, 20],
  ])('a row of %d, %d best', (size, k) => {
    const logits = randomRow(size, size);
    const logprobs = logSoftmax(logits);
    const order = bestFirst(logits);
    for (const token of [0, size - 1, order[0]!, order[Math.floor(size / 2)]!]) {
      const got = addon.scoreRow(logits, token, k);
      expectClose([got.logprob], [logprobs[token]!], 1e-5 * Math.max(1, Math.abs(logprobs[token]!)));
      expect(Array.from(got.topIds)).toEqual(order.slice(0, k));
      expectClose(
        got.topLogprobs,
        order.slice(0, k).map((id) => logprobs[id]!),
      );
      const place = order.slice(0, k).indexOf(token);
      expect(got.rank).toBe(
        place >= 0 ? place + 1 : logits.filter((value) => value >= logits[token]!).length,
      );
    }
  });

  it('orders ties by id; ties inflate the rank of a token outside the list', () => {
    const logits = Float32Array.of(1, 3, 3, 0, 3, 1);
    expect(Array.from(addon.scoreRow(logits, 0, 4).topIds)).toEqual([1, 2, 4, 0]);
    expect(addon.scoreRow(logits, 4, 4).rank).toBe(3);
    expect(addon.scoreRow(logits, 4, 0).rank).toBe(3);
    expect(addon.scoreRow(logits, 1, 0).rank).toBe(3);
    expect(addon.scoreRow(logits, 3, 2).rank).toBe(6);
  });

  it('k beyond the vocabulary gives the vocabulary', () => {
    expect(Array.from(addon.scoreRow(Float32Array.of(1, 2), 0, 99).topIds)).toEqual([1, 0]);
  });

  it('impossible tokens are last, lowest id first, with -Infinity', () => {
    const got = addon.scoreRow(Float32Array.of(-Infinity, 0, -Infinity, 0), 0, 4);
    expect(got).toMatchObject({ logprob: -Infinity, rank: 3 });
    expect(Array.from(got.topIds)).toEqual([1, 3, 0, 2]);
    expect(Array.from(got.topLogprobs)).toEqual([
      Math.fround(-Math.LN2),
      Math.fround(-Math.LN2),
      -Infinity,
      -Infinity,
    ]);
  });

  it('huge logits keep their differences', () => {
    expect(addon.scoreRow(Float32Array.of(1e30, -1e30, 0), 0, 0).logprob).toBe(0);
    expectClose(
      [addon.scoreRow(Float32Array.of(4000, 4001), 0, 0).logprob],
      [-1 - Math.log1p(Math.exp(-1))],
      1e-6,
    );
  });
});

describe('sampling with log-probabilities', () => {
  const SIZE = 3000;
  const logits = randomRow(SIZE, 5);
  const everything = {
    vocabSize: SIZE,
    temperature: 0.8,
    top_k: 40,
    top_p: 0.95,
    min_p: 0.05,
    repetition_penalty: 1.1,
    frequency_penalty: 0.1,
    topLogprobs: 5,
    logitBiasIds: Int32Array.of(7),
    logitBiasValues: Float32Array.of(20),
  };

  it('are the model’s own by default: before grammar mask, bias, penalties and temperature', () => {
    const logprobs = logSoftmax(logits);
    const best = bestFirst(logits);
    const mask = maskOf(SIZE, [7, 8, 9]);
    const got = nativeSampler(everything, 3n, { output: [7, 8] }).sample(logits, mask);
    expect([7, 8, 9]).toContain(got.token);
    expectClose([got.logprob], [logprobs[got.token]!]);
    expect(Array.from(got.topIds)).toEqual(best.slice(0, 5));
    expectClose(
      got.topLogprobs,
      best.slice(0, 5).map((id) => logprobs[id]!),
    );
    expect(got.rank).toBe(logits.filter((value) => value >= logits[got.token]!).length);
  });

  it.each([
    ['none', -1, 0],
    ['the chosen token only', 0, 0],
    ['all', SIZE, SIZE],
  ])('as many as asked for: %s', (_, topLogprobs, length) => {
    const got = nativeSampler({ vocabSize: SIZE, topLogprobs }, 3n).sample(logits);
    expect(got.topIds.length).toBe(length);
    expect(got.topLogprobs.length).toBe(length);
    if (topLogprobs < 0) expect(got).toMatchObject({ logprob: 0, rank: 0 });
    else expect(got.logprob).toBeLessThan(0);
  });

  it.each([
    ['everything', everything],
    ['no filter', { vocabSize: SIZE, temperature: 0.7, topLogprobs: 5, presence_penalty: 0.5 }],
    ['top_p alone', { vocabSize: SIZE, top_p: 0.6, topLogprobs: 5 }],
    ['greedy', { ...everything, temperature: 0 }],
    ['more than there are', { ...everything, top_k: 3, topLogprobs: 10 }],
  ])('after the whole pipeline when asked for: %s', (_, options) => {
    const plan = { ...options, processedLogprobs: true };
    const history = { prompt: [1, 2, 3], output: [7, 8, 8] };
    const reference = new ReferenceSampler(plan, 3n);
    reference.acceptPrompt(history.prompt);
    for (const id of history.output) reference.accept(id);
    const expected = reference.sample(logits)!;
    const got = nativeSampler(plan, 3n, history).sample(logits);
    expect(got.token).toBe(expected.token);
    expectClose([got.logprob], [expected.logprob]);
    expect(got.rank).toBe(expected.rank);
    expect(Array.from(got.topIds)).toEqual(expected.topIds);
    expectClose(got.topLogprobs, expected.topLogprobs);
  });

  it('after a hook come from the raw logits', () => {
    const sampler = nativeSampler({ vocabSize: SIZE, topLogprobs: 2 }, 3n);
    const row = sampler.prepare(logits).fill(-Infinity);
    row[17] = 0;
    const got = sampler.sampleEdited(logits, row);
    expect(got.token).toBe(17);
    expectClose([got.logprob], [logSoftmax(logits)[17]!]);
  });
});

describe('rows that are no ordinary numbers', () => {
  const PLANS = [{}, { temperature: 0 }, { top_k: 2 }, { top_p: 0.9 }, { min_p: 0.1 }, { topLogprobs: 3 }];

  it.each([0, 1, 63, 64, 100, 199])('NaN at %d is a status', (place) => {
    const logits = new Float32Array(200);
    logits[place] = Number.NaN;
    for (const plan of PLANS)
      expect(nativeSampler({ ...plan, vocabSize: 200 }, 1n).sample(logits)).toMatchObject({
        status: 2,
        token: -1,
      });
    expect(addon.scoreRow(logits, 5, 0).status).toBe(2);
    const sampler = nativeSampler({ vocabSize: 200 }, 1n);
    expect(sampler.sampleEdited(new Float32Array(200), logits).status).toBe(2);
  });

  it('+Infinity shares the mass among its tokens', () => {
    const logits = Float32Array.of(0, Infinity, 3, Infinity, -Infinity);
    for (const plan of PLANS) {
      const draws = nativeSampler({ ...plan, vocabSize: 5 }, 1n).drawMany(logits, 1000);
      expect(new Set(draws)).toEqual(new Set(plan.temperature === 0 ? [1] : [1, 3]));
    }
    expectClose([addon.scoreRow(logits, 3, 0).logprob], [-Math.LN2], 1e-6);
    expect(addon.scoreRow(logits, 2, 0).logprob).toBeLessThan(-1e30);
  });

  it('-Infinity is never drawn', () => {
    const logits = new Float32Array(500).fill(-Infinity);
    logits[123] = -5;
    logits[456] = -5;
    for (const plan of [...PLANS, { temperature: 1e30 }, { temperature: 1e-30 }]) {
      const draws = nativeSampler({ ...plan, vocabSize: 500 }, 1n).drawMany(logits, 1000);
      expect(new Set(draws)).toEqual(new Set(plan.temperature === 0 ? [123] : [123, 456]));
    }
  });

  it('the smallest and largest temperatures behave as their limits', () => {
    const logits = Float32Array.of(1, 2, 3);
    expect(new Set(nativeSampler({ vocabSize: 3, temperature: 1e-38 }, 1n).drawMany(logits, 1000))).toEqual(
      new Set([2]),
    );
    const counts = [0, 0, 0];
    for (const id of nativeSampler({ vocabSize: 3, temperature: 3e38 }, 1n).drawMany(logits, 3000))
      counts[id]!++;
    expect(Math.min(...counts)).toBeGreaterThan(900);
  });
});
