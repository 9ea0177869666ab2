/** Structural tags: their shape, and that the parsers read the texts they allow. */
import { describe, expect, it } from 'vitest';
import {
  formatRow,
  type StructuralFormat,
  type StructuralTag,
  TOOL_FORMATS,
  toolCallStructuralTag,
} from '../../../src/template/tool-calls/index.ts';
import { answerOf, callsOf, TOOLS } from './harness.ts';

const WEATHER_SCHEMA = TOOLS[0]!.function.parameters;

const ARGUMENTS = {
  json: '{"city": "Paris"}',
  qwen_xml: '<parameter=city>\nParis\n</parameter>',
  glm_xml: '\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n',
  minimax_xml: '<parameter name="city">Paris</parameter>',
  deepseek_xml: '<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>',
  seed_xml: '<parameter=city>Paris</parameter>',
  hunyuan_xml:
    '<arg_key:opensource>city</arg_key:opensource><arg_value:opensource>Paris</arg_value:opensource>',
  atem_xml: '<atem:parameter name="city">Paris</atem:parameter>',
  minicpm_xml: '<param name="city">Paris</param>',
  python: 'city="Paris"',
  gemma: 'city:<|"|>Paris<|"|>',
} as const;

/** Writes the shortest text that a tag allows, with the city Paris for a schema. */
function write(format: StructuralFormat | string | null | undefined): string {
  if (typeof format === 'string') return format;
  switch (format?.type) {
    case 'const_string':
      return format.value!;
    case 'token':
      return format.token!;
    case 'regex':
      return '0';
    case 'json_schema':
      return ARGUMENTS[format.style ?? 'json'];
    case 'sequence':
      return format.elements!.map(write).join('');
    case 'optional':
      return '';
    case 'tag':
      return write(format.begin) + write(format.content) + write(format.end);
    case 'tags_with_separator':
      return format.stop_after_first
        ? write(format.tags![0])
        : format.tags!.map(write).join(format.separator);
    case 'triggered_tags':
      return `Some text. ${write(format.tags![0])}`;
    default:
      throw new Error(`unexpected format ${format?.type}`);
  }
}

/** The text that a structural tag allows. */
function written(tag: StructuralTag | null): string {
  return write(tag?.format);
}

const withSyntax = TOOL_FORMATS.filter((format) => formatRow(format).writes !== undefined);

describe.each(withSyntax)('%s', (format) => {
  const paris = ['get_weather', { city: 'Paris' }];
  const other = ['get_time', { city: 'Paris' }];

  it('writes what its parser reads', () => {
    const required = (parallel: boolean): string =>
      written(toolCallStructuralTag(format, TOOLS, 'required', parallel));
    const hasOne = formatRow(format).writes!.separator === null;
    expect(callsOf(answerOf(format, required(true)))).toEqual(hasOne ? [paris] : [paris, other]);
    expect(callsOf(answerOf(format, required(false)))).toEqual([paris]);
    expect(answerOf(format, required(true)).content).toBe('');
    const named = written(toolCallStructuralTag(format, TOOLS, { name: 'get_time' }, true));
    expect(callsOf(answerOf(format, named))).toEqual([other]);
  });

  it('writes calls into text for auto, where a call can be told from text', () => {
    const auto = toolCallStructuralTag(format, TOOLS, 'auto', true);
    if (formatRow(format).writes!.trigger === null) expect(auto).toBeNull();
    else expect(callsOf(answerOf(format, written(auto)))[0]).toEqual(paris);
  });
});

it('covers the families that people use', () => {
  expect(withSyntax).toEqual(
    expect.arrayContaining([
      'hermes',
      'llama3_json',
      'mistral',
      'mistral_args',
      'deepseek_v3',
      'kimi_k2',
      'qwen3_coder',
      'glm45',
      'minimax_m2',
      'deepseek_v32',
      'granite',
    ]),
  );
  for (const format of ['functiongemma', 'cohere'] as const)
    expect(toolCallStructuralTag(format, TOOLS, 'required', true)).toBeNull();
});

it('builds hermes tags', () => {
  const tag = {
    type: 'tag',
    begin: '<tool_call>\n{"name": "get_weather", "arguments": ',
    content: { type: 'json_schema', json_schema: WEATHER_SCHEMA },
    end: '}\n</tool_call>',
  };
  expect(toolCallStructuralTag('hermes', TOOLS, { name: 'get_weather' }, true)).toEqual({
    type: 'structural_tag',
    format: tag,
  });
  expect(toolCallStructuralTag('hermes', [TOOLS[0]!], 'required', false)).toEqual({
    type: 'structural_tag',
    format: {
      type: 'tags_with_separator',
      tags: [tag],
      separator: '\n',
      at_least_one: true,
      stop_after_first: true,
    },
  });
  expect(toolCallStructuralTag('hermes', [TOOLS[0]!], 'auto', true)).toEqual({
    type: 'structural_tag',
    format: {
      type: 'triggered_tags',
      triggers: ['<tool_call>'],
      tags: [tag],
      at_least_one: false,
      stop_after_first: false,
    },
  });
});

it('asks for tokens where the tokenizer has special ones', () => {
  const specialTokens = new Set(['[TOOL_CALLS]', '[ARGS]']);
  const named = toolCallStructuralTag('mistral_args', TOOLS, { name: 'get_weather' }, true, {
    specialTokens,
  });
  expect(named!.format).toEqual({
    type: 'tag',
    begin: { type: 'token', token: '[TOOL_CALLS]' },
    content: {
      type: 'sequence',
      elements: [
        { type: 'const_string', value: 'get_weather' },
        { type: 'token', token: '[ARGS]' },
        { type: 'json_schema', json_schema: WEATHER_SCHEMA },
      ],
    },
    end: '',
  });
  const auto = toolCallStructuralTag('mistral_args', TOOLS, 'auto', false, { specialTokens });
  expect(auto!.format).toMatchObject({ type: 'token_triggered_tags', trigger_tokens: ['[TOOL_CALLS]'] });
});

it('lets reasoning come before calls that the model makes by itself', () => {
  const reasoning = { begin: '<think>', end: '</think>' };
  const auto = toolCallStructuralTag('hermes', TOOLS, 'auto', true, { reasoning });
  const plain = toolCallStructuralTag('hermes', TOOLS, 'auto', true);
  const thoughts = { type: 'tag', begin: '<think>', content: { type: 'any_text' }, end: '</think>' };
  expect(auto!.format).toEqual({
    type: 'sequence',
    elements: [{ type: 'optional', content: thoughts }, plain!.format],
  });
});

it('gives a tool without parameters an empty object, and refuses a name that no tool has', () => {
  const tag = toolCallStructuralTag('hermes', [{ function: { name: 'f' } }], { name: 'f' }, true);
  expect(tag!.format.content).toEqual({
    type: 'json_schema',
    json_schema: { type: 'object', properties: {}, additionalProperties: false },
  });
  expect(() => toolCallStructuralTag('hermes', TOOLS, { name: 'g' }, true)).toThrow('tool_choice');
});
