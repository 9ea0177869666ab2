/** Each operator alone: 100,000 native draws against exact probabilities. */
import { describe, expect, it } from 'vitest';
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { chiSquareDeviation } from '../fakes/chi-square.ts';
import { maskOf } from '../fakes/random-row.ts';
import { softmax } from '../fakes/reference-sampler.ts';
import { type History, logitsOf, nativeSampler, wordOf } from '../fakes/sampling.ts';

const DRAWS = 100_000;
const SIZE = 70; // more than a block of 64, and no multiple of it
const LOGITS = Float32Array.from({ length: SIZE }, (_, id) => Math.fround(3 * Math.sin(7 * id) + (id % 3)));
const ORDER = Array.from(LOGITS.keys()).sort((a, b) => LOGITS[b]! - LOGITS[a]!);

/** Softmax of the logits after `edit`. */
const edited = (edit: (logit: number, id: number) => number) => softmax(Array.from(LOGITS, edit));
const without = (...ids: number[]) => edited((logit, id) => (ids.includes(id) ? -Infinity : logit));
const only = (ids: readonly number[]) => edited((logit, id) => (ids.includes(id) ? logit : -Infinity));

/** The best tokens whose mass first reaches `share`. */
function nucleus(share: number): number[] {
  const probabilities = softmax(LOGITS);
  let above = 0;
  return ORDER.filter((id) => {
    const stays = above < share;
    above += probabilities[id]!;
    return stays;
  });
}

const OUTPUT = [3, 3, 3, 10, 66, 66];
const count = (id: number) => OUTPUT.filter((other) => other === id).length;
const punish = (logit: number, factor: number) => (logit > 0 ? logit / factor : logit * factor);
const rare = ORDER.slice(0, 40).filter((id) => id % 2 === 0);

type Case = [name: string, plan: Omit<SamplerPlanOptions, 'vocabSize'>, history: History, expected: number[]];
const CASES: Case[] = [
  ['nothing', {}, {}, softmax(LOGITS)],
  ['temperature 0.5', { temperature: 0.5 }, {}, edited((logit) => logit / 0.5)],
  ['temperature 2.5', { temperature: 2.5 }, {}, edited((logit) => logit / 2.5)],
  ['top_k', { top_k: 7 }, {}, only(ORDER.slice(0, 7))],
  ['top_k 1', { top_k: 1 }, {}, only(ORDER.slice(0, 1))],
  ['top_k off', { top_k: -1 }, {}, softmax(LOGITS)],
  ['top_k beyond the vocabulary', { top_k: 10_000 }, {}, softmax(LOGITS)],
  ['top_p 0.6', { top_p: 0.6 }, {}, only(nucleus(0.6))],
  ['top_p 0.99', { top_p: 0.99 }, {}, only(nucleus(0.99))],
  ['top_p 0', { top_p: 0 }, {}, only(ORDER.slice(0, 1))],
  [
    'min_p',
    { min_p: 0.1 },
    {},
    edited((logit) => (Math.exp(logit - LOGITS[ORDER[0]!]!) < 0.1 ? -Infinity : logit)),
  ],
  ['min_p 1', { min_p: 1 }, {}, only(ORDER.slice(0, 1))],
  ['allowed ids', { allowed: maskOf(SIZE, rare) }, {}, only(rare)],
  [
    'logit bias',
    { logitBiasIds: Int32Array.of(5, 69), logitBiasValues: Float32Array.of(2, -1.5) },
    {},
    edited((logit, id) => logit + (id === 5 ? 2 : id === 69 ? -1.5 : 0)),
  ],
  [
    'bias on one id twice adds up',
    { logitBiasIds: Int32Array.of(5, 5), logitBiasValues: Float32Array.of(2, 1) },
    {},
    edited((logit, id) => logit + (id === 5 ? 3 : 0)),
  ],
  ['bad word', { bad_words: [wordOf(ORDER[0]!)] }, {}, without(ORDER[0]!)],
  ['min_tokens', { min_tokens: 1, stopIds: Int32Array.of(ORDER[1]!) }, {}, without(ORDER[1]!)],
  [
    'repetition penalty, prompt and output',
    { repetition_penalty: 1.5 },
    { prompt: [0, 1, 2, 2], output: OUTPUT },
    edited((logit, id) => ([0, 1, 2, ...OUTPUT].includes(id) ? punish(logit, 1.5) : logit)),
  ],
  [
    'repetition penalty below 1 rewards',
    { repetition_penalty: 0.7 },
    { output: OUTPUT },
    edited((logit, id) => (OUTPUT.includes(id) ? punish(logit, 0.7) : logit)),
  ],
  [
    'frequency penalty, output only',
    { frequency_penalty: 0.6 },
    { prompt: [0, 1, 2], output: OUTPUT },
    edited((logit, id) => logit - 0.6 * count(id)),
  ],
  [
    'presence penalty, output only',
    { presence_penalty: 0.9 },
    { prompt: [0, 1, 2], output: OUTPUT },
    edited((logit, id) => logit - (count(id) > 0 ? 0.9 : 0)),
  ],
  [
    'negative penalties reward',
    { frequency_penalty: -0.3, presence_penalty: -0.5 },
    { output: OUTPUT },
    edited((logit, id) => logit + 0.3 * count(id) + (count(id) > 0 ? 0.5 : 0)),
  ],
];

describe('100,000 draws follow the exact probabilities', () => {
  it.each(CASES)('%s', (_, plan, history, expected) => {
    const draws = nativeSampler({ ...plan, vocabSize: SIZE }, 20_24n, history).drawMany(LOGITS, DRAWS);
    expect(chiSquareDeviation(draws, expected)).toBeLessThan(5);
  });

  it('a wrong distribution does not pass', () => {
    const draws = nativeSampler({ vocabSize: SIZE, temperature: 1.05 }, 20_24n).drawMany(LOGITS, DRAWS);
    expect(chiSquareDeviation(draws, softmax(LOGITS))).toBeGreaterThan(5);
  });

  it('grammar mask', () => {
    const draws = nativeSampler({ vocabSize: SIZE }, 7n).drawMany(LOGITS, DRAWS, maskOf(SIZE, rare));
    expect(chiSquareDeviation(draws, only(rare))).toBeLessThan(5);
  });

  it.each([1, 2, 63, 64, 65, 2048, 2049, 5000])('a vocabulary of %d', (size) => {
    const logits = Float32Array.from({ length: size }, (_, id) => Math.sin(id) * 2);
    const draws = nativeSampler({ vocabSize: size }, 11n).drawMany(logits, DRAWS);
    expect(chiSquareDeviation(draws, softmax(logits))).toBeLessThan(5);
  });

  it('draws along the stream are independent of each other', () => {
    // Pairs of neighbouring draws from a fair coin: four equally likely cells.
    const draws = nativeSampler({ vocabSize: 2 }, 3n).drawMany(logitsOf([0.5, 0.5]), DRAWS);
    const pairs = Int32Array.from({ length: DRAWS / 2 }, (_, i) => draws[2 * i]! * 2 + draws[2 * i + 1]!);
    expect(chiSquareDeviation(pairs, [0.25, 0.25, 0.25, 0.25])).toBeLessThan(5);
  });
});
