/** The styles in which families of models write arguments as tagged parameters: what each allows, token by token. */
import { describe, expect, it } from 'vitest';
import { compileConstraint } from '../../src/structured/index.ts';
import { accepts, smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));

/** Whether a schema in a style allows a text, in the vocabulary's own split and byte by byte. */
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
    const end = { qwen_xml: '>', glm_xml: '</arg_key>' }[style] ?? '" type=" string=">';
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
