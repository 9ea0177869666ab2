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
  /** `any`: keys come in any order. A number: they are in so many lists, of which each keeps its order. Default: 1. */
  order?: 'any' | number;
  required?: string[];
  minProperties?: number;
  maxProperties?: number;
  additionalProperties?: boolean;
};

/** Returns the lists of keys by what a schema says of the order. */
const listsOf = ({ order = 1 }: Shape): string[][] =>
  order === 'any'
    ? [KEYS]
    : Array.from({ length: order }, (_, at) => KEYS.filter((__, i) => i % order === at));

const schemaOf = ({ order: _, ...rest }: Shape, lists: readonly string[][]) => {
  const properties = lists.map((keys) => ({
    properties: Object.fromEntries(keys.map((key) => [key, true])),
  }));
  const { additionalProperties, ...others } = rest;
  if (lists.length === 1) return { type: 'object', ...properties[0], ...rest };
  return {
    ...{ type: 'object', ...others, allOf: properties },
    ...(additionalProperties === false && { propertyNames: { enum: KEYS } }),
  };
};

const isValid = (keys: readonly string[], { required = [], order = 1, ...shape }: Shape): boolean =>
  required.every((key) => keys.includes(key)) &&
  keys.length >= (shape.minProperties ?? 0) &&
  keys.length <= (shape.maxProperties ?? Number.POSITIVE_INFINITY) &&
  keys.every((key, i) => {
    const rank = KEYS.indexOf(key);
    if (keys.indexOf(key) !== i || (rank < 0 && shape.additionalProperties === false)) return false;
    if (rank < 0 || order === 'any') return true;
    const isInList = (other: number): boolean => other >= 0 && other % order === rank % order;
    return keys.slice(i + 1).every((later) => !isInList(KEYS.indexOf(later)) || KEYS.indexOf(later) > rank);
  });

const takes = (matcher: Matcher, text: string): boolean =>
  [...Buffer.from(text)].every((byte) => matcher.accept(byte)) && matcher.isComplete();

/** Tokens that a mask allows are those whose bytes are accepted one by one. */
function expectMaskOfBytes(matcher: Matcher): void {
  matcher.fillMask(mask);
  const wrong = Array.from({ length: vocabulary.size }, (_, token) => token).filter((token) => {
    if (token === END) return false;
    const probe = matcher.clone();
    return isAllowed(mask, token) !== vocabulary.bytes(token).every((byte) => probe.accept(byte));
  });
  expect(wrong).toEqual([]);
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
  ['in any order', { order: 'any' }],
  ['in any order in a closed object', { order: 'any', additionalProperties: false }],
  [
    'some required, in any order',
    { order: 'any', required: ['key_77', 'k"', 'key_3'], additionalProperties: false },
  ],
  ['required ones that no property names, in any order', { order: 'any', required: ['key_7', 'other'] }],
  ['all required, in any order', { order: 'any', required: KEYS, additionalProperties: false }],
  ['at least, in any order', { order: 'any', minProperties: 3, additionalProperties: false }],
  [
    'exactly what is required, in any order',
    { order: 'any', required: ['key_14', ''], maxProperties: 2, additionalProperties: false },
  ],
  ['at most, in any order', { order: 'any', required: ['key_14'], maxProperties: 3 }],
  ['nearly all, in any order', { order: 'any', minProperties: KEYS.length - 2, additionalProperties: false }],
  ['in two lists', { order: 2, required: ['key_7', 'ké'] }],
  ['in two lists, at most', { order: 2, required: ['key_7', 'ké'], maxProperties: 4 }],
  ['in two lists of a closed object', { order: 2, additionalProperties: false }],
  ['in many lists', { order: 30, required: ['key_7', 'ké'] }],
])('keys that are %s', (_, shape) => {
  const lists = listsOf(shape);
  const json = schemaOf(shape, lists);
  const property_order = shape.order === 'any' ? 'any' : undefined;
  const compiled = compileConstraint({ json, ...(property_order && { property_order }) }, vocabulary);
  const random = randomNumbers(7);
  const pick = (odds: number) => KEYS.filter((key) => shape.required?.includes(key) || random() < odds);

  it('accepts a document where the schema does', async () => {
    const constraint = await compiled;
    const documents = [[], KEYS, KEYS.slice(2), KEYS.toReversed(), lists.flat(), lists.toReversed().flat()];
    documents.push([...KEYS, 'more'], ['key', 'key']);
    for (const odds of [0, 0.01, 0.02, 0.5, 0.99]) {
      const keys = pick(odds);
      documents.push(
        keys,
        keys.slice(1),
        keys.toReversed(),
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
