import { describe, expect, it } from 'vitest';
import { compileConstraint, createVocabulary } from '../../src/structured/index.ts';

const END = 256;
const bytes = createVocabulary({
  tokens: [...Array.from({ length: END }, (_, byte) => Uint8Array.of(byte)), '<end>'],
  eosTokenIds: [END],
  specialTokenIds: [END],
});

/** Returns true if a schema allows a text and its end. */
async function allows(schema: Readonly<Record<string, unknown>>, text: string): Promise<boolean> {
  const matcher = (await compileConstraint({ json: schema }, bytes)).createMatcher();
  return [...new TextEncoder().encode(text), END].every((token) => matcher.accept(token));
}

const TREE = {
  $id: 'http://example.test/tree',
  $dynamicAnchor: 'node',
  type: 'object',
  properties: { data: true, children: { type: 'array', items: { $dynamicRef: '#node' } } },
};

describe('references', () => {
  it('that are dynamic lead to the outermost schema of that name', async () => {
    const strict = {
      $id: 'http://example.test/strict',
      $dynamicAnchor: 'node',
      $ref: 'tree',
      properties: { data: { type: 'integer' } },
      $defs: { tree: TREE },
    };
    const text = '{"children":[{"data":"x"}]}';
    expect(await allows(TREE, text)).toBe(true);
    expect(await allows(strict, text)).toBe(false);
    expect(await allows(strict, '{"children":[{"data":5}]}')).toBe(true);
  });

  it.each(['http://json-schema.org/draft-07/schema#', 'https://json-schema.org/draft/2020-12/schema'])(
    'may name the schema of schemas %s',
    async ($ref) => {
      expect(await allows({ $ref }, '{"properties":{"a":{"minimum":3}}}')).toBe(true);
      expect(await allows({ $ref }, '{"properties":{"a":3}}')).toBe(false);
      expect(await allows({ $ref }, '{"type":5}')).toBe(false);
    },
  );

  it('may lead to schemas that the caller gives', async () => {
    const schemas = {
      'https://a.example/size': { $id: 'https://a.example/size', enum: ['s', 'm'] },
      'https://a.example/item': {
        type: 'object',
        properties: { size: { $ref: 'size' }, tag: { $ref: '#/$defs/tag' } },
        required: ['size'],
        $defs: { tag: { type: 'null' } },
      },
      'https://a.example/open': true,
    };
    const json = { type: 'array', items: { $ref: 'https://a.example/item' } };
    const constraint = await compileConstraint({ json, schemas }, bytes);
    const isAllowed = (text: string) => {
      const matcher = constraint.createMatcher();
      return [...new TextEncoder().encode(text), END].every((token) => matcher.accept(token));
    };
    expect(isAllowed('[{"size":"m","tag":null}]')).toBe(true);
    expect(isAllowed('[{"size":"x"}]')).toBe(false);
    expect(isAllowed('[{"size":"s","tag":1}]')).toBe(false);
    const open = { json: { $ref: 'https://a.example/open' }, schemas };
    await expect(compileConstraint(open, bytes)).resolves.toBeDefined();
    await expect(compileConstraint({ json }, bytes)).rejects.toThrow(/to no schema that was given/);
    const broken = { json, schemas: { 'https://a.example/item': { $ref: 'gone' } } };
    await expect(compileConstraint(broken, bytes)).rejects.toThrow(/'gone' leads out/);
  });

  it('may name a definition in the schema of schemas', async () => {
    const $ref = 'http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger';
    expect(await allows({ $ref }, '3')).toBe(true);
    expect(await allows({ $ref }, '-3')).toBe(false);
  });
});
