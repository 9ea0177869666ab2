import { expect, it } from 'vitest';
import { checkpointPlaces } from '../../src/answer/open-request.ts';

const SPECIAL = new Set([1, 2, 3]);
const text = (count: number): number[] => Array<number>(count).fill(9);
/** A message of ChatML: 1 begins it, 2 ends it. */
const message = (count: number): number[] => [1, ...text(count), 2, 9];

it.each<[string, number[], number[]]>([
  ['one message', [...message(4), 1, 9], [7]],
  ['a system prompt and a question', [...message(4), ...message(5), 1, 9], [7, 15]],
  ['a conversation', [...message(4), ...message(5), ...message(6), ...message(7), 1, 9, 9], [7, 24, 34]],
  ['headers that end with another token', [3, 1, 9, 2, 9, 9, 1, 9, 2, 9, 1, 9, 2], [3, 8, 12]],
  ['a medium, which has no token', [1, -4, -4, 2, 9, 1], [5]],
  ['text behind its first token', [1, ...text(40)], [25]],
  ['text', text(40), [24]],
  ['a short text', text(16), []],
  ['nothing', [], []],
])('of %s', (_, prompt, places) => {
  expect(checkpointPlaces(Int32Array.from(prompt), { isSpecial: (id) => SPECIAL.has(id) })).toEqual(places);
});
