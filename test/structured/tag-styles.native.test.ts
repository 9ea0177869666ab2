/** The styles in which families of models write arguments as tagged parameters: what each allows, token by token. */
import { describe, expect, it } from 'vitest';
import { compileConstraint, createVocabulary } from '../../src/structured/index.ts';
import { accepts, smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));

/** Returns true if a schema in a style allows a text, both in the vocabulary's tokens and byte by byte. */
async function allows(style: string, schema: unknown, text: string): Promise<boolean> {
  const format = { type: 'json_schema', json_schema: schema, style };
  const constraint = await compileConstraint(
    { structural_tag: { type: 'structural_tag', format } },
    vocabulary,
  );
  const splits = [vocabulary.tokenize(text), [...Buffer.from(text)]];
  const answers = splits.map((tokens) =>
    accepts(constraint.createMatcher(), tokens, mask, vocabulary.eosTokenIds[0]!),
  );
  expect(new Set(answers).size, text).toBe(1);
  return answers[0]!;
}

const SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 2, pattern: '^[A-Za-z "]+$' },
    unit: { enum: ['C', 'F'] },
    days: { type: 'integer', minimum: 1, maximum: 14 },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 2 },
  },
  required: ['city'],
  additionalProperties: { type: ['string', 'number'] },
};

/** How each style writes one parameter: key, JSON type, value. */
const WRITE: Readonly<Record<string, (key: string, type: string, value: string) => string>> = {
  qwen_xml: (key, _, value) => `<parameter=${key}>${value}</parameter>`,
  minimax_xml: (key, _, value) => `<parameter name="${key}">${value}</parameter>`,
  deepseek_xml: (key, type, value) =>
    `<｜DSML｜parameter name="${key}" string="${type === 'string'}">${value}</｜DSML｜parameter>`,
  glm_xml: (key, _, value) => `<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>`,
  seed_xml: (key, _, value) => `<parameter=${key}>${value}</parameter>`,
  atem_xml: (key, _, value) => `<atem:parameter name="${key}">${value}</atem:parameter>`,
  minicpm_xml: (key, _, value) => `<param name="${key}">${value}</param>`,
  hunyuan_xml: (key, _, value) =>
    `<arg_key:opensource>${key}</arg_key:opensource>\n<arg_value:opensource>${value}</arg_value:opensource>`,
  cohere_xml: (key, type, value) => {
    const kind = type === 'string' ? 'raw' : type === 'array' ? 'list' : 'json';
    return `<cofl:value name="${key}" type="${kind}">${value}</cofl:value>`;
  },
  kimi_k3_xml: (key, type, value) =>
    `<|open|>argument key="${key}" type="${type}"<|sep|>${value}<|close|>argument<|sep|>`,
};

describe.each(Object.entries(WRITE))('%s', (style, write) => {
  const city = write('city', 'string', 'New "York"');

  it.each<[string, string, boolean]>([
    ['a required parameter', city, true],
    ['nothing, where one is required', '', false],
    ['several, in order, with line breaks', `${city}\n${write('days', 'number', '14')}`, true],
    ['another order', `${write('days', 'number', '14')}${city}`, false],
    ['a number beyond its maximum', `${city}${write('days', 'number', '15')}`, false],
    ['a text that breaks its pattern', write('city', 'string', 'York1'), false],
    ['a text that is too short', write('city', 'string', 'Y'), false],
    ['a listed text', `${city}${write('unit', 'string', 'C')}`, true],
    ['a listed text in quotes', `${city}${write('unit', 'string', '"C"')}`, false],
    ['a key twice', `${city}${city}`, false],
    ['a further key', `${city}${write('note', 'string', 'a <b> & "c"')}`, true],
    ['two further keys', `${city}${write('note', 'string', 'x')}${write('notes', 'number', '1.5')}`, true],
    ['a further key twice', `${city}${write('note', 'string', 'x')}${write('note', 'string', 'y')}`, false],
    ['a declared key among the further ones', `${city}${write('note', 'string', 'x')}${city}`, false],
  ])('%s', async (_, text, expected) => {
    expect(await allows(style, SCHEMA, text)).toBe(expected);
  });

  it('writes lists', async () => {
    const list = (...items: string[]): string =>
      style === 'cohere_xml'
        ? items.map((item) => `<cofl:value type="raw">${item}</cofl:value>`).join('\n')
        : JSON.stringify(items);
    const tags = (...items: string[]): string => `${city}${write('tags', 'array', list(...items))}`;
    expect(await allows(style, SCHEMA, tags())).toBe(true);
    expect(await allows(style, SCHEMA, tags('a', 'b'))).toBe(true);
    expect(await allows(style, SCHEMA, tags('a', 'b', 'c'))).toBe(false);
  });

  it('needs an object, and keys that it can write', async () => {
    const end =
      { qwen_xml: '>', glm_xml: '</arg_key>', hunyuan_xml: '</arg_key:opensource>' }[style] ??
      '" type=" string=">';
    const refused = async (schema: unknown): Promise<string> =>
      await allows(style, schema, '').then(
        () => 'accepted',
        (error: Error) => error.message,
      );
    expect(await refused({ type: 'string' })).toContain(style);
    if (style !== 'kimi_k3_xml')
      expect(await refused({ type: 'object', properties: { [`a${end}b`]: {} } })).toContain(style);
  });
});

