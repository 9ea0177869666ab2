/** Every field of a chat completion request by itself: what it takes, what it becomes, what it refuses. */
import { describe, expect, it } from 'vitest';
import type { ValidChatRequest } from '../../src/protocol/index.ts';
import { IGNORED_FIELDS } from '../../src/protocol/schemas/chat-completion.ts';
import { definitions } from '../../src/protocol/schemas/index.ts';
import { messagesOf, valid, WEATHER } from './request.ts';

type Row = {
  /** Where the valid request has the value; the same field unless said. */
  readonly as?: keyof ValidChatRequest;
  /** The value of an absent field. */
  readonly absent: unknown;
  /** Given value -> value of the valid request. */
  readonly good: readonly (readonly [unknown, unknown])[];
  /** Refused value -> what the message says after the field's name. */
  readonly bad: readonly (readonly [unknown, string])[];
  /** Other fields that the good values need. */
  readonly beside?: Record<string, unknown>;
};

const same = (...values: unknown[]): (readonly [unknown, unknown])[] => values.map((value) => [value, value]);

const flag = (absent: boolean): Row => ({
  absent,
  good: same(true, false),
  bad: [
    [null, ': expected true or false, got null'],
    ['true', ': expected true or false, got "true"'],
    [1, ': expected true or false, got 1'],
  ],
});

const flagOrNull = (absent: boolean, ofNull = absent): Row => ({
  absent,
  good: [...same(true, false), [null, ofNull]],
  bad: [['false', ': expected true or false or null, got "false"']],
});

const text = (absent: unknown, ...more: Row['good']): Row => ({
  absent,
  good: [...same('x'), [null, null], ...more],
  bad: [[5, ': expected a string or null, got 5']],
});

const jsonObject = (absent: unknown): Row => ({
  absent,
  good: [...same({ a: [1, { b: null }] }, {}), [null, absent]],
  bad: [
    ['{}', ': expected an object or null, got "{}"'],
    [[1], ': expected an object or null, got a list of 1'],
    [{ a: [Number.NaN] }, '.a.0: expected a finite number, got NaN'],
    [{ a: () => 1 }, '.a: expected JSON data, got a function'],
  ],
});

const penalty: Row = {
  absent: 0,
  good: [...same(-2, 0, 0.5, 2), [null, 0]],
  bad: [
    [-2.01, ': expected a number from -2 to 2 or null, got -2.01'],
    [2.01, ': expected a number from -2 to 2 or null, got 2.01'],
    ['1', ': expected a number from -2 to 2 or null, got "1"'],
    [Number.NaN, ': expected a number from -2 to 2 or null, got NaN'],
  ],
};

const atLeastOne: Row = {
  absent: null,
  good: [...same(1, 4096), [null, null]],
  bad: [
    [0, ': expected an integer >= 1 or null, got 0'],
    [-1, ': expected an integer >= 1 or null, got -1'],
    [1.5, ': expected an integer >= 1 or null, got 1.5'],
    ['2', ': expected an integer >= 1 or null, got "2"'],
  ],
};

const tagged = { begin: '<a>', schema: { type: 'object' }, end: '</a>' };
const nothing = {
  json: null,
  regex: null,
  choice: null,
  grammar: null,
  json_object: null,
  structural_tag: null,
  disable_fallback: false,
  disable_any_whitespace: false,
  disable_additional_properties: false,
  whitespace_pattern: null,
};
const processor = () => {};

