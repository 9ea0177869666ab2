/** Operators together: their order, and what can undo what. */
import { describe, expect, it } from 'vitest';
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { chiSquareDeviation } from '../fakes/chi-square.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { maskOf } from '../fakes/random-row.ts';
import { ReferenceSampler } from '../fakes/reference-sampler.ts';
import { drawnTokens, logitsOf, nativeSampler, wordOf } from '../fakes/sampling.ts';

describe('order of the pipeline', () => {
  it('bias comes before the repetition penalty, which scales the biased value', () => {
    // 4 + 4 = 8, halved: 4. The other way round: 2 + 4 = 6, which would beat token 1.
    const plan = {
      vocabSize: 2,
      temperature: 0,
      repetition_penalty: 2,
      logitBiasIds: Int32Array.of(0),
      logitBiasValues: Float32Array.of(4),
    };
    expect(nativeSampler(plan, 0n, { prompt: [0] }).sample(Float32Array.of(4, 5)).token).toBe(1);
  });

  it('repetition comes before frequency and presence', () => {
    // 4 / 2 - 1 - 1 = 0. The other way round: (4 - 1 - 1) / 2 = 1.
    const plan = {
      vocabSize: 2,
      temperature: 0,
      repetition_penalty: 2,
      frequency_penalty: 1,
      presence_penalty: 1,
    };
    expect(nativeSampler(plan, 0n, { output: [0] }).sample(Float32Array.of(4, 0.5)).token).toBe(1);
  });

  it('temperature comes before min_p', () => {
    // At temperature 2 the ratio 0.25 becomes 0.5.
    const logits = logitsOf([0.8, 0.2]);
    expect(drawnTokens({ vocabSize: 2, temperature: 2, min_p: 0.4 }, logits)).toEqual([0, 1]);
    expect(drawnTokens({ vocabSize: 2, min_p: 0.4 }, logits)).toEqual([0]);
  });

  it('min_p comes before top_k: it sees the whole vocabulary, and top_k only what is left', () => {
    const logits = logitsOf([0.5, 0.3, 0.15, 0.05]);
    expect(drawnTokens({ vocabSize: 4, min_p: 0.5, top_k: 3 }, logits)).toEqual([0, 1]);
    expect(drawnTokens({ vocabSize: 4, min_p: 0.2, top_k: 2 }, logits)).toEqual([0, 1]);
  });

  it('top_p sees probabilities renormalised after top_k', () => {
    // Without top_k, 0.4 + 0.3 < 0.75. Of the two remaining tokens the first has 0.4 / 0.7 = 0.57, so token 1 is also needed.
    const logits = logitsOf([0.4, 0.3, 0.2, 0.1]);
    expect(drawnTokens({ vocabSize: 4, top_k: 2, top_p: 0.5 }, logits)).toEqual([0]);
    expect(drawnTokens({ vocabSize: 4, top_p: 0.5 }, logits)).toEqual([0, 1]);
    expect(drawnTokens({ vocabSize: 4, top_k: 2, top_p: 0.75 }, logits)).toEqual([0, 1]);
    expect(drawnTokens({ vocabSize: 4, top_p: 0.75 }, logits)).toEqual([0, 1, 2]);
  });

  it('top_p sees probabilities renormalised after min_p', () => {
    const logits = logitsOf([0.4, 0.3, 0.2, 0.1]);
    expect(drawnTokens({ vocabSize: 4, min_p: 0.7, top_p: 0.55 }, logits)).toEqual([0]);
    expect(drawnTokens({ vocabSize: 4, top_p: 0.55 }, logits)).toEqual([0, 1]);
  });

  it('greedy ignores temperature-side filters and honours everything before them', () => {
    const logits = Float32Array.of(1, 5, 4, 3);
    const filters = { vocabSize: 4, temperature: 0, top_k: 1, top_p: 0.01, min_p: 1 };
    expect(nativeSampler(filters, 0n).sample(logits).token).toBe(1);
    expect(nativeSampler({ ...filters, bad_words: [wordOf(1)] }, 0n).sample(logits).token).toBe(2);
    expect(nativeSampler(filters, 0n).sample(logits, maskOf(4, [0, 3])).token).toBe(3);
    const penalised = nativeSampler({ ...filters, presence_penalty: 2 }, 0n, { output: [1] });
    expect(penalised.sample(logits).token).toBe(2);
  });
});

