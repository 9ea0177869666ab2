/** A key that an object has already may not come again, however tokens cut, spell or surround it. */
import { describe, expect, it } from 'vitest';
import { compileConstraint, createVocabulary, type Matcher } from '../../src/structured/index.ts';

/** Bytes, then tokens that end keys, hold whole ones, or hold several. */
const WORDS = [
  'a"',
  'a":',
  '"a"',
  '"a":',
  ' "a": ',
  '"ab":',
  'b":1',
  'b":1,"ab":',
  'b":{"ab":',
  '":',
  '":"',
  '":{',
  '":{"',
  '":{"a":',
  '","',
  '","a":',
  '","a":"a"',
  ',"a":',
  ' , "a":2',
  ',"a":1,"a":',
  ',"a":1,"ab":',
  '{"a":',
  '{"a":1,"a":',
  '},"a":',
  '"\\u0061":',
  '\\u0061":',
  'a\\"":',
  '\\"":',
  '\\","a":',
  'é":',
  '\\u00e9":',
  '"/":',
  '"\\/":',
];
const TEXTS = [
  '{',
  '{"a',
  '{"a":1',
  '{"a":"x"',
  '{"a":1,',
  '{"a":1,"',
  '{"a":1,"a',
  '{"ab":1,"a":2,"',
  '{"a":{"ab":1},"b":"a',
  '{"a":[{"a":1',
  '{"x":{"a":1}',
  '{"é":1,"a":"é","',
  '{"\\u0061":1,"',
  '{"\\u0061":1,',
  '{"/":"a","',
  '{"\\/":"a",',
  '{"x":"a","y":"',
  '{"a\\"":1,"',
  '{"a\\"":1,"a',
  '{"a":"\\',
];

const SCHEMAS: Record<string, Record<string, unknown>> = {
  'any object': { type: 'object' },
  'objects in objects': {
    type: 'object',
    additionalProperties: { type: ['object', 'string', 'integer', 'array'] },
  },
  'a known key': { type: 'object', properties: { a: {} }, additionalProperties: true },
  'a count': { type: 'object', maxProperties: 3 },
};

const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
const tokens = [...bytes, ...WORDS, '<end>'];
const vocabulary = createVocabulary({ tokens, eosTokenIds: [tokens.length - 1] });

/** Masks under a schema, and a matcher that has taken a text, where the schema allows it. */
async function open(json: Record<string, unknown>) {
  const constraint = await compileConstraint({ json }, vocabulary);
  const take = (matcher: Matcher, text: string) =>
    [...Buffer.from(text)].every((byte) => matcher.accept(byte));
  const reach = (text: string) => {
    const matcher = constraint.createMatcher();
    return take(matcher, text) ? matcher : undefined;
  };
  const maskOf = (matcher: Matcher) => {
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    matcher.fillMask(mask);
    return mask;
  };
  return { take, reach, maskOf };
}

describe.each(Object.entries(SCHEMAS))('%s', (_, json) => {
  it('masks are those of the bytes', async () => {
    const { reach, maskOf } = await open(json);
    let reached = 0;
    // The second time, masks are remembered ones.
    for (const text of [...TEXTS, ...TEXTS]) {
      const matcher = reach(text);
      if (!matcher) continue;
      reached++;
      const mask = maskOf(matcher);
      for (const [at, word] of WORDS.entries()) {
        const id = 256 + at;
        const isAllowed = ((mask[id >> 5]! >>> (id & 31)) & 1) === 1;
        expect(isAllowed, `${text} then ${word}`).toBe(reach(text + word) !== undefined);
      }
    }
    expect(reached).toBeGreaterThan(TEXTS.length);
  });

  it('tokens that were taken back leave nothing behind', async () => {
    const { take, reach, maskOf } = await open(json);
    const reached = TEXTS.filter((text) => reach(text));
    for (const first of reached)
      for (const second of reached) {
        const matcher = reach(first)!;
        maskOf(matcher);
        let kept = 0;
        while (kept < Math.min(first.length, second.length) && first[kept] === second[kept]) kept++;
        const keptBytes = Buffer.from(first.slice(0, kept)).length;
        matcher.rollback(Buffer.from(first).length - keptBytes);
        expect(take(matcher, second.slice(kept))).toBe(true);
        expect(maskOf(matcher), `${first} taken back to ${second}`).toEqual(maskOf(reach(second)!));
      }
  });
});
