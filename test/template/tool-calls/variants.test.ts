/** Variants of calls that peers read, too: empty and repeated elements, JSON bodies, missing ends, escapes, digits. */
import { describe, expect, it } from 'vitest';
import type { ToolFormat } from '../../../src/template/tool-calls/index.ts';
import { foldToolCallEvents } from './fold.ts';
import { callsOf, cut, eventsOf, messageOf } from './harness.ts';

const tools = [
  {
    function: {
      name: 'f',
      parameters: {
        type: 'object',
        properties: {
          text: { type: 'string' },
          list: { type: 'array', items: { type: 'string' } },
          numbers: { type: 'array', items: { type: 'integer' } },
          'a"b&c': { type: 'string' },
        },
      },
    },
  },
];

/** The arguments of the one call, which every cut of the text in two gives, too. */
function argumentsOf(format: ToolFormat, text: string): unknown {
  const message = messageOf(format, text, tools);
  expect(message).toMatchObject({ content: '', hasBrokenCall: false });
  const calls = callsOf(message);
  expect(calls.map(([name]) => name)).toEqual(['f']);
  for (let at = 1; at < text.length; at++)
    expect(foldToolCallEvents(eventsOf(format, cut(text, [at]), tools))).toEqual(message);
  return calls[0]![1];
}

const D = '｜DSML｜';

it.each([
  [
    'a self-closing parameter',
    `<${D}invoke name="f">\n<${D}parameter name="text" string="true"/>\n</${D}invoke>`,
    { text: '' },
  ],
  ['a self-closing call', `<${D}invoke name="f"/>`, {}],
  [
    'a JSON body',
    `<${D}invoke name="f">\n{"text": "a", "list": ["b"]}\n</${D}invoke>`,
    { text: 'a', list: ['b'] },
  ],
  [
    'a call without its end before the end of the section',
    `<${D}invoke name="f">\n<${D}parameter name="text" string="true">a</${D}parameter>\n`,
    { text: 'a' },
  ],
])('DSML: %s', (_, call, expected) => {
  expect(argumentsOf('deepseek_v32', `<${D}function_calls>\n${call}\n</${D}function_calls>`)).toEqual(
    expected,
  );
  expect(argumentsOf('deepseek_v4', `<${D}tool_calls>\n${call}\n</${D}tool_calls>`)).toEqual(expected);
});

describe('MiniMax M3', () => {
  const P = ']<]minimax[>[';
  const element = (name: string, value: string) => `${P}<${name}>${value}${P}</${name}>`;
  const call = (members: string) =>
    `${P}<tool_call>\n${P}<invoke name="f">${members}${P}</invoke>\n${P}</tool_call>`;

  it.each([
    ['other', element('other', 'a') + element('other', 'b'), { other: ['a', 'b'] }],
    ['numbers', element('numbers', '1') + element('numbers', '2'), { numbers: [1, 2] }],
    ['nested', element('other', element('k', '1') + element('k', '2')), { other: { k: [1, 2] } }],
    ['once', element('other', 'a'), { other: 'a' }],
  ])('repeated elements are a list: %s', (_, members, expected) => {
    expect(argumentsOf('minimax_m3', call(members))).toEqual(expected);
  });
});

it('Kimi K3: quotes and ampersands of attributes are escaped', () => {
  const call =
    '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>' +
    '<|open|>argument key="a&quot;b&amp;c" type="string"<|sep|>x &amp; y<|close|>argument<|sep|>' +
    '<|close|>call<|sep|><|close|>tools<|sep|>';
  expect(argumentsOf('kimi_k3', call)).toEqual({ 'a"b&c': 'x &amp; y' });
});

describe('digits', () => {
  const qwen = (key: string, value: string) =>
    argumentsOf(
      'qwen3_coder',
      `<tool_call>\n<function=f>\n<parameter=${key}>\n${value}\n</parameter>\n</function>\n</tool_call>`,
    );

  it.each(['018956', '+14155550123', '1_000', '1.50', '1e5', '12345678901234567890'])(
    'of an untyped text %s stay as they are',
    (digits) => expect(qwen('untyped', digits)).toEqual({ untyped: digits }),
  );

  it.each(['0', '-1', '42', '1.5'])('of an untyped text %s are a number, as JSON writes it', (digits) =>
    expect(qwen('untyped', digits)).toEqual({ untyped: Number(digits) }),
  );

  it.each(['018956', '12', '1_000'])('of a string %s stay a string', (digits) => {
    expect(qwen('text', digits)).toEqual({ text: digits });
    expect(argumentsOf('gemma4', `<|tool_call>call:f{text:${digits}}<tool_call|>`)).toEqual({ text: digits });
  });
});

it.each(['<|call|>', '<|end|>'])(
  'harmony: a call with an empty message has no arguments, up to %s',
  (end) => {
    const header = '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>';
    expect(argumentsOf('harmony', header + end)).toEqual({});
    expect(argumentsOf('harmony', `${header}{"text": "a"}${end}`)).toEqual({ text: 'a' });
  },
);
