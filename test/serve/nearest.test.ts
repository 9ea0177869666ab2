/** Vectors -> their similarity and the nearest ones; transformers.js and a full sort are the oracles. */
import { cos_sim } from '@huggingface/transformers';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { nearest, similarity } from '../../src/index.ts';

const value = fc.float({ min: -8, max: 8, noNaN: true });
const vectors = fc.array(fc.array(value, { minLength: 4, maxLength: 4 }), { maxLength: 30 });

it('is the cosine that transformers.js computes', () => {
  fc.assert(
    fc.property(
      fc.tuple(
        fc.array(value, { minLength: 3, maxLength: 3 }),
        fc.array(value, { minLength: 3, maxLength: 3 }),
      ),
      ([a, b]) => {
        if (![a, b].every((one) => one.some((x) => Math.abs(x) > 1e-3))) return;
        expect(similarity(a, b)).toBeCloseTo(cos_sim(a, b), 9);
        expect(similarity(Float32Array.from(a), b)).toBe(similarity(b, a));
      },
    ),
  );
  expect(similarity([0, 0], [1, 2])).toBe(0);
  expect(similarity([1, 2], [2, 4])).toBeCloseTo(1, 12);
});

it('finds what a sort of all finds, in lists and in one array', () => {
  fc.assert(
    fc.property(
      vectors,
      fc.array(value, { minLength: 4, maxLength: 4 }),
      fc.integer({ min: 0, max: 40 }),
      (all, query, n) => {
        const sorted = all
          .map((vector, index) => ({ index, score: similarity(vector, query) }))
          .toSorted((a, b) => b.score - a.score);
        expect(nearest(all, query, n)).toEqual(sorted.slice(0, n));
        expect(nearest(Float64Array.from(all.flat()), query, n)).toEqual(sorted.slice(0, n));
      },
    ),
  );
  expect(
    nearest(
      Array.from({ length: 12 }, () => [1]),
      [2],
    ),
  ).toHaveLength(10);
});

it.each([
  [() => similarity([1, 2], [1]), /^b: expected 2 numbers, as the other vector has, got 1$/],
  [() => similarity([], []), /^a: expected at least one number/],
  [() => similarity([Number.NaN], [1]), /^a: expected finite numbers/],
  [() => nearest([[1, 2], [1]], [1, 2]), /^vectors\.1: expected 2 numbers/],
  [() => nearest(new Float32Array(5), [1, 2]), /^vectors: expected vectors of 2 numbers each, got 5/],
  [() => nearest('ab' as never, [1, 2]), /^vectors: expected vectors of 2 numbers each/],
  [() => nearest([[1]], 'a' as never), /^query: expected a list of numbers/],
  [() => nearest([[1]], [1], -1), /^n: expected an integer from 0, got -1/],
])('refuses what is not to be compared', (call, message) => {
  expect(call).toThrow(message);
});
