/** Work, counted as the engine's budget counts it, of specifications and answers of n and 4 n parts: it grows at most like n log n. */
import { describe, expect, it } from 'vitest';
import { grammarAddon } from '../../src/engine/native/index.ts';
import type { StructuredOutputs } from '../../src/structured/index.ts';
import { toNativeSpec } from '../../src/structured/validate.ts';
import { testing } from '../addon/testing-addon.ts';

/** The bytes, and the end of the sequence. */
const TOKENS = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const OFFSETS = Uint32Array.from({ length: 258 }, (_, token) => Math.min(token, 256));
const END = Int32Array.of(256);
/** n log n at 4 n is 4 (1 + log 4 / log n) times that at n, 5.2 for n = 100. */
const MOST_GROWTH = 5.5;
/** Sizes of a specification. Both are above 128, from which on the keys of an object have automata: one side of the bound says nothing of the other. */
const SIZES = [200, 800] as const;

const names = (count: number) => Array.from({ length: count }, (_, i) => `key_${i}`);
const byName = <T>(count: number, value: (name: string, i: number) => T, prefix = ''): Record<string, T> =>
  Object.fromEntries(names(count).map((name, i) => [prefix + name, value(name, i)]));
const rules = (count: number, body: (next: string) => string): string =>
  [
    'root ::= r0',
    ...Array.from({ length: count }, (_, i) => `r${i} ::= ${body(`r${i + 1}`)}`),
    `r${count} ::= "x"`,
  ].join('\n');

/** A matcher of a constraint that nothing was asked of: no masks are computed ahead, and no earlier constraint has done a part of its work. */
const matcherOf = async (spec: StructuredOutputs) => {
  const grammar = grammarAddon();
  const vocabulary = grammar.createVocabulary(TOKENS, OFFSETS, END, END);
  const compiled = await grammar.compileConstraint(toNativeSpec(spec), vocabulary);
  return grammar.createMatcher(compiled!.constraint);
};

const SPECS: Record<string, (n: number) => StructuredOutputs> = {
  'required keys': (n) => ({
    json: { type: 'object', properties: byName(n, () => ({ type: 'integer' })), required: names(n) },
  }),
  'optional keys': (n) => ({ json: { type: 'object', properties: byName(n, () => ({ type: 'integer' })) } }),
  'optional keys of a closed object': (n) => ({
    json: { type: 'object', properties: byName(n, () => true), additionalProperties: false },
  }),
  'keys with a count': (n) => ({
    json: {
      type: 'object',
      properties: byName(n, () => true),
      additionalProperties: false,
      minProperties: 2,
    },
  }),
  'keys in any order': (n) => ({
    json: { type: 'object', properties: byName(n, () => true), additionalProperties: false },
    property_order: 'any',
  }),
  $defs: (n) => ({
    json: {
      $defs: byName(n, (_, i) => ({ type: 'string', maxLength: i + 1 })),
      type: 'object',
      properties: byName(n, (name) => ({ $ref: `#/$defs/${name}` })),
    },
  }),
  '$defs that nothing refers to': (n) => ({
    json: { $defs: byName(n, () => ({ type: 'string' })), type: 'null' },
  }),
  'required keys that no property names': (n) => ({ json: { type: 'object', required: names(n) } }),
  'keys of two lists': (n) => ({
    json: {
      type: 'object',
      allOf: [{ properties: byName(n, () => true) }, { properties: byName(n, () => true, 'other') }],
    },
  }),
  'values of an enum': (n) => ({ json: { enum: names(n) } }),
  'texts of anyOf': (n) => ({ json: { anyOf: names(n).map((name) => ({ const: name })) } }),
  'texts of oneOf': (n) => ({ json: { oneOf: names(n).map((name) => ({ const: name, title: name })) } }),
  'numbers of anyOf': (n) => ({ json: { anyOf: names(n).map((_, i) => ({ const: i * 37 })) } }),
  'numbers of an enum': (n) => ({ json: { enum: names(n).map((_, i) => i * 37) } }),
  'unique values of an enum': (n) => ({
    json: { type: 'array', items: { enum: names(n) }, uniqueItems: true, maxItems: 3 },
  }),
  'items of a prefix': (n) => ({
    json: { type: 'array', prefixItems: names(n).map(() => ({ type: 'integer' })) },
  }),
  choices: (n) => ({ choice: names(n) }),
  'alternatives of an expression': (n) => ({ regex: names(n).join('|') }),
  'parts of an expression': (n) => ({
    regex: names(n)
      .map((name) => `(${name})?`)
      .join(''),
  }),
  'rules in a row': (n) => ({ grammar: rules(n, (next) => `"a" ${next}`) }),
  'rules that end early': (n) => ({ grammar: rules(n, (next) => `"a" ${next} | "b"`) }),
  'rules that recur': (n) => ({ grammar: rules(n, (next) => `"(" r0 ")" | ${next}`) }),
};

