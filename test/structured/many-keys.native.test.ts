/** Objects of so many properties that their keys have one automaton: documents get the verdict of the schema, masks are those of the bytes. */
import { describe, expect, it } from 'vitest';
import { compileConstraint, createVocabulary, type Matcher } from '../../src/structured/index.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { isAllowed } from './vocabularies.ts';

const PIECES = [
  '"',
  '":',
  '": ',
  ',"',
  'key',
  'key_',
  '_1',
  '1"',
  '0":',
  '"k',
  '}',
  '1,',
  '1}',
  '11',
  '\\"',
  'é',
];
const END = 256;
const vocabulary = createVocabulary({
  tokens: [...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)), '', ...PIECES],
  eosTokenIds: [END],
});
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));

/** A key is a beginning of others, some need escapes, and their order is not that of their bytes. */
const KEYS = [
  ...Array.from({ length: 150 }, (_, i) => `key_${(i * 7) % 150}`),
  'key',
  'ké',
  'k"',
  'k\\',
  'k\n',
  '',
];

type Shape = {
  required?: string[];
  minProperties?: number;
  maxProperties?: number;
  additionalProperties?: boolean;
};

const isValid = (keys: readonly string[], { required = [], ...shape }: Shape): boolean =>
  required.every((key) => keys.includes(key)) &&
  keys.length >= (shape.minProperties ?? 0) &&
  keys.length <= (shape.maxProperties ?? Number.POSITIVE_INFINITY) &&
  keys.every((key, i) => {
    const rank = KEYS.indexOf(key);
    if (rank < 0) return shape.additionalProperties !== false && keys.indexOf(key) === i;
    return keys.slice(i + 1).every((later) => !KEYS.includes(later) || KEYS.indexOf(later) > rank);
  });

const takes = (matcher: Matcher, text: string): boolean =>
  [...Buffer.from(text)].every((byte) => matcher.accept(byte)) && matcher.isComplete();

/** Tokens that a mask allows are those whose bytes are accepted one by one. */
function expectMaskOfBytes(matcher: Matcher): void {
  matcher.fillMask(mask);
  for (let token = 0; token < vocabulary.size; token++) {
    if (token === END) continue;
    const probe = matcher.clone();
    const isAccepted = [...vocabulary.bytes(token)].every((byte) => probe.accept(byte));
    expect([token, isAllowed(mask, token)]).toEqual([token, isAccepted]);
  }
}

describe.each<[string, Shape]>([
  ['optional', {}],
  ['optional in a closed object', { additionalProperties: false }],
  ['some required', { required: ['key_77', 'k"', 'key_3'], additionalProperties: false }],
  ['some required in an open object', { required: ['key_7', 'ké'] }],
  ['required ones that no property names', { required: ['key_7', 'other'] }],
  ['at least', { minProperties: 3, additionalProperties: false }],
  ['at most', { maxProperties: 2, additionalProperties: false }],
  ['exactly what is required', { required: ['key_14', ''], maxProperties: 2, additionalProperties: false }],
  ['nearly all', { minProperties: KEYS.length - 2, additionalProperties: false }],
])('keys that are %s', (_, shape) => {
  const compiled = compileConstraint(
    { json: { type: 'object', properties: Object.fromEntries(KEYS.map((key) => [key, true])), ...shape } },
    vocabulary,
  );
  const random = randomNumbers(7);
  const pick = (odds: number) => KEYS.filter((key) => shape.required?.includes(key) || random() < odds);

  it('accepts a document where the schema does', async () => {
    const constraint = await compiled;
    const documents = [[], KEYS, KEYS.slice(2), KEYS.toReversed(), [...KEYS, 'more'], ['key', 'key']];
    for (const odds of [0, 0.01, 0.02, 0.5, 0.99]) {
      const keys = pick(odds);
      documents.push(
        keys,
        keys.slice(1),
        [...keys, 'other'],
        ['other', ...keys],
        [...keys, ...keys.slice(0, 1)],
      );
    }
    for (const keys of documents) {
      const text = `{${keys.map((key) => `${JSON.stringify(key)}: 1`).join(', ')}}`;
      expect([text, takes(constraint.createMatcher(), text)]).toEqual([text, isValid(keys, shape)]);
    }
  });

  it('masks what its bytes are accepted by', async () => {
    const constraint = await compiled;
    const keys = pick(shape.minProperties === KEYS.length - 2 ? 1 : 0.02).slice(0, 2);
    const text = `{${keys.map((key) => `${JSON.stringify(key)}:1`).join(',')}`;
    const matcher = constraint.createMatcher();
    for (const byte of Buffer.from(text)) {
      expectMaskOfBytes(matcher);
      if (!matcher.accept(byte)) break;
    }
    expectMaskOfBytes(matcher);
  });
});
