/** Seeds, positions, hooks and kernel variants: what may and what may not change a token. */
import { describe, expect, it } from 'vitest';
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { testing } from '../addon/testing-addon.ts';
import { uniformAt } from '../fakes/philox.ts';
import { randomMask, randomRow } from '../fakes/random-row.ts';
import { ReferenceSampler } from '../fakes/reference-sampler.ts';
import { logitsOf, nativeSampler, wordOf } from '../fakes/sampling.ts';

const SIZE = 5000;
const logits = randomRow(SIZE, 1);

describe('uniforms', () => {
  it.each([
    [0n, 0],
    [5n, 1000],
    [-7n, 2 ** 33],
  ])('seed %d from position %d on', (seed, position) => {
    const expected = Array.from({ length: 5 }, (_, i) => uniformAt(seed, position + i));
    expect([...testing.uniforms(seed, position, 5)]).toEqual(expected);
  });
});

describe('seeds', () => {
  const draw = (seed: bigint) => nativeSampler({ vocabSize: SIZE }, seed).drawMany(logits, 200);

  it('the same seed gives the same tokens, another seed others', () => {
    expect(draw(1n)).toEqual(draw(1n));
    expect(draw(1n)).not.toEqual(draw(2n));
    expect(draw(0n)).not.toEqual(draw(1n << 32n));
    expect(draw(-1n)).toEqual(draw(2n ** 64n - 1n));
    expect(draw(-(2n ** 63n))).toEqual(draw(2n ** 63n));
  });

  it('the n-th token uses the n-th number of the stream, whatever was sampled before', () => {
    const walked = nativeSampler({ vocabSize: SIZE }, 9n);
    const tokens = Array.from({ length: 50 }, () => {
      walked.sample(randomRow(SIZE, 2)); // a row that is thrown away changes nothing
      const { token } = walked.sample(logits);
      walked.accept(token);
      return token;
    });
    expect(tokens).toEqual(Array.from(nativeSampler({ vocabSize: SIZE }, 9n).drawMany(logits, 50)));
    const late = nativeSampler({ vocabSize: SIZE }, 9n, { output: tokens.slice(0, 20) });
    expect(late.sample(logits).token).toBe(tokens[20]);
  });

  it.each([0n, 5n, -7n, 2n ** 63n - 1n])('seed %d follows the documented generator', (seed) => {
    const draws = nativeSampler({ vocabSize: 1000 }, seed).drawMany(new Float32Array(1000), 500);
    const expected = Array.from({ length: 500 }, (_, position) =>
      Math.floor(uniformAt(seed, position) * 1000),
    );
    expect(Array.from(draws)).toEqual(expected);
  });

  it('the first number of seed 0 is the published one', () => {
    const cells = 2 ** 20;
    const first = Number((0x6627e8d5n << 21n) ^ (0xe169c58dn >> 11n)) * 2 ** -53;
    const [token] = nativeSampler({ vocabSize: cells }, 0n).drawMany(new Float32Array(cells), 1);
    expect(token).toBe(Math.floor(first * cells));
  });

  it('a coin is drawn by its cumulative probability in order of id', () => {
    const draws = nativeSampler({ vocabSize: 2 }, 4n).drawMany(logitsOf([0.3, 0.7]), 300);
    expect(Array.from(draws)).toEqual(
      Array.from({ length: 300 }, (_, i) => (uniformAt(4n, i) < 0.3 ? 0 : 1)),
    );
  });
});

const PLANS: [string, Omit<SamplerPlanOptions, 'vocabSize'>][] = [
  ['greedy', { temperature: 0, frequency_penalty: 0.5 }],
  ['plain', {}],
  ['tempered', { temperature: 1.3, topLogprobs: 3 }],
  ['penalties', { repetition_penalty: 1.2, presence_penalty: 0.4, topLogprobs: 0 }],
  ['top_p', { top_p: 0.9, temperature: 2 }],
  ['top_k', { top_k: 50 }],
  ['min_p', { min_p: 0.01, processedLogprobs: true, topLogprobs: 4 }],
  [
    'everything',
    {
      temperature: 0.8,
      top_k: 40,
      top_p: 0.95,
      min_p: 0.05,
      repetition_penalty: 1.1,
      frequency_penalty: 0.1,
      topLogprobs: 5,
      bad_words: [wordOf(3, 4), wordOf(6)],
      min_tokens: 10,
      stopIds: Int32Array.of(0, 1),
      logitBiasIds: Int32Array.of(2, 4999),
      logitBiasValues: Float32Array.of(9, -9),
    },
  ],
];

const HISTORY = { prompt: Array.from(Array(300).keys(), (id) => id * 7), output: [1, 2, 3, 3, 4999] };

describe.each(PLANS)('%s', (_, options) => {
  const plan = { ...options, vocabSize: SIZE };

  it('an unedited row behind a hook gives the same result', () => {
    for (let seed = 0; seed < 40; seed++) {
      const row = randomRow(SIZE, seed);
      const mask = seed % 2 === 0 ? null : randomMask(SIZE, seed, 0.5);
      const sampler = nativeSampler(plan, BigInt(seed), HISTORY);
      const prepared = sampler.prepare(row, mask);
      expect(sampler.sampleEdited(row, prepared)).toEqual(sampler.sample(row, mask));
    }
  });

  it('the row is never modified', () => {
    const copy = logits.slice();
    nativeSampler(plan, 1n, HISTORY).drawMany(logits, 20);
    expect(copy).toEqual(logits);
  });

  it('every kernel variant gives the same result, bit for bit', () => {
    for (let seed = 0; seed < 60; seed++) {
      const size = seed % 3 === 0 ? SIZE : 1 + ((seed * 977) % SIZE);
      const here = { prompt: HISTORY.prompt.filter((id) => id < size), output: [0] };
      const small =
        size < SIZE
          ? {
              ...plan,
              bad_words: [],
              stopIds: Int32Array.of(0),
              logitBiasIds: new Int32Array(),
              logitBiasValues: new Float32Array(),
            }
          : plan;
      const row = randomRow(size, seed);
      const mask = seed % 2 === 0 ? null : randomMask(size, seed, seed % 4 === 1 ? 0.02 : 0.7);
      const results = testing
        .samplerKernels()
        .map((kernels) =>
          nativeSampler({ ...small, vocabSize: size }, BigInt(seed), here).sample(row, mask, kernels),
        );
      for (const result of results) expect(result).toEqual(results[0]);
    }
  });

  it('agrees with the reference token by token', () => {
    const native = nativeSampler(plan, 31n, HISTORY);
    const reference = new ReferenceSampler(plan, 31n);
    reference.acceptPrompt(HISTORY.prompt);
    for (const id of HISTORY.output) reference.accept(id);
    for (let step = 0; step < 40; step++) {
      const row = randomRow(SIZE, 1000 + step);
      const mask = step % 3 === 2 ? randomMask(SIZE, step, 0.6) : undefined;
      const got = native.sample(row, mask);
      const expected = reference.sample(row, mask)!;
      expect(got.token).toBe(expected.token);
      expect(got.rank).toBe(expected.rank);
      expect(Array.from(got.topIds)).toEqual(expected.topIds);
      native.accept(got.token);
      reference.accept(got.token);
    }
  });
});

it('every processor runs the plain kernels, and the fastest come last', () => {
  const names = testing.samplerKernels();
  expect(names[0]).toBe('scalar');
  expect(new Set(names).size).toBe(names.length);
});