describe('work of a specification and its first mask', () => {
  it.each(Object.entries(SPECS))('%s', async (_, make) => {
    const [small, large] = await Promise.all(
      SIZES.map(async (n) => {
        const matcher = await matcherOf(make(n));
        grammarAddon().fillMask(matcher, new Int32Array(9));
        return testing.workOf(matcher);
      }),
    );
    expect(large! / small!).toBeLessThan(MOST_GROWTH);
  });

  it('rules that are all nullable, each twice the one before', async () => {
    const work = await Promise.all(
      [10, 40].map(async (n) => {
        const matcher = await matcherOf({ grammar: rules(n, (next) => `${next} ${next} | ""`) });
        grammarAddon().fillMask(matcher, new Int32Array(9));
        return testing.workOf(matcher);
      }),
    );
    expect(work[1]! / work[0]!).toBeLessThan(8);
  });
});

describe('work of an answer', () => {
  const answer = async (spec: StructuredOutputs, text: string): Promise<number> => {
    const matcher = await matcherOf(spec);
    const before = testing.workOf(matcher);
    const mask = new Int32Array(9);
    for (const byte of Buffer.from(text)) {
      grammarAddon().fillMask(matcher, mask);
      expect(grammarAddon().accept(matcher, byte)).toBe(true);
      grammarAddon().forcedTokens(matcher);
    }
    return testing.workOf(matcher) - before;
  };
  const shuffled = (n: number) => names(n).map((_, i) => `key_${(i * 77) % n}`);
  it.each<[string, StructuredOutputs | ((n: number) => StructuredOutputs), (n: number) => string]>([
    ['free text', { json: { type: 'string' } }, (n) => JSON.stringify('some words '.repeat(n))],
    [
      'items',
      { json: { type: 'array', items: { type: 'integer' } } },
      (n) => JSON.stringify(names(n).map((_, i) => i)),
    ],
    [
      'objects',
      {
        json: {
          type: 'array',
          items: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] },
        },
      },
      (n) => JSON.stringify(names(n).map((_, i) => ({ a: i }))),
    ],
    ['keys', { json_object: true }, (n) => JSON.stringify(byName(n, () => 1))],
    [
      'keys beside many names',
      { json: { type: 'object', properties: byName(50, () => true) } },
      (n) => JSON.stringify(Object.fromEntries(names(n).map((name) => [`${name}_`, 1]))),
    ],
    [
      'keys around keys',
      {
        json: {
          $ref: '#/$defs/a',
          $defs: { a: { type: 'object', properties: { a: { $ref: '#/$defs/a' } } } },
        },
      },
      (n) => `${'{"a":'.repeat(n)}{}${',"b":1}'.repeat(n)}`,
    ],
    ['long keys', { json_object: true }, (n) => JSON.stringify({ ['some words '.repeat(n)]: 1 })],
    ...[{}, { additionalProperties: false }].map(
      (more): [string, StructuredOutputs, (n: number) => string] => [
        `declared keys, ${Object.keys(more)[0] ?? 'in an open object'}`,
        { json: { type: 'object', properties: byName(400, () => true), ...more } },
        (n) => JSON.stringify(byName(n, () => 1)),
      ],
    ),
    [
      'all keys of a schema, in any order',
      SPECS['keys in any order']!,
      (n) => JSON.stringify(Object.fromEntries(shuffled(n).map((name) => [name, 1]))),
    ],
    [
      'all required keys',
      SPECS['required keys that no property names']!,
      (n) => JSON.stringify(byName(n, () => 1)),
    ],
    [
      'keys of two lists',
      SPECS['keys of two lists']!,
      (n) => JSON.stringify({ ...byName(n, () => 1, 'other'), ...byName(n, () => 1) }),
    ],
    ['nested lists', { json_object: true }, (n) => JSON.stringify({ a: names(n).map((name) => [name]) })],
  ])('%s', async (_, spec, text) => {
    const of = async (n: number): Promise<number> =>
      await answer(typeof spec === 'function' ? spec(n) : spec, text(n));
    const [few, many] = typeof spec === 'function' ? SIZES : [100, 400];
    const [small, large] = [await of(few), await of(many)];
    expect(large).toBeLessThanOrEqual(MOST_GROWTH * small);
  });
});