describe.each([
  ['python', '=', ', ', '"New \\"York\\""', '"C"'],
  ['gemma', ':', ',', '<|"|>New "York"<|"|>', '<|"|>C<|"|>'],
] as const)('%s', (style, equals, comma, york, celsius) => {
  const city = `city${equals}${york}`;
  const unit = `unit${equals}${celsius}`;

  it.each<[string, string, boolean]>([
    ['a text', city, true],
    ['nothing, without the required key', '', false],
    ['several keys', [city, unit, `days${equals}3`].join(comma), true],
    ['a text without quotes', `city${equals}York`, false],
    ['a text that is not listed', `${city}${comma}unit${equals}${celsius.replace('C', 'K')}`, false],
    ['a number past its maximum', `${city}${comma}days${equals}15`, false],
    ['a list as JSON', `${city}${comma}tags${equals}["a", "b"]`, true],
    ['a list that is too long', `${city}${comma}tags${equals}["a", "b", "c"]`, false],
    ['a key twice', `${city}${comma}${city}`, false],
    ['a further key', `${city}${comma}note_1${equals}1.5`, true],
    ['two further keys', `note${equals}1${comma}${city}${comma}notes${equals}2`, true],
    ['a further key twice', `${city}${comma}note${equals}1${comma}note${equals}2`, false],
    ['a declared key among the further ones', `note${equals}1${comma}${unit}${comma}${unit}`, false],
    ['a key in quotes', `"city"${equals}${york}`, false],
    ['no separator', `${city}${unit}`, false],
  ])('%s', async (_, text, expected) => {
    expect(await allows(style, SCHEMA, text)).toBe(expected);
  });

  it('refuses keys that are no words', async () => {
    const schema = { type: 'object', properties: { 'a b': {} } };
    await expect(allows(style, schema, '')).rejects.toThrow(
      `the style '${style}' cannot write the property 'a b'`,
    );
  });
});

it('asks for the token of a quote where the vocabulary has one', async () => {
  const tokens = [...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)), '<end>', '<|"|>'];
  const gemma = createVocabulary({ tokens, eosTokenIds: [256], specialTokenIds: [256, 257] });
  const format = { type: 'json_schema', json_schema: SCHEMA, style: 'gemma' };
  const constraint = await compileConstraint({ structural_tag: { type: 'structural_tag', format } }, gemma);
  const bits = new Int32Array(Math.ceil(gemma.size / 32));
  const reads = (...parts: (string | number)[]): boolean => {
    const ids = parts.flatMap((part) => (typeof part === 'number' ? [part] : [...Buffer.from(part)]));
    return accepts(constraint.createMatcher(), ids, bits, 256);
  };
  expect(reads('city:', 257, 'New "York"', 257)).toBe(true);
  expect(reads('city:', 257, 'Rome', 257, ',unit:', 257, 'C', 257)).toBe(true);
  expect(reads('city:<|"|>Rome<|"|>')).toBe(false);
  expect(reads('city:', 257, 'Rome', ',unit:', 257, 'C', 257)).toBe(false);
});

it('tells texts from other values by the attribute, where the schema leaves it open', async () => {
  const schema = { type: 'object', properties: { v: { type: ['string', 'integer'] } }, required: ['v'] };
  const value = (flag: boolean, text: string): string =>
    `<｜DSML｜parameter name="v" string="${flag}">${text}</｜DSML｜parameter>`;
  expect(await allows('deepseek_xml', schema, value(true, 'five'))).toBe(true);
  expect(await allows('deepseek_xml', schema, value(false, '5'))).toBe(true);
  expect(await allows('deepseek_xml', schema, value(false, 'five'))).toBe(false);
});

it('nests dicts and lists of the kind style, and escapes keys of the type style', async () => {
  const schema = {
    type: 'object',
    properties: {
      rows: { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } } } },
    },
    required: ['rows'],
  };
  const row = (id: string): string =>
    `<cofl:value type="dict"><cofl:value name="id" type="json">${id}</cofl:value></cofl:value>`;
  const rows = (...all: string[]): string =>
    `<cofl:value name="rows" type="list">${all.join('')}</cofl:value>`;
  expect(await allows('cohere_xml', schema, rows(row('1'), row('2')))).toBe(true);
  expect(await allows('cohere_xml', schema, rows(row('1.5')))).toBe(false);
  const quoted = { type: 'object', properties: { 'a"&': { type: 'boolean' } }, required: ['a"&'] };
  const argument = (key: string): string =>
    `<|open|>argument key="${key}" type="boolean"<|sep|>true<|close|>argument<|sep|>`;
  expect(await allows('kimi_k3_xml', quoted, argument('a&quot;&amp;'))).toBe(true);
  expect(await allows('kimi_k3_xml', quoted, argument('a"&'))).toBe(false);
});
