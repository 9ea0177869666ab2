/** Arguments of custom tools, in pieces of every length: the text is the same, and no piece ends inside a character. */
import { describe, expect, it } from 'vitest';
import { CustomInput } from '../../src/answer/custom-input.ts';

function read(pieces: readonly string[]): string[] {
  const input = new CustomInput();
  return pieces.map((piece) => input.push(piece));
}

/** One half of a surrogate pair alone. */
const HALF = /[\ud800-\udfff]/u;

/** A text in pieces of a length. */
function cut(text: string, length: number): string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, i) =>
    text.slice(i * length, (i + 1) * length),
  );
}

describe('the input of a custom tool', () => {
  it.each([
    ['a text', '{"input": "SELECT 1"}', 'SELECT 1'],
    ['white space anywhere', ' {\n "input" :\t"a b" }', 'a b'],
    ['escapes', String.raw`{"input": "a\"b\\c\nd\u00e9\/"}`, 'a"b\\c\ndé/'],
    ['both halves of a pair', String.raw`{"input": "x\ud83d\ude00y"}`, 'x😀y'],
    ['half a pair', String.raw`{"input": "x\ud83dy"}`, 'x\ud83dy'],
    ['an empty text', '{"input": ""}', ''],
    ['no arguments', '{}', ''],
    ['further members, which are left out', '{"input": "a", "more": "b"}', 'a'],
    ['another member first, as JSON', '{"query": "a"}', '{"query": "a"}'],
    ['a member that begins alike, as JSON', '{"inputs": "a"}', '{"inputs": "a"}'],
    ['an input that is no text, as JSON', '{"input": 5}', '{"input": 5}'],
    ['a text that was cut', '{"input": "SELE', 'SELE'],
    ['an escape that was cut', String.raw`{"input": "a\u00`, 'a'],
  ])('is read from %s', (_, json, expected) => {
    for (let length = 1; length <= json.length; length++) {
      const pieces = read(cut(json, length));
      expect(pieces.join(''), `pieces of ${length}`).toBe(expected);
      if (!HALF.test(expected)) for (const piece of pieces) expect(HALF.test(piece)).toBe(false);
    }
  });
});