describe('masks intersect, and nothing undoes them', () => {
  const logits = new Float32Array(6);
  const plan = {
    vocabSize: 6,
    allowed: maskOf(6, [0, 1, 2, 3]),
    bad_words: [wordOf(1)],
    min_tokens: 1,
    stopIds: Int32Array.of(2),
    logitBiasIds: Int32Array.of(0, 1, 2, 4, 5),
    logitBiasValues: Float32Array.of(1, 100, 100, 100, 100),
  };

  it('allowed ids, bad words, min_tokens and grammar', () => {
    const draws = nativeSampler(plan, 5n).drawMany(logits, 5000, maskOf(6, [0, 1, 2, 3, 4]));
    expect([...new Set(draws)].sort()).toEqual([0, 3]);
    expect(new Set(nativeSampler(plan, 5n).drawMany(logits, 5000, maskOf(6, [3, 4, 5])))).toEqual(
      new Set([3]),
    );
  });

  it('a negative repetition reward cannot revive a masked token', () => {
    const rewarded = { ...plan, repetition_penalty: 0.5, frequency_penalty: -2, presence_penalty: -2 };
    expect(drawnTokens(rewarded, logits, { prompt: [1, 4, 5], output: [] })).toEqual([0, 3]);
  });

  it('nothing left is a status, not a token', () => {
    expect(nativeSampler(plan, 5n).sample(logits, maskOf(6, [4, 5]))).toMatchObject({ status: 1, token: -1 });
    expect(nativeSampler(plan, 5n).sample(new Float32Array(6).fill(-Infinity)).status).toBe(1);
  });
});

describe('random combinations follow the reference distribution', () => {
  const SIZE = 130;
  const next = randomNumbers(77);
  const pick = <T>(...choices: T[]) => choices[Math.floor(next() * choices.length)]!;
  const cases = Array.from({ length: 40 }, (_, index) => {
    const plan: SamplerPlanOptions = {
      vocabSize: SIZE,
      temperature: pick(0.6, 1, 1.7),
      top_k: pick(0, 5, 40),
      top_p: pick(1, 0.5, 0.95),
      min_p: pick(0, 0.02, 0.2),
      repetition_penalty: pick(1, 1.3),
      frequency_penalty: pick(0, 0.4, -0.2),
      presence_penalty: pick(0, 0.5),
      min_tokens: pick(0, 50),
      stopIds: Int32Array.of(3, 64),
      ...(pick(true, false) && { allowed: maskOf(SIZE, Array(100).keys()) }),
      ...(pick(true, false) && { bad_words: [wordOf(7), wordOf(1, 2, 9)] }),
      ...(pick(true, false) && {
        logitBiasIds: Int32Array.of(0, 11, 100),
        logitBiasValues: Float32Array.of(3, -2, 5),
      }),
    };
    const logits = Float32Array.from({ length: SIZE }, () => 6 * next() - 3);
    const mask = pick(
      undefined,
      maskOf(
        SIZE,
        Array.from(Array(SIZE).keys()).filter((id) => id % 5 !== 0),
      ),
    );
    return { index, plan, logits, mask };
  });

  it.each(cases)('combination $index', ({ plan, logits, mask }) => {
    const history = { prompt: [4, 5, 6, 100, 4], output: [64, 8, 8, 1, 2] };
    const reference = new ReferenceSampler(plan, 1n);
    reference.acceptPrompt(history.prompt);
    for (const id of history.output) reference.accept(id);
    const draws = nativeSampler(plan, 1n, history).drawMany(logits, 100_000, mask);
    expect(chiSquareDeviation(draws, reference.distribution(logits, mask))).toBeLessThan(5);
  });
});
