/** Restrictions that meet in one place, on a real vocabulary: documents get the verdict of ajv, and no `oneOf` reads as `anyOf`. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { compileConstraint } from '../../src/structured/index.ts';
import { accepts, realVocabulary } from './vocabularies.ts';

const string = { type: 'string' };
const pattern = (text: string) => ({ type: 'string', pattern: text });
const anyOrder = { 'x-property-order': 'any' };
const optional = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, string]));
const branch = (kind: string, count: number) => ({
  type: 'object',
  properties: { kind: { enum: [kind, `${kind}s`] }, ...optional(count), own: { type: kind } },
  required: ['kind', 'f1'],
});

/** A schema, documents that are valid, and ones that are not. */
const ROWS: Record<string, [Record<string, unknown>, valid: unknown[], invalid: unknown[]]> = {
  'one of five unanchored patterns': [
    {
      oneOf: [
        pattern('\\{\\{.*\\}\\}'),
        pattern('\\b(yes|no)\\b'),
        pattern('\\p{Lu}\\p{Ll}+'),
        pattern('[^/]+/[^/]+'),
        pattern('[a-z0-9-]+@[a-z0-9-]+\\.[a-z]{2,}'),
      ],
    },
    ['{{ x }}', 'say yes', 'a/b', 'me@example.org', '\u00c9lan'],
    ['{{ x }} yes', 'Me@example.org', 'plain', 'a/b no'],
  ],
  'one of six unanchored patterns, with counts in counts': [
    {
      type: 'object',
      additionalProperties: {
        oneOf: [
          '(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}',
          '([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?',
          '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}',
          '%[A-Za-z]+%',
          '\\b(yes|no)\\b',
          '[0-9]+\\.[0-9]+',
        ].map(pattern),
      },
    },
    [{ k0: 'TWFu-example.com' }, { k0: 'example.com' }],
    [{ k0: 'yes.example.com' }, { k0: 'example' }],
  ],
  'patterns of which one is part of another': [
    {
      type: 'array',
      items: {
        oneOf: [
          '[0-9]+\\.[0-9]+',
          '[0-9]{1,3}(\\.[0-9]{1,3}){3}',
          '%[A-Za-z]+%',
          '(latest|next)',
          '\\d+ms',
        ].map(pattern),
      },
    },
    [['1.5', 'latest', '%HOME%', '30ms', 'b 2.25']],
    [['10.0.0.1'], ['latest 1.5'], ['']],
  ],
  'keys that several patterns match': [
    {
      type: 'object',
      patternProperties: {
        '^.{4,20}$': true,
        '^a': { type: ['string', 'integer'] },
        '^(?!x-).*$': {},
        '^[a-z_]+$': { type: ['string', 'integer'] },
        '^x-': { type: ['string', 'integer'] },
        '^\\w+$': {},
        '^[a-z]+_id$': {},
        name: true,
      },
      required: [
        'street_id',
        'kind_created',
        'x-status',
        'query-score',
        'lat-country',
        'target',
        'notes_id',
        'Level',
        'lon0',
      ],
      additionalProperties: false,
    },
    [
      {
        'query-score': 3,
        street_id: 'x',
        lon0: null,
        'x-status': 'x',
        Level: {},
        notes_id: 1,
        target: 'x',
        'lat-country': 'x',
        kind_created: 'x',
        more_name: 1,
      },
    ],
    [
      { 'query-score': 3, street_id: 'x', lon0: 1, 'x-status': null },
      {
        street_id: 'x',
        kind_created: 'x',
        'x-status': 'x',
        'query-score': 1,
        'lat-country': 1,
        target: 1,
        notes_id: 1,
        Level: 1,
      },
    ],
  ],
  'different objects of many optional properties, in any order': [
    {
      type: 'array',
      uniqueItems: true,
      items: {
        type: 'object',
        properties: { ...optional(20), at: { type: 'object', properties: optional(3) } },
        additionalProperties: false,
      },
    },
    [
      [
        { at: { f0: 'a', f1: 'b' }, f3: 'c', f7: 'd' },
        { f3: 'c', at: { f1: 'b', f0: 'a' } },
        { f7: 'd', at: { f1: 'b', f0: 'a' }, f3: 'c', f0: '' },
      ],
    ],
    [
      [
        { at: { f0: 'a', f1: 'b' }, f3: 'c' },
        { f3: 'c', at: { f1: 'b', f0: 'a' } },
      ],
    ],
  ],
  'an enum of objects, in any order': [
    { enum: [{ a: 1, b: { c: 2, d: 3 } }] },
    [{ b: { d: 3, c: 2 }, a: 1 }],
    [{ a: 1 }],
  ],
  'one of two large objects, told apart by an enum': [
    { oneOf: [branch('string', 24), branch('integer', 24)] },
    [
      { f2: 'x', kind: 'integers', own: 3, f1: 'y' },
      { own: 'x', f1: 'y', kind: 'string' },
    ],
    [{ kind: 'string', own: 3, f1: 'x' }, { kind: 'other', f1: 'x' }, { kind: 'string' }],
  ],
  'a branch with a reference and more': [
    {
      type: 'object',
      properties: { mode: string, a: string, b: { type: 'integer' } },
      if: { properties: { mode: { const: 'full' } }, required: ['mode'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword
      then: { $ref: '#/$defs/named', required: ['b'] },
      else: {
        $ref: '#/$defs/named',
        not: { required: ['b'] },
        if: { required: ['mode'] },
        else: { $ref: '#/$defs/few', minProperties: 1 },
      },
      $defs: { named: { properties: { a: { minLength: 2 } } }, few: { maxProperties: 2 } },
    },
    [
      { b: 1, a: 'xy', mode: 'full' },
      { mode: 'x', a: 'xy' },
      { a: 'xy', c: 1 },
    ],
    [{ mode: 'full', a: 'xy' }, { mode: 'full', a: 'x', b: 1 }, { b: 1 }, {}, { a: 'xy', c: 1, d: 1 }],
  ],
  'maps in maps whose keys have a pattern': [
    {
      $ref: '#/$defs/map',
      $defs: {
        map: {
          type: 'object',
          propertyNames: { pattern: '^(?!x-)[a-zA-Z0-9_-]+$' },
          additionalProperties: {
            oneOf: [
              { type: ['string', 'number', 'null'] },
              { type: 'array', items: { $ref: '#/$defs/map' } },
              { $ref: '#/$defs/map' },
            ],
          },
        },
      },
    },
    [{ a: { b: 1, 'c-d': [{}, { e: null }] }, x: { y: {} } }],
    [{ 'x-a': 1 }, { a: { 'b c': 1 } }, { a: [1] }],
  ],
  'recursive members of several types': [
    {
      type: ['array', 'boolean', 'null', 'object', 'number', 'string'],
      additionalProperties: { $ref: '#/$defs/b' },
      items: { $ref: '#' },
      minProperties: 2,
      $defs: {
        a: { type: ['null', 'array', 'boolean'], enum: ['alpha', 1, null, ['a']] },
        b: {
          type: ['string', 'number', 'array', 'object'],
          properties: {
            bucket: { $ref: '#/$defs/a' },
            kind: {
              type: ['array', 'integer', 'object'],
              properties: { lat: { $ref: '#/$defs/c' }, fields: { $ref: '#/$defs/c' } },
              anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }],
            },
          },
          oneOf: [
            {
              type: ['integer', 'array', 'string', 'number', 'boolean'],
              additionalProperties: { $ref: '#/$defs/a' },
            },
            { $ref: '#/$defs/a' },
            { $ref: '#' },
          ],
        },
        c: {
          type: ['integer', 'object', 'null', 'array'],
          additionalProperties: { $ref: '#/$defs/b' },
          items: { $ref: '#' },
          properties: {
            owner: {
              type: ['object', 'string'],
              additionalProperties: { $ref: '#/$defs/b' },
              oneOf: [{ $ref: '#/$defs/c' }, { $ref: '#' }, { $ref: '#/$defs/b' }],
              minProperties: 2,
            },
          },
        },
      },
    },
    [true, [3, 'x'], { x: [{}], y: [{ q: 1 }] }],
    [
      { x: [{}] },
      { x: [{}], y: 2 },
      { x: [{}], y: [] },
      { x: { a: 'q', b: 2 }, y: [{}] },
      [{ x: 'a', y: ['a'] }],
    ],
  ],
  'one of arrays of different items': [
    {
      oneOf: [
        {
          type: 'array',
          items: { oneOf: [{ type: 'string', minLength: 3 }, { type: 'integer' }] },
          contains: { type: 'array' },
        },
        { type: 'array', items: { enum: ['name', 'country', 'lon'] }, maxItems: 2 },
        { type: 'array', items: { type: ['string', 'number'] }, uniqueItems: true },
        { type: 'array', items: { type: 'array', items: string }, minItems: 1 },
      ],
    },
    [
      ['title', 'limit'],
      ['lon', 'owner', 3],
      [['a'], []],
    ],
    [['lon'], ['title', 'title'], []],
  ],
};

describe('restrictions that meet', () => {
  it.each(Object.entries(ROWS))('%s', async (_, [schema, valid, invalid]) => {
    const vocabulary = await realVocabulary('llama-bpe');
    expect(vocabulary).not.toBeTypeOf('string');
    if (typeof vocabulary === 'string') return;
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    const judge = new Ajv2020({ strict: false, logger: false }).compile(schema);
    const constraint = await compileConstraint(
      { json: { ...schema, ...anyOrder }, disable_fallback: false },
      vocabulary,
    );
    expect(constraint.relaxed).toEqual([]);
    for (const document of [...valid, ...invalid]) {
      const text = JSON.stringify(document);
      const expected = valid.includes(document);
      expect(judge(document), text).toBe(expected);
      for (const tokens of [
        vocabulary.tokenize(text),
        [...Buffer.from(text)].flatMap((byte) => [...vocabulary.tokenize(Uint8Array.of(byte))]),
      ])
        expect(accepts(constraint.createMatcher(), tokens, mask, vocabulary.eosTokenIds[0]!), text).toBe(
          expected,
        );
    }
  });
});
