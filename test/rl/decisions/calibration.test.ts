/** Temperatures and measures of decisions against their definitions written out, and against numbers made elsewhere. */
import { describe, expect, it } from 'vitest';
import { seedOf } from '../../../src/common/index.ts';
import {
  fitCalibration,
  fitTemperature,
  lossOf,
  measure,
  type ScoredQuestion,
} from '../../../src/rl/decisions/calibration.ts';
import { softmax } from '../../fakes/reference-sampler.ts';
import { normals } from '../tiny-model.ts';

const PLAIN = { temperature: 1, noise: 0 };
const question = (logits: readonly number[], target: readonly number[]): ScoredQuestion => ({
  kind: 'choice',
  example: 0,
  logits,
  target,
});

describe('a fitted temperature', () => {
  const normal = normals(3);
  const rows = Array.from({ length: 60 }, (_, i) =>
    Array.from({ length: 2 + (i % 4) }, () => 2 * normal() - 3),
  );

  it.each([0.1, 0.5, 1, 3, 7])('is %s for logits that many times too large', (factor) => {
    const scored = rows.map((row) =>
      question(
        row.map((one) => one * factor),
        softmax(row),
      ),
    );
    expect(Math.abs(fitTemperature(scored) / factor - 1)).toBeLessThan(1e-3);
  });

  it('has the lowest loss of a fine grid', () => {
    const scored = rows.map((row, i) =>
      question(
        row,
        row.map((_, k) => (k === i % row.length ? 1 : 0)),
      ),
    );
    const loss = (t: number) =>
      scored.reduce((sum, one) => sum + lossOf(one, { temperature: t, noise: 0 }), 0);
    const best = loss(fitTemperature(scored));
    for (let log = Math.log(0.05); log < Math.log(20); log += 0.01)
      expect(best).toBeLessThanOrEqual(loss(Math.exp(log)) + 1e-9);
  });

  it('stays within its bounds', () => {
    expect(fitTemperature([question([0, 5], [0, 1])])).toBeCloseTo(0.05, 3);
    expect(fitTemperature([question([0, 5], [1, 0])])).toBeCloseTo(20, 3);
  });
});

describe('fitted noise', () => {
  const normal = normals(4);
  /** Questions with logits twice too large, and the distributions of their answers, of which a share is even. */
  const noisy = (size: number, count: number, noise: number) =>
    Array.from({ length: size }, () => {
      const row = Array.from({ length: count }, () => 4 * normal());
      const p = softmax(row).map((one) => (1 - noise) * one + noise / count);
      return question(
        row.map((one) => 2 * one),
        p,
      );
    });
  /** The same, each with one right answer drawn from its distribution. */
  const drawn = (questions: readonly ScoredQuestion[]) =>
    questions.map(({ logits, target: [first] }, i) =>
      question(logits, seedOf(i) / 2 ** 31 < first! ? [1, 0] : [0, 1]),
    );

  it.each([
    [2, 0.3],
    [4, 0.15],
  ])('is found beside the temperature: %s options, noise %s', (count, noise) => {
    const found = fitCalibration(noisy(400, count, noise));
    expect(Math.abs(found.noise - noise)).toBeLessThan(1e-3);
    expect(Math.abs(found.temperature / 2 - 1)).toBeLessThan(1e-2);
  });

  it('has the lowest loss of a grid, and fits questions better than a temperature alone', () => {
    const scored = drawn(noisy(200, 2, 0.3));
    const found = fitCalibration(scored);
    const { loss } = measure(scored, found);
    for (let log = Math.log(0.05); log < Math.log(20); log += 0.2)
      for (let noise = 0; noise < 0.99; noise += 0.05)
        expect(loss).toBeLessThanOrEqual(measure(scored, { temperature: Math.exp(log), noise }).loss + 1e-9);
    const others = drawn(noisy(2000, 2, 0.3));
    const alone = { temperature: fitTemperature(scored), noise: 0 };
    expect(measure(others, found).loss).toBeLessThan(measure(others, alone).loss);
    expect(measure(others, found).ece).toBeLessThan(measure(others, alone).ece);
  });

  it('is none where right answers are as the logits say', () => {
    const scored = drawn(noisy(200, 2, 0));
    expect(fitCalibration(scored)).toEqual({ temperature: fitTemperature(scored), noise: 0 });
  });
});

describe('the measures', () => {
  // Probabilities 0.9, 0.9, 0.6, 0.55; the third is wrong. Numbers from Python's `fractions` and `math`.
  const at = (p: number, isRight: boolean) =>
    question([Math.log(p), Math.log(1 - p)], isRight ? [1, 0] : [0, 1]);
  const four = [at(0.9, true), at(0.9, true), at(0.6, false), at(0.55, true)];

  it('are those of their definitions', () => {
    const found = measure(four, PLAIN);
    expect(found).toMatchObject({ count: 4, accuracy: 0.75, temperature: 1 });
    expect(found.loss).toBeCloseTo(0.43121, 5);
    // with noise 0.2: probabilities 0.82, 0.82, 0.58, 0.54
    const noisy = measure(four, { temperature: 1, noise: 0.2 });
    expect(noisy.loss).toBeCloseTo(-Math.log(0.82 * 0.82 * 0.42 * 0.54) / 4, 12);
    expect(noisy.ece).toBeCloseTo((0.36 + 0.12) / 4, 12);
    expect(found.brier).toBeCloseTo(0.29125, 12);
    // bins: two at 0.9 (right 2), one at 0.6 (0), one at 0.55 (1): (0.2 + 0.6 + 0.45) / 4
    expect(found.ece).toBeCloseTo(0.3125, 12);
    expect(found.bins.map(({ count }) => count)).toEqual([0, 0, 0, 0, 0, 1, 1, 0, 0, 2]);
  });

  it('say what calibration error chance alone makes, as draws of right answers show', () => {
    const draw = (seed: number) => seedOf(seed) / 2 ** 31;
    const questions = (round: number) =>
      Array.from({ length: 200 }, (_, i) => {
        const p = 0.5 + 0.5 * draw(i);
        return at(p, draw(1000 * round + i) < p);
      });
    const rounds = Array.from({ length: 200 }, (_, round) => measure(questions(round + 1), PLAIN));
    const mean = rounds.reduce((sum, { ece }) => sum + ece, 0) / rounds.length;
    expect(Math.abs(rounds[0]!.eceOfChance / mean - 1)).toBeLessThan(0.1);
    expect(mean).toBeGreaterThan(0.04); // 200 questions are few
  });

  it('take distributions, and options without any probability', () => {
    const { accuracy, brier, loss } = measure([question([0, 0], [0.25, 0.75])], PLAIN);
    expect([accuracy, brier]).toEqual([0.25, 0.125]);
    expect(loss).toBeCloseTo(Math.LN2, 12);
    expect(
      measure([question([0, Number.NEGATIVE_INFINITY], [1, 0])], { temperature: 2, noise: 0 }).loss,
    ).toBe(0);
  });
});
