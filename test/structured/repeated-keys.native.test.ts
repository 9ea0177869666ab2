/** A key that an object has already may not come again, however tokens cut, spell or surround it. */
import { expect, it } from 'vitest';
import { compileConstraint, createVocabulary } from '../../src/structured/index.ts';

/** Bytes, then tokens that end keys, hold whole ones, or hold several. */
const WORDS = [
  'a"',
  'a":',
  '"a"',
  '"a":',
  ' "a": ',
  '"ab":',
  'b":1',
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

it.each(Object.entries(SCHEMAS))('%s: masks are those of the bytes', async (_, json) => {
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  const tokens = [...bytes, ...WORDS, '<end>'];
  const vocabulary = createVocabulary({ tokens, eosTokenIds: [tokens.length - 1] });
  const constraint = await compileConstraint({ json }, vocabulary);
  const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
  const reach = (text: string) => {
    const matcher = constraint.createMatcher();
    return [...Buffer.from(text)].every((byte) => matcher.accept(byte)) ? matcher : undefined;
  };
  let reached = 0;
  // The second time, masks are remembered ones.
  for (const text of [...TEXTS, ...TEXTS]) {
    const matcher = reach(text);
    if (!matcher) continue;
    reached++;
    matcher.fillMask(mask);
    for (const [at, word] of WORDS.entries()) {
      const id = 256 + at;
      const isAllowed = ((mask[id >> 5]! >>> (id & 31)) & 1) === 1;
      expect(isAllowed, `${text} then ${word}`).toBe(reach(text + word) !== undefined);
    }
  }
  expect(reached).toBeGreaterThan(TEXTS.length);
});
