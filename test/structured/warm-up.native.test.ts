/** A constraint computes the masks that texts meet first ahead of time; they are those that it would compute later. */
import { expect, it } from 'vitest';
import { grammarAddon } from '../../src/engine/native/index.ts';
import { toNativeSpec } from '../../src/structured/validate.ts';

const WORDS = [
  '{"',
  '":',
  '": ',
  ' "',
  '",',
  '", "',
  '"}',
  '}}',
  'name',
  'kind',
  'tags',
  '[]',
  '["',
  '12',
  'true',
  'a',
];
const TEXT = '{"name":"a","kind":{"tags":["a",12]}}';
const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 40 },
    kind: { type: 'object', properties: { tags: { type: 'array', maxItems: 3, uniqueItems: true } } },
  },
  patternProperties: { '^x': { type: 'integer' } },
};

const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
const tokens = [...bytes, ...WORDS, '<end>'];

async function compile() {
  const grammar = grammarAddon();
  const all = Buffer.concat(tokens.map((token) => Buffer.from(token as string)));
  const offsets = [0];
  for (const token of tokens) offsets.push(offsets.at(-1)! + Buffer.from(token as string).length);
  const vocabulary = grammar.createVocabulary(
    new Uint8Array(all),
    Uint32Array.from(offsets),
    Int32Array.of(tokens.length - 1),
    new Int32Array(0),
  );
  const { constraint } = (await grammar.compileConstraint(toNativeSpec({ json: schema }), vocabulary))!;
  return { grammar, vocabulary, constraint };
}

it('computes the masks that would be computed later', async () => {
  const prepared = await compile();
  const other = await compile();
  expect(await prepared.grammar.warmUp(prepared.constraint)).toBeGreaterThan(10);
  const [one, two] = [prepared, other].map(({ grammar, constraint }) => grammar.createMatcher(constraint));
  const masks = [0, 1].map(() => new Int32Array(Math.ceil(tokens.length / 32)));
  for (const id of prepared.grammar.tokenizeBytes(prepared.vocabulary, new Uint8Array(Buffer.from(TEXT)))) {
    prepared.grammar.fillMask(one!, masks[0]!);
    other.grammar.fillMask(two!, masks[1]!);
    expect(masks[0]).toEqual(masks[1]);
    expect(prepared.grammar.accept(one!, id)).toBe(true);
    expect(other.grammar.accept(two!, id)).toBe(true);
  }
  expect(prepared.grammar.isComplete(one!)).toBe(true);
});

it('ends where a matcher asks for a mask', async () => {
  const { grammar, constraint } = await compile();
  grammar.fillMask(grammar.createMatcher(constraint), new Int32Array(Math.ceil(tokens.length / 32)));
  expect(await grammar.warmUp(constraint)).toBe(0);
});
