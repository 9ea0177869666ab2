/** Ties, bad words, min_tokens and masks: which tokens are possible. */
import { describe, expect, it } from 'vitest';
import { maskOf } from '../fakes/random-row.ts';
import { drawnTokens, logitsOf, nativeSampler, wordOf } from '../fakes/sampling.ts';

describe('ties', () => {
  it.each([
    ['first of three', [1, 7, 7, 7], 1],
    ['zero and negative zero are equal', [-0, 0, -1], 0],
    ['in different blocks', [...Array(200).fill(0), 3, ...Array(100).fill(1), 3], 200],
    ['all equal', Array(300).fill(-4), 0],
  ])('greedy takes the lowest index: %s', (_, logits, expected) => {
    const plan = { vocabSize: logits.length, temperature: 0 };
    expect(nativeSampler(plan, 0n).sample(Float32Array.from(logits)).token).toBe(expected);
  });

  it('greedy compares penalised tokens with the others by index too', () => {
    const plan = { vocabSize: 3, temperature: 0, presence_penalty: 1 };
    expect(nativeSampler(plan, 0n, { output: [0] }).sample(Float32Array.of(6, 5, 5)).token).toBe(0);
    expect(nativeSampler(plan, 0n, { output: [2] }).sample(Float32Array.of(1, 5, 6)).token).toBe(1);
  });

  it('top_k keeps every token that equals the k-th', () => {
    expect(drawnTokens({ vocabSize: 6, top_k: 2 }, Float32Array.of(1, 2, 1, 3, 2, 0))).toEqual([1, 3, 4]);
    expect(drawnTokens({ vocabSize: 4, top_k: 1 }, new Float32Array(4))).toEqual([0, 1, 2, 3]);
  });

  it('top_k counts penalised tokens at their penalised value', () => {
    const plan = { vocabSize: 4, top_k: 2, presence_penalty: 2 };
    expect(drawnTokens(plan, Float32Array.of(4, 3, 2.5, 2), { output: [0] })).toEqual([1, 2]);
  });

  it('top_p at a tie keeps the lowest ids', () => {
    expect(drawnTokens({ vocabSize: 8, top_p: 0.5 }, new Float32Array(8))).toEqual([0, 1, 2, 3]);
    expect(drawnTokens({ vocabSize: 10, top_p: 0.3 }, new Float32Array(10))).toEqual([0, 1, 2]);
  });

  it('top_p masks a token whose cumulative mass equals 1 - p', () => {
    expect(drawnTokens({ vocabSize: 3, top_p: 0.75 }, logitsOf([0.5, 0.25, 0.25]))).toEqual([0, 1]);
  });

  it('top_p at a tie in a large, flat row', () => {
    const drawn = drawnTokens({ vocabSize: 4096, top_p: 0.25 }, new Float32Array(4096), {}, 20_000);
    expect(drawn.at(-1)).toBeLessThan(1024);
    expect(drawn.length).toBe(1024);
  });

  it('min_p keeps a token whose probability equals the limit', () => {
    expect(drawnTokens({ vocabSize: 3, min_p: 0.5 }, logitsOf([0.5, 0.25, 0.2]))).toEqual([0, 1]);
    expect(drawnTokens({ vocabSize: 3, min_p: 1 }, Float32Array.of(2, 2, 1.999))).toEqual([0, 1]);
  });
});

describe('bad words', () => {
  const flat = new Float32Array(6);

  it('of several tokens forbid the last one after the others', () => {
    const plan = { vocabSize: 6, bad_words: [wordOf(1, 2, 3)] };
    expect(drawnTokens(plan, flat, { output: [1, 2] })).toEqual([0, 1, 2, 4, 5]);
    expect(drawnTokens(plan, flat, { output: [4, 1, 2] })).toEqual([0, 1, 2, 4, 5]);
    expect(drawnTokens(plan, flat, { output: [1, 2, 2] })).toEqual([0, 1, 2, 3, 4, 5]);
    expect(drawnTokens(plan, flat, { output: [2] })).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('never start in the prompt', () => {
    const plan = { vocabSize: 6, bad_words: [wordOf(1, 2, 3)] };
    expect(drawnTokens(plan, flat, { prompt: [1], output: [2] })).toEqual([0, 1, 2, 3, 4, 5]);
    expect(drawnTokens(plan, flat, { prompt: [1, 2] })).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('of different lengths act together, after long outputs too', () => {
    const plan = { vocabSize: 6, bad_words: [wordOf(0), wordOf(5, 1), wordOf(4, 5, 2)] };
    const output = [...Array(1000).fill(3), 4, 5];
    expect(drawnTokens(plan, flat, { output })).toEqual([3, 4, 5]);
  });

  it('that repeat one token', () => {
    const plan = { vocabSize: 6, bad_words: [wordOf(2, 2)] };
    expect(drawnTokens(plan, flat, { output: [2] })).toEqual([0, 1, 3, 4, 5]);
    expect(drawnTokens(plan, flat)).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

describe('min_tokens', () => {
  const plan = { vocabSize: 4, min_tokens: 2, stopIds: Int32Array.of(0, 3) };

  it.each([
    [[], [1, 2]],
    [[1], [1, 2]],
    [
      [1, 1],
      [0, 1, 2, 3],
    ],
  ])('after %j the possible tokens are %j', (output, expected) => {
    expect(drawnTokens(plan, new Float32Array(4), { prompt: [1, 2, 1], output })).toEqual(expected);
  });

  it('can leave nothing', () => {
    expect(nativeSampler(plan, 0n).sample(new Float32Array(4), maskOf(4, [0, 3])).status).toBe(1);
  });
});

describe('masks', () => {
  it.each([31, 32, 33, 64, 100, 2048, 4133])(
    'the last token of a vocabulary of %d can be all there is',
    (size) => {
      const mask = maskOf(size, [size - 1]);
      const logits = new Float32Array(size);
      for (const plan of [{}, { temperature: 0 }, { top_k: 3 }, { top_p: 0.5 }, { min_p: 0.5 }])
        expect(nativeSampler({ ...plan, vocabSize: size }, 1n).sample(logits, mask).token).toBe(size - 1);
    },
  );

  it('ignores bits past the vocabulary', () => {
    const logits = new Float32Array(3);
    const mask = Uint32Array.of(0xffff_fff8);
    expect(nativeSampler({ vocabSize: 3 }, 1n).sample(logits, mask).status).toBe(1);
    expect(nativeSampler({ vocabSize: 3, allowed: mask }, 1n).sample(logits).status).toBe(1);
  });

  it('a masked token far above the others does not disturb them', () => {
    const logits = Float32Array.of(1e30, 1, 1 + Math.log(3));
    const draws = nativeSampler({ vocabSize: 3 }, 8n).drawMany(logits, 40_000, maskOf(3, [1, 2]));
    expect(draws.filter((id) => id === 2).length / 40_000).toBeCloseTo(0.75, 2);
  });
});
