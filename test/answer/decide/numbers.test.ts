/** Numbers of decisions against the formulas written out, and the words of questions. */
import { describe, expect, it } from 'vitest';
import {
  choiceConfidence,
  labelMass,
  largest,
  logSumExp,
  meanLevel,
  probabilitiesOf,
  rotation,
  scoreConfidence,
} from '../../../src/answer/decide/numbers.ts';
import { askQuestion } from '../../../src/answer/decide/question-text.ts';
import type { ValidQuestion } from '../../../src/protocol/index.ts';
import { normals } from '../../rl/tiny-model.ts';

describe('probabilities', () => {
  const normal = normals(5);
  const rows = [2, 3, 26, 27, 255].map((count) => Array.from({ length: count }, () => 5 * normal() - 8));

  it.each([
    [0.1, 0],
    [1, 0],
    [7, 0],
    [0.5, 0.25],
  ])('sum to 1 and are the softmax at temperature %s, of which noise %s is even', (temperature, noise) => {
    for (const row of rows) {
      const p = probabilitiesOf(row, { temperature, noise });
      expect(Math.abs(p.reduce((sum, one) => sum + one, 0) - 1)).toBeLessThan(1e-12);
      const weights = row.map((logit) => Math.exp((logit - Math.max(...row)) / temperature));
      const total = weights.reduce((sum, one) => sum + one, 0);
      for (const [i, one] of p.entries()) {
        const expected = (1 - noise) * (weights[i]! / total) + noise / row.length;
        expect(Math.abs(one - expected)).toBeLessThan(1e-12);
      }
      expect(meanLevel(p)).toBeGreaterThanOrEqual(0);
      expect(meanLevel(p)).toBeLessThanOrEqual(row.length - 1);
      expect(p[largest(p)]).toBe(Math.max(...p));
    }
  });

  it('are even where no label is possible, and finite where some are not', () => {
    expect(probabilitiesOf([-Infinity, -Infinity], { temperature: 1, noise: 0 })).toEqual([0.5, 0.5]);
    expect(probabilitiesOf([-9999, -Infinity], { temperature: 0.1, noise: 0 })).toEqual([1, 0]);
    expect(logSumExp([-Infinity, -1])).toBe(-1);
    expect(labelMass([Math.log(0.25), -Infinity])).toBeCloseTo(0.25, 12);
  });

  it.each<[number[], number, number]>([
    [[1, 0], 1, 1],
    [[0.5, 0.5], 0, 0],
    [[0.7, 0.2, 0.1], (0.7 - 1 / 3) / (2 / 3), 1 - (0.2 + 2 * 0.1) / (2 / 3)],
    [[0.1, 0.8, 0.1], (0.8 - 1 / 3) / (2 / 3), 1 - 0.2 / (2 / 3)],
    [[0.5, 0, 0.5], (0.5 - 1 / 3) / (2 / 3), 0],
  ])('%j: confidence of a choice and of a score', (p, choice, score) => {
    expect(choiceConfidence(p)).toBeCloseTo(choice, 12);
    expect(scoreConfidence(p)).toBeCloseTo(score, 12);
  });

  it('rotations put each option at each place once with as many orders as options', () => {
    for (const count of [2, 3, 7]) {
      const all = Array.from({ length: count }, (_, turn) => rotation(count, turn, count));
      for (let place = 0; place < count; place++)
        expect(new Set(all.map((order) => order[place])).size).toBe(count);
    }
    expect(rotation(5, 1, 2)).toEqual([2, 3, 4, 0, 1]);
  });
});

describe('questions', () => {
  const asks = (text: string): Pick<ValidQuestion, 'name' | 'path' | 'asks' | 'instructions'> => ({
    name: null,
    path: 'questions.0',
    instructions: text,
    asks: [{ type: 'text', text }],
  });
  it.each<[ValidQuestion, readonly string[], readonly number[], string]>([
    [{ type: 'predicate', ...asks('Is it hot?') }, ['yes', 'no'], [0, 1], 'Is it hot? Answer yes or no.'],
    [
      { type: 'predicate', ...asks('It is hot.') },
      ['yes', 'no'],
      [0, 1],
      'Is this true: It is hot. Answer yes or no.',
    ],
    [
      { type: 'predicate', ...asks('Is it hot?'), criteria: { true: 'above 30', false: 'else' } },
      ['yes', 'no'],
      [0, 1],
      'Is it hot?\nyes: above 30\nno: else\nAnswer yes or no.',
    ],
    [
      {
        type: 'choice',
        ...asks('Which team?'),
        choices: [{ value: 'billing', description: 'money' }, { value: true }],
      },
      ['A', 'B'],
      [1, 0],
      'Which team?\nA: true\nB: billing - money\nAnswer with the letter of one option.',
    ],
    [
      { type: 'score', ...asks('How angry?'), levels: [{ label: 'calm' }, { label: 'furious' }] },
      ['0', '1'],
      [0, 1],
      'How angry?\n0: calm\n1: furious\nAnswer with the number of one level.',
    ],
  ])('%j', (question, labels, order, text) => {
    expect(askQuestion(question, labels, order)).toEqual([{ type: 'text', text }]);
  });
});
