/** Answers -> what they are worth: one row a case. */
import { describe, expect, it } from 'vitest';
import * as rewards from '../../../src/rl/rollout/rewards.ts';

const { allOf, anyOf, exact, jsonFields, matches, numeric, passesTests, validJson, weighted } = rewards;
const half = () => 0.5;

describe('rewards', () => {
  it.each<[name: string, reward: rewards.Reward, answer: string, expected: number]>([
    ['exact', exact('40'), ' 40\n', 1],
    ['exact: more text', exact('40'), 'It is 40', 0],
    ['exact: case', exact('Lima'), 'lima', 0],
    ['exact: ignored case', exact('Lima', { ignoreCase: true }), 'lima', 1],
    ['numeric', numeric(40), 'First 5, then it is 40.', 1],
    ['numeric: the last one counts', numeric(40), '40 or 41', 0],
    ['numeric: thousands', numeric(1234567.5), 'about 1,234,567.50', 1],
    ['numeric: negative', numeric(-3), 'x = -3', 1],
    ['numeric: a minus sign', numeric(-3), 'x = −3', 1],
    ['numeric: a difference', numeric(5), '10-5', 1],
    ['numeric: a list', numeric(2), '1,2', 1],
    ['numeric: exponent', numeric(1.5e-3), '1.5e-3', 1],
    ['numeric: below one', numeric(0.5), '.5', 1],
    ['numeric: tolerance', numeric(3.14, { tolerance: 0.01 }), '3.1416', 1],
    ['numeric: none', numeric(1), 'one', 0],
    ['matches', matches(/^a+$/g), 'aaa', 1],
    ['matches: not', matches(/^a+$/), 'aab', 0],
    ['JSON', validJson(), '{"a": [1]}', 1],
    ['JSON: not', validJson(), '{"a": [1}', 0],
    [
      'fields',
      jsonFields({ name: 'Omar', age: 26, tags: ['x'] }),
      '{"name":"Omar","age":"26","tags":["x"]}',
      2 / 3,
    ],
    ['fields: none', jsonFields({ a: 1 }), 'null', 0],
    ['fields: inherited', jsonFields({ constructor: 1 }), '{}', 0],
    ['fields: no JSON', jsonFields({ a: undefined }), 'a', 0],
    ['weighted', weighted([exact('a'), 3], [exact('b'), 1]), 'a', 0.75],
    ['all', allOf(half, exact('a')), 'a', 0.5],
    ['all: one is not', allOf(half, exact('a')), 'b', 0],
    ['any', anyOf(half, exact('a')), 'a', 1],
    ['any: one is', anyOf(half, exact('a')), 'b', 0.5],
  ])('%s', async (_, reward, answer, expected) => {
    expect(await reward(answer)).toBe(expected);
  });

  it('can be asked twice, with flags that keep a position too', async () => {
    const reward = matches(/a/g);
    expect([await reward('a'), await reward('a')]).toEqual([1, 1]);
  });

  it.each([
    [() => numeric(Number.NaN), 'expected: expected a finite number, got NaN'],
    [() => jsonFields({}), 'expected: expected at least one field'],
    [() => passesTests([]), 'tests: expected a non-empty list, got an empty list'],
    [() => passesTests(['1'], { timeoutMs: 0 }), 'limits.timeoutMs: expected a number > 0, got 0'],
    [() => weighted([exact('a'), 0]), 'weights: expected numbers from 0 up with a sum above 0, got "0"'],
  ])('name what is wrong: %s', (make, message) => {
    expect(make).toThrow(message);
  });
});
