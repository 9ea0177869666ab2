/** Objects that must differ from others, choices beside other restrictions, and objects with very many keys. */
import { describe, expect, it } from 'vitest';
import { compileConstraint } from '../../src/structured/index.ts';
import { accepts, realVocabulary, smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();

async function takes(json: Readonly<Record<string, unknown>>, text: string): Promise<boolean> {
  const matcher = (await compileConstraint({ json }, vocabulary)).createMatcher();
  const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
  return accepts(matcher, Buffer.from(text), mask, vocabulary.eosTokenIds[0]!);
}

/** An object whose only key, which may be absent, is `key`. */
const only = (key: string) => ({
  type: 'object',
  properties: { [key]: { type: 'string' } },
  additionalProperties: false,
});
const notAll = (type: string) => ({ not: { type: 'object', additionalProperties: { type } } });

describe('one member that differs in several ways', () => {
  const three = { oneOf: [only('a'), only('b'), only('c')] };
  const mixed = { type: 'object', allOf: [notAll('integer'), notAll('string')] };
  it.each([
    ['of three closed objects', three, ['{"a":"x"}', '{"b":"x"}', '{"c":"x"}'], ['{}', '{"a":"x","b":"y"}']],
    [
      'of no closed object',
      { type: 'object', not: { anyOf: [only('a'), only('b')] } },
      ['{"c":1}'],
      ['{"a":"x"}'],
    ],
    ['by its value', mixed, ['{"a":null}', '{"a":1,"b":"x"}'], ['{"a":1}', '{"a":"x"}', '{}']],
    ['where there is room for one', { ...mixed, maxProperties: 1 }, ['{"a":null}'], ['{"a":1}', '{}']],
  ] as const)('%s', async (_, json, valid, invalid) => {
    for (const text of valid) expect(await takes(json, text), text).toBe(true);
    for (const text of invalid) expect(await takes(json, text), text).toBe(false);
  });

  it('is refused where no value of it would do', async () => {
    const json = { ...mixed, maxProperties: 1, additionalProperties: { type: ['integer', 'string'] } };
    await expect(compileConstraint({ json }, vocabulary)).rejects.toThrow('nothing can be generated');
  });
});

describe('a choice under a negation', () => {
  const kinds = Array.from({ length: 9 }, (_, i) => ({
    type: 'object',
    properties: { type: { const: `kind${i}` }, name: { type: 'string' }, size: { type: 'integer' } },
    patternProperties: { '^x-': true },
    required: ['type', 'name'],
    additionalProperties: false,
  }));
  const reference = { type: 'object', properties: { ref: { type: 'string' } }, required: ['ref'] };

  it('costs nothing for branches that cannot hold anyway', async () => {
    const json = { oneOf: [reference, { $ref: '#/$defs/kind' }], $defs: { kind: { oneOf: kinds } } };
    expect(await takes(json, '{"ref":"x","more":1}')).toBe(true);
    expect(await takes(json, '{"type":"kind8","name":"x"}')).toBe(true);
    expect(await takes(json, '{"type":"kind9","name":"x"}')).toBe(false);
    expect(await takes(json, '{"type":"kind1"}')).toBe(false);
  });
});

describe('a choice of recursive objects', () => {
  const node = (type: string) => ({
    type: 'object',
    properties: { type: { const: type }, items: { $ref: '#' }, name: { type: 'string' } },
    required: ['type', 'items'],
  });
  const json = { oneOf: [{ type: 'string' }, ...['array', 'map', 'set', 'bag', 'tree', 'list'].map(node)] };

  it('is told apart by what is not recursive', async () => {
    expect(await takes(json, '{"type":"map","items":{"type":"bag","items":"x"}}')).toBe(true);
    expect(await takes(json, '{"type":"map","items":{"type":"box","items":"x"}}')).toBe(false);
    expect(await takes(json, '{"type":"map"}')).toBe(false);
  });
});

describe('an object with very many keys', async () => {
  const real = await realVocabulary('llama-bpe');
  it.skipIf(typeof real === 'string')('has every token of every key', async () => {
    if (typeof real === 'string') return;
    const words = ['add', 'base', 'cache', 'delete', 'enable', 'filter', 'group', 'host', 'index', 'job'];
    const keys = words.flatMap((a) => words.flatMap((b) => ['', 'Name', 'Url'].map((c) => `${a}-${b}${c}`)));
    const json = { type: 'object', properties: Object.fromEntries(keys.map((key) => [key, {}])) };
    const matcher = (await compileConstraint({ json }, real)).createMatcher();
    const mask = new Int32Array(Math.ceil(real.size / 32));
    const text = JSON.stringify(
      Object.fromEntries(keys.filter((_, i) => i % 7 === 3).map((key) => [key, {}])),
    );
    for (const token of real.tokenize(text)) {
      matcher.fillMask(mask);
      expect((mask[token >> 5]! >>> (token & 31)) & 1).toBe(1);
      matcher.accept(token);
    }
    expect(matcher.isComplete()).toBe(true);
  });
});