const ROWS: Record<string, Row> = {
  model: text(null, ['', null]),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: {
    absent: null,
    good: same(0.01, 1, 30, null),
    bad: [
      [0, ': expected a number > 0 or null, got 0'],
      [-1, ': expected a number > 0 or null, got -1'],
      [Number.POSITIVE_INFINITY, ': expected a number > 0 or null, got Infinity'],
    ],
  },
  logit_bias: {
    absent: new Map(),
    good: [
      [null, new Map()],
      [{}, new Map()],
      [
        { 5: 2.5, 7: -300, 9: 1e9 },
        new Map([
          [5, 2.5],
          [7, -100],
          [9, 100],
        ]),
      ],
    ],
    bad: [
      [{ x: 1 }, '.x: expected a token id as key, got "x"'],
      [{ '-1': 1 }, '.-1: expected a token id as key, got "-1"'],
      [{ '1.5': 1 }, '.1.5: expected a token id as key, got "1.5"'],
      [{ '007': 1 }, '.007: expected a token id as key, got "007"'],
      [{ 2147483648: 1 }, '.2147483648: expected a token id as key, got "2147483648"'],
      [JSON.parse('{"__proto__": 1}'), '.__proto__: expected a token id as key, got "__proto__"'],
      [{ 5: '1' }, '.5: expected a number, got "1"'],
      [{ 5: Number.NaN }, '.5: expected a number, got NaN'],
      [new Map([[5, 1]]), ': expected an object or null, got a value of type Map'],
      [[1], ': expected an object or null, got a list of 1'],
    ],
  },
  temperature: {
    absent: null,
    good: same(0, 0.001, 1, 7, null),
    bad: [
      [-0.1, ': expected a number >= 0 or null, got -0.1'],
      [Number.POSITIVE_INFINITY, ': expected a number >= 0 or null, got Infinity'],
      [[], ': expected a number >= 0 or null, got an empty list'],
    ],
  },
  top_p: {
    absent: null,
    good: same(0.0001, 1, null),
    bad: [
      [0, ': expected a number > 0 and <= 1 or null, got 0'],
      [1.1, ': expected a number > 0 and <= 1 or null, got 1.1'],
    ],
  },
  top_k: {
    absent: null,
    good: [...same(1, 0, 100_000, null), [-1, 0]],
    bad: [
      [-2, ': expected an integer >= -1 or null, got -2'],
      [1.5, ': expected an integer >= -1 or null, got 1.5'],
    ],
  },
  min_p: {
    absent: null,
    good: same(0, 0.5, 1, null),
    bad: [
      [-0.1, ': expected a number from 0 to 1 or null, got -0.1'],
      [1.1, ': expected a number from 0 to 1 or null, got 1.1'],
    ],
  },
  seed: {
    absent: null,
    good: [
      [0, 0n],
      [42, 42n],
      [-2, -2n],
      [-1, null], // asks for no seed
      [-1n, null],
      [null, null],
      [2 ** 60, 2n ** 60n],
      [2 ** 63, 2n ** 63n - 1n], // how 2^63 - 1 comes out of JSON
      [-(2 ** 63), -(2n ** 63n)],
      [2n ** 63n - 1n, 2n ** 63n - 1n],
      [-(2n ** 63n), -(2n ** 63n)],
    ],
    bad: [
      [
        1e19,
        ': expected an integer from -9223372036854775808 to 9223372036854775807 or null, got 10000000000000000000',
      ],
      [
        2n ** 63n,
        ': expected an integer from -9223372036854775808 to 9223372036854775807, got 9223372036854775808n',
      ],
      [0.5, ': expected an integer from -9223372036854775808 to 9223372036854775807 or null, got 0.5'],
      ['7', ': expected an integer from -9223372036854775808 to 9223372036854775807 or null, got "7"'],
    ],
  },
  n: {
    absent: 1,
    good: [...same(1, 2, 16_384), [null, 1]],
    bad: [
      [0, ': expected an integer from 1 to 16384 or null, got 0'],
      [16_385, ': expected an integer from 1 to 16384 or null, got 16385'],
      [true, ': expected an integer from 1 to 16384 or null, got true'],
    ],
  },
  use_beam_search: flag(false),
  length_penalty: {
    absent: 1,
    good: same(-1, 0, 2.5),
    bad: [
      [null, ': expected a number, got null'],
      [Number.NaN, ': expected a number, got NaN'],
    ],
  },
  max_tokens: atLeastOne,
  max_completion_tokens: atLeastOne,
  min_tokens: {
    absent: 0,
    good: same(0, 3),
    bad: [
      [-1, ': expected an integer >= 0, got -1'],
      [null, ': expected an integer >= 0, got null'],
    ],
  },
  stop: {
    absent: [],
    good: [
      [null, []],
      ['\n', ['\n']],
      [
        ['a', 'bc'],
        ['a', 'bc'],
      ],
      [[], []],
    ],
    bad: [
      ['', ': expected a non-empty string, a list or null, got ""'],
      [['a', ''], '.1: expected a non-empty string, got ""'],
      [['a', 5], '.1: expected a non-empty string, got 5'],
      [5, ': expected a non-empty string, a list or null, got 5'],
    ],
  },
  stop_token_ids: {
    absent: [],
    good: [...same([0, 5, 5], []), [null, []]],
    bad: [
      [[1.5], '.0: expected an integer >= 0, got 1.5'],
      [[-1], '.0: expected an integer >= 0, got -1'],
      [Int32Array.of(1), ': expected a list or null, got a value of type Int32Array'],
    ],
  },
  include_stop_str_in_output: flag(false),
  ignore_eos: flag(false),
  allowed_token_ids: {
    absent: null,
    good: same([0], [5, 9], null),
    bad: [
      [[], ': expected a non-empty list or null, got an empty list'],
      [['5'], '.0: expected an integer >= 0, got "5"'],
    ],
  },
  bad_words: {
    absent: [],
    good: same([], ['a', ' two words']),
    bad: [
      [null, ': expected a list, got null'],
      [['ok', ''], '.1: expected a text that is not blank, got ""'],
      [[' \n'], '.0: expected a text that is not blank, got " \\n"'],
      [[5], '.0: expected a string, got 5'],
    ],
  },
  response_format: {
    as: 'structured_outputs',
    absent: null,
    good: [
      [null, null],
      [{ type: 'text' }, null],
      [{ type: 'json_object' }, { ...nothing, json_object: true }],
      [
        { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' }, strict: true } },
        { ...nothing, json: { type: 'object' } },
      ],
      [{ type: 'json_schema', json_schema: { name: 'x' } }, null],
      [
        { type: 'structural_tag', format: { type: 'any_text' } },
        { ...nothing, structural_tag: '{"type":"structural_tag","format":{"type":"any_text"}}' },
      ],
      [
        { type: 'structural_tag', structures: [tagged], triggers: ['<a'] },
        {
          ...nothing,
          structural_tag: JSON.stringify({ type: 'structural_tag', structures: [tagged], triggers: ['<a'] }),
        },
      ],
    ],
    bad: [
      ['json_object', ': expected an object or null, got "json_object"'],
      [{}, '.type: this field is required, got nothing'],
      [
        { type: 'json' },
        '.type: expected "text", "json_object", "json_schema" or "structural_tag", got "json"',
      ],
      [{ type: 'json_schema' }, '.json_schema: this field is required, got nothing'],
      [{ type: 'json_schema', json_schema: {} }, '.json_schema.name: this field is required, got nothing'],
      [
        { type: 'json_schema', json_schema: { name: 'x', schema: 'object' } },
        '.json_schema.schema: expected an object or null, got "object"',
      ],
      [
        { type: 'json_schema', json_schema: { name: 'x', schema: { a: undefined, b: Symbol.iterator } } },
        '.json_schema.schema.b: expected JSON data, got a symbol',
      ],
      [{ type: 'structural_tag' }, ': expected either format, or structures with triggers, got an object'],
      [
        { type: 'structural_tag', structures: [{ begin: '<a>' }], triggers: ['<a'] },
        '.structures.0.end: this field is required, got nothing',
      ],
    ],
  },
  structured_outputs: {
    absent: null,
    good: [
      [null, null],
      [{}, null],
      [{ disable_any_whitespace: true }, null],
      [{ json_object: false }, null],
      [{ json: '{"type":"object"}' }, { ...nothing, json: '{"type":"object"}' }],
      [
        { json: { type: 'object' }, disable_additional_properties: true, whitespace_pattern: '[ ]?' },
        {
          ...nothing,
          json: { type: 'object' },
          disable_additional_properties: true,
          whitespace_pattern: '[ ]?',
        },
      ],
      [
        { regex: 'a+', json: null, _backend: 'onpolicy' },
        { ...nothing, regex: 'a+' },
      ],
      [
        { choice: ['a', 'b'], disable_fallback: true },
        { ...nothing, choice: ['a', 'b'], disable_fallback: true },
      ],
      [{ grammar: 'root ::= "a"' }, { ...nothing, grammar: 'root ::= "a"' }],
      [
        { json_object: true, disable_any_whitespace: true },
        { ...nothing, json_object: true, disable_any_whitespace: true },
      ],
      [{ structural_tag: '{"format":{}}' }, { ...nothing, structural_tag: '{"format":{}}' }],
    ],
    bad: [
      [{ json: '{' }, '.json: expected JSON text of an object or boolean, got "{"'],
      [{ json: '' }, '.json: expected JSON text of an object or boolean, got ""'],
      [{ json: '[]' }, '.json: expected JSON text of an object or boolean, got "[]"'],
      [{ json: { a: Number.NaN } }, '.json.a: expected a finite number, got NaN'],
      [{ regex: 'a\0' }, '.regex: expected a regular expression without NUL characters, got "a\\u0000"'],
      [{ choice: [] }, '.choice: expected a non-empty list or null, got an empty list'],
      [{ choice: [1] }, '.choice.0: expected a string, got 1'],
      [{ grammar: ' \n' }, '.grammar: expected a grammar that is not blank, got " \\n"'],
      [{ structural_tag: '7' }, '.structural_tag: expected JSON text of an object, got "7"'],
      [{ json_object: 'yes' }, '.json_object: expected true or false or null, got "yes"'],
      [{ disable_fallback: null }, '.disable_fallback: expected true or false, got null'],
      [{ _backend: 'xgrammar' }, '._backend: expected "onpolicy" or null, got "xgrammar"'],
      [{ regexp: 'a' }, '.regexp: not a field of structured_outputs; did you mean regex?'],
    ],
  },
  logits_processors: {
    absent: [],
    good: [
      [null, []],
      [[], []],
      [
        ['mine', processor],
        ['mine', processor],
      ],
      [
        [{ qualname: 'a.b' }, { qualname: 'c', args: [1], kwargs: { k: 2 } }],
        [
          { qualname: 'a.b', args: [], kwargs: {} },
          { qualname: 'c', args: [1], kwargs: { k: 2 } },
        ],
      ],
    ],
    bad: [
      [[5], '.0: expected a non-empty string or an object, got 5'],
      [[''], '.0: expected a non-empty string or an object, got ""'],
      [[{}], '.0.qualname: this field is required, got nothing'],
      [[{ qualname: 'a', arg: 1 }], '.0.arg: not a field of logits_processors.0; did you mean args?'],
      [[{ qualname: 'a', args: {} }], '.0.args: expected a list or null, got an object'],
      [processor, ': expected a list or null, got a function'],
    ],
  },
  inference_xargs: {
    absent: {},
    good: [...same({ a: 'x', b: 1.5, c: ['y', 2], d: [] }), [null, {}]],
    bad: [
      [{ a: null }, '.a: expected a string, a number or a list, got null'],
      [{ a: true }, '.a: expected a string, a number or a list, got true'],
      [{ a: {} }, '.a: expected a string, a number or a list, got an object'],
      [{ a: [[]] }, '.a.0: expected a string or a number, got an empty list'],
    ],
  },
  logprobs: flagOrNull(false),
  top_logprobs: {
    absent: 0,
    beside: { logprobs: true },
    good: [...same(0, 5, -1), [null, 0]],
    bad: [
      [-2, ': expected an integer >= -1 or null, got -2'],
      ['5', ': expected an integer >= -1 or null, got "5"'],
    ],
  },
  prompt_logprobs: {
    absent: null,
    good: same(0, 5, -1, null),
    bad: [[-2, ': expected an integer >= -1 or null, got -2']],
  },
  return_tokens_as_token_ids: flagOrNull(false),
  return_token_ids: flagOrNull(false),
  stream: flagOrNull(false),
  stream_options: {
    absent: { include_usage: false, continuous_usage_stats: false },
    beside: { stream: true },
    good: [
      [null, { include_usage: false, continuous_usage_stats: false }],
      [{}, { include_usage: true, continuous_usage_stats: false }],
      [{ include_usage: null }, { include_usage: false, continuous_usage_stats: false }],
      [{ continuous_usage_stats: true }, { include_usage: true, continuous_usage_stats: true }],
      [
        { include_usage: false, continuous_usage_stats: true },
        { include_usage: false, continuous_usage_stats: false },
      ],
      [
        { include_usage: true, continuous_usage_stats: null },
        { include_usage: true, continuous_usage_stats: false },
      ],
    ],
    bad: [
      [{ include_usage: 1 }, '.include_usage: expected true or false or null, got 1'],
      [{ usage: true }, '.usage: not a field of stream_options'],
    ],
  },
  skip_special_tokens: flag(true),
  spaces_between_special_tokens: flag(true),
  include_reasoning: flag(true),
  echo: flag(false),
  request_id: {
    absent: null,
    good: same('my-id'),
    bad: [
      [null, ': expected a non-empty string, got null'],
      ['', ': expected a non-empty string, got ""'],
    ],
  },
  user: text(null),
  tools: {
    absent: [],
    good: [...same([WEATHER], []), [null, []], ...same([{ ...WEATHER, extra: { kept: true } }])],
    bad: [
      [{}, ': expected a list or null, got an object'],
      [[{ type: 'function' }], '.0.function: this field is required, got nothing'],
      [[{ type: 'retrieval', function: { name: 'a' } }], '.0.type: expected "function", got "retrieval"'],
      [[{ type: 'function', function: { name: 5 } }], '.0.function.name: expected a non-empty string, got 5'],
      [
        [{ type: 'function', function: { name: 'a', parameters: { d: new Date(0) } } }],
        '.0.function.parameters.d: expected JSON data, got a value of type Date',
      ],
    ],
  },
  tool_choice: {
    absent: 'auto',
    beside: { tools: [WEATHER] },
    good: [
      ...same('none', 'auto', 'required', { type: 'function', function: { name: 'weather' } }),
      [null, 'auto'],
    ],
    bad: [
      ['always', ': expected none, auto, required, a named function or null, got "always"'],
      [5, ': expected none, auto, required, a named function or null, got 5'],
      [{ type: 'function' }, '.function: this field is required, got nothing'],
    ],
  },
  parallel_tool_calls: flagOrNull(true, false),
  reasoning_effort: {
    absent: null,
    good: same('low', 'medium', 'high', null),
    bad: [['max', ': expected "low", "medium", "high" or null, got "max"']],
  },
  add_generation_prompt: flag(true),
  continue_final_message: flag(false),
  add_special_tokens: flag(false),
  documents: {
    absent: null,
    good: same([{ title: 'a', text: 'b' }], [], null),
    bad: [
      [['text'], '.0: expected an object, got "text"'],
      [[{ title: 5 }], '.0.title: expected a string, got 5'],
    ],
  },
  chat_template: text(null, ['', null]),
  chat_template_kwargs: {
    ...jsonObject({}),
    bad: [...jsonObject({}).bad, [{ tokenize: true }, '.tokenize: expected no such key, got true']],
  },
  truncate_prompt_tokens: {
    absent: null,
    good: same(-1, 1, 100, null),
    bad: [
      [0, ': expected an integer >= 1, -1 or null, got 0'],
      [-2, ': expected an integer >= -1 or null, got -2'],
    ],
  },
  mm_processor_kwargs: jsonObject(null),
  priority: {
    absent: 0,
    good: same(0),
    bad: [
      [1, ': expected 0: this runtime does not use priority scheduling, got 1'],
      [null, ': expected an integer, got null'],
      [0.5, ': expected an integer, got 0.5'],
    ],
  },
  cache_salt: { ...text(null), bad: [['', ': expected a non-empty string or null, got ""']] },
  kv_transfer_params: jsonObject(null),
};

const rows = Object.entries(ROWS);

describe('fields', () => {
  it('are all here but messages and those without effect', () => {
    const known = Object.keys(definitions['ChatCompletionRequest']!.properties!);
    expect([...Object.keys(ROWS), ...IGNORED_FIELDS, 'messages'].sort()).toEqual(known.sort());
  });

  it.each(rows)('%s is taken', (field, { as = field, absent, good, beside = {} }) => {
    const value = (fields: Record<string, unknown>): unknown =>
      valid({ ...beside, ...fields })[as as keyof ValidChatRequest];
    expect(value({})).toEqual(absent);
    expect(value({ [field]: undefined })).toEqual(absent);
    for (const [given, normal] of good)
      expect(value({ [field]: given }), `given ${String(given)}`).toEqual(normal);
  });

  it.each(rows)('%s is refused', (field, { bad, beside = {} }) => {
    for (const [given, message] of bad)
      expect(messagesOf({ ...beside, [field]: given })).toEqual([field + message]);
  });

  it.each(IGNORED_FIELDS.map((field) => [field]))('%s changes nothing', (field) => {
    const plain = valid({});
    for (const value of [null, 'x', 5, { a: 1 }, [1]])
      for (const wire of [true, false]) expect(valid({ [field]: value }, { wire })).toEqual(plain);
  });
});
