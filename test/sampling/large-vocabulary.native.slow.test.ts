/** The whole pipeline at 151,936 tokens against the reference. */
import { describe, expect, it } from 'vitest';
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { testing } from '../addon/testing-addon.ts';
import { randomMask, randomRow } from '../fakes/random-row.ts';
import { ReferenceSampler } from '../fakes/reference-sampler.ts';
import { nativeSampler } from '../fakes/sampling.ts';

const SIZE = 151_936;
const PROMPT = Array.from({ length: 500 }, (_, i) => (i * 7919) % SIZE);
const everything: SamplerPlanOptions = {
  vocabSize: SIZE,
  temperature: 0.8,
  top_k: 40,
  top_p: 0.95,
  min_p: 0.05,
  repetition_penalty: 1.1,
  frequency_penalty: 0.1,
  presence_penalty: 0.1,
  topLogprobs: 5,
};

const CASES: [string, SamplerPlanOptions][] = [
  ['whole pipeline', everything],
  ['whole pipeline, processed log-probabilities', { ...everything, processedLogprobs: true }],
  ['plain', { vocabSize: SIZE, topLogprobs: 20 }],
  ['tempered, penalised', { vocabSize: SIZE, temperature: 1.4, frequency_penalty: 0.5, topLogprobs: 0 }],
  ['large nucleus', { vocabSize: SIZE, temperature: 3, top_p: 0.9 }],
  ['large top_k', { vocabSize: SIZE, temperature: 3, top_k: 20_000, top_p: 0.9 }],
  ['small min_p', { vocabSize: SIZE, temperature: 2, min_p: 1e-4, top_p: 0.99 }],
  ['greedy', { vocabSize: SIZE, temperature: 0, repetition_penalty: 1.5, topLogprobs: 1 }],
];

const areClose = (a: number, b: number) => a === b || Math.abs(a - b) < 1e-4; // both may be -Infinity

describe('a vocabulary of 151,936', () => {
  it.each(CASES)('%s', { timeout: 120_000 }, (_, plan) => {
    for (const kernels of testing.samplerKernels()) {
      const native = nativeSampler(plan, 17n, { prompt: PROMPT });
      const reference = new ReferenceSampler(plan, 17n);
      reference.acceptPrompt(PROMPT);
      for (let step = 0; step < 4; step++) {
        const row = randomRow(SIZE, 500 + step);
        const mask = step === 3 ? randomMask(SIZE, step, 0.5) : undefined;
        const got = native.sample(row, mask, kernels);
        const expected = reference.sample(row, mask)!;
        expect(got.token).toBe(expected.token);
        expect(got.rank).toBe(expected.rank);
        expect(areClose(got.logprob, expected.logprob)).toBe(true);
        expect(Array.from(got.topIds)).toEqual(expected.topIds);
        expect(expected.topLogprobs.every((logprob, i) => areClose(got.topLogprobs[i]!, logprob))).toBe(true);
        native.accept(got.token);
        reference.accept(got.token);
      }
    }
  });
});
