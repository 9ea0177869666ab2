/** Rows of one sequence that stand on drafts: each gives what the sampler gives without drafts. */
import { describe, expect, it } from 'vitest';
import {
  loadAddon,
  ROW_STATUS,
  type SampledRows,
  type SamplerHandle,
} from '../../src/engine/native/index.ts';
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { chiSquareDeviation } from '../fakes/chi-square.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { ReferenceSampler } from '../fakes/reference-sampler.ts';
import { nativeSampler, wordOf } from '../fakes/sampling.ts';

const SIZE = 40;
const rows = new (loadAddon().RowSampler)(SIZE, 2);

/** One step: each sequence is its sampler, its drafts and its logits, (1 + drafts, SIZE). */
async function sample(
  sequences: readonly { sampler: SamplerHandle; drafts: readonly number[]; logits: Float32Array }[],
): Promise<SampledRows> {
  const all = sequences.flatMap(({ sampler, drafts }) =>
    [-1, ...drafts].map((draft) => ({ sampler, draft })),
  );
  const logits = new Float32Array(all.length * SIZE);
  let at = 0;
  for (const sequence of sequences) {
    logits.set(sequence.logits, at);
    at += sequence.logits.length;
  }
  const { samples } = await rows.sample({
    logits,
    sampleRows: Int32Array.from(all.keys()),
    samplers: all.map(({ sampler }) => sampler),
    drafts: {
      drafted: Int32Array.from(all, ({ draft }) => draft),
      drafters: all.map(() => null),
      limits: new Int32Array(3 * all.length),
    },
    scoreRows: new Int32Array(0),
  });
  return samples;
}

const SETTINGS: readonly (readonly [string, SamplerPlanOptions])[] = [
  ['plain', {}],
  ['temperature 0.5', { temperature: 0.5 }],
  ['temperature 1.5', { temperature: 1.5 }],
  ['top_k 4', { top_k: 4 }],
  ['top_k 12', { top_k: 12 }],
  ['top_p 0.4', { top_p: 0.4 }],
  ['top_p 0.9', { top_p: 0.9 }],
  ['min_p 0.05', { min_p: 0.05 }],
  ['min_p 0.3', { min_p: 0.3 }],
  ['repetition 1.3', { repetition_penalty: 1.3 }],
  ['repetition 0.8', { repetition_penalty: 0.8 }],
  ['frequency 1', { frequency_penalty: 1 }],
  ['frequency -0.5', { frequency_penalty: -0.5 }],
  ['presence 1', { presence_penalty: 1 }],
  ['presence -1', { presence_penalty: -1 }],
  ['bias', { logitBiasIds: Int32Array.of(3, 9), logitBiasValues: Float32Array.of(4, -4) }],
  ['bad words', { bad_words: [wordOf(5, 7), wordOf(2)] }],
  ['min_tokens', { min_tokens: 3, stopIds: Int32Array.of(1, 8) }],
  ['allowed ids', { allowed: Uint32Array.of(0b10111111_11110101_10101010_11111110, 0b11) }],
  ['top_k and top_p', { top_k: 9, top_p: 0.8, temperature: 1.2 }],
  ['all filters', { top_k: 20, top_p: 0.95, min_p: 0.02, temperature: 0.8, presence_penalty: 0.5 }],
].map(([name, plan]) => [name, { vocabSize: SIZE, ...(plan as object) }] as [string, SamplerPlanOptions]);

/** Deviation that has a probability of 0.001 with 39 degrees of freedom. It would be larger with fewer. */
const MOST_DEVIATION = 3.7;
const DRAWS = 8_000;
const STARTED = [5];

describe('rows that stand on drafts', () => {
  it.each(SETTINGS)('follow the exact probabilities: %s', async (_, plan) => {
    const random = randomNumbers(41);
    const first = Float32Array.from({ length: SIZE }, () => 3 * random() - 1);
    const second = Float32Array.from({ length: SIZE }, () => 3 * random() - 1);
    const reference = new ReferenceSampler(plan, 1n);
    for (const id of STARTED) reference.accept(id);
    const expected = reference.distribution(first);
    const draft = expected.indexOf(Math.max(...expected));
    const found = { first: [] as number[], second: [] as number[] };
    for (let seed = 0; seed < DRAWS; seed += 100) {
      const sequences = Array.from({ length: 100 }, (_, i) => ({
        sampler: nativeSampler(plan, BigInt(seed + i), { output: STARTED }),
        drafts: [draft],
        logits: Float32Array.of(...first, ...second),
      }));
      const { tokens, status } = await sample(sequences);
      for (let row = 0; row < tokens.length; row += 2) {
        found.first.push(tokens[row]!);
        expect(status[row + 1]).toBe(tokens[row] === draft ? ROW_STATUS.SAMPLED : ROW_STATUS.PASSED_OVER);
        if (tokens[row] === draft) found.second.push(tokens[row + 1]!);
      }
    }
    reference.accept(draft);
    const after = reference.distribution(second);
    expect(chiSquareDeviation(Int32Array.from(found.first), expected)).toBeLessThan(MOST_DEVIATION);
    expect(found.second.length).toBeGreaterThan(DRAWS / 50);
    expect(chiSquareDeviation(Int32Array.from(found.second), after)).toBeLessThan(MOST_DEVIATION);
  });

  it('give token, log-probability and state of a sampler that never saw a draft', async () => {
    const random = randomNumbers(8);
    for (let round = 0; round < 200; round++) {
      const [, plan] = SETTINGS[round % SETTINGS.length]!;
      const options = { ...plan, topLogprobs: 3 };
      const count = 1 + Math.floor(random() * 5);
      const logits = Float32Array.from({ length: SIZE * (count + 1) }, () => 6 * random() - 3);
      const alone = nativeSampler(options, BigInt(round));
      const expected: { token: number; logprob: number }[] = [];
      for (let i = 0; i <= count; i++) {
        const row = alone.sample(logits.slice(i * SIZE, (i + 1) * SIZE));
        if (row.status !== ROW_STATUS.SAMPLED) break;
        alone.accept(row.token);
        expected.push(row);
      }
      // right up to a random place
      const right = Math.floor(random() * (count + 1));
      const drafts = Array.from({ length: count }, (_, i) => {
        const token = expected[i]?.token ?? 0;
        return i < right ? token : (token + 1) % SIZE;
      });
      const sampler = nativeSampler(options, BigInt(round));
      const found = await sample([{ sampler, drafts, logits }]);
      const reached = Math.min(right + 1, expected.length);
      for (let i = 0; i < reached; i++) {
        expect(found.tokens[i]).toBe(expected[i]!.token);
        expect(found.logprobs[i]).toBe(expected[i]!.logprob);
      }
      for (let i = right + 1; i <= count; i++) expect(found.status[i]).toBe(ROW_STATUS.PASSED_OVER);
      const twin = nativeSampler(options, BigInt(round));
      for (let i = 0; i < reached; i++) twin.accept(expected[i]!.token);
      const next = Float32Array.from({ length: SIZE }, () => 6 * random() - 3);
      expect(sampler.sample(next)).toEqual(twin.sample(next));
    }
  });
});
