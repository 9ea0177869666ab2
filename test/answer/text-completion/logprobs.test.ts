/** Bytes of tokens -> where each begins in the text, in characters. */
import { expect, it } from 'vitest';
import { TextOffsets } from '../../../src/answer/text-completion/logprobs.ts';

it.each([
  ['letters', ['a', 'bc', 'd'], [0, 1, 3]],
  ['characters outside the basic plane', ['🦙', 'ß', 'x'], [0, 1, 2]],
  ['tokens without text', ['a', '', 'b'], [0, 1, 1]],
])('counts %s', (_, tokens, offsets) => {
  const counted = new TextOffsets();
  expect(tokens.map((token) => counted.next(Buffer.from(token)))).toEqual(offsets);
});

it('gives all parts of a character its place', () => {
  const counted = new TextOffsets();
  const bytes = Buffer.from('a🦙b');
  const parts = [bytes.subarray(0, 2), bytes.subarray(2, 4), bytes.subarray(4, 5), bytes.subarray(5)];
  expect(parts.map((part) => counted.next(part))).toEqual([0, 1, 1, 2]);
});
