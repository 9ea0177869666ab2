/** Special cases of single families -> events of the parser. */
import { describe, expect, it } from 'vitest';
import { isMark } from '../../../src/template/text-reader.ts';
import {
  createToolCallIds,
  createToolCallParser,
  type ToolFormat,
  toolCallMarkers,
  toolFormat,
} from '../../../src/template/tool-calls/index.ts';
import { foldToolCallEvents } from './fold.ts';
import { callsOf, messageOf } from './harness.ts';

describe('JSON calls', () => {
  it.each([
    [
      'keys in another order',
      '<tool_call>{"arguments": {"days": 1}, "name": "get_weather"}</tool_call>',
      { days: 1 },
    ],
    [
      'further keys',
      '<tool_call>{"id": 7, "name": "get_weather", "arguments": {}, "x": [{}]}</tool_call>',
      {},
    ],
    ['no arguments', '<tool_call>{"name": "get_weather"}</tool_call>', {}],
    ['null arguments', '<tool_call>{"name": "get_weather", "arguments": null}</tool_call>', {}],
    [
      'arguments in a string',
      '<tool_call>{"name": "get_weather", "arguments": "{\\"days\\": 1}"}</tool_call>',
      { days: 1 },
    ],
    [
      'a missing brace',
      '<tool_call>\n{"name": "get_weather", "arguments": {"days": 1}\n</tool_call>',
      { days: 1 },
    ],
    ['a missing end marker', '<tool_call>{"name": "get_weather", "arguments": {"days": 1}}', { days: 1 }],
    [
      'a raw line break in a string',
      '<tool_call>{"name": "get_weather", "arguments": {"city": "a\nb"}}</tool_call>',
      { city: 'a\nb' },
    ],
    ['a list', '<tool_call>[{"name": "get_weather", "arguments": {"days": 1}}]</tool_call>', { days: 1 }],
  ])('reads %s', (_, text, expected) => {
    const message = messageOf('hermes', text);
    expect(callsOf(message)).toEqual([['get_weather', expected]]);
    expect(message.content).toBe('');
  });

  it.each([
    ['a number as arguments', '{"name": "get_weather", "arguments": 3}'],
    ['a list as arguments', '{"name": "get_weather", "arguments": [1]}'],
    ['a string that holds no object', '{"name": "get_weather", "arguments": "Paris"}'],
    ['a name that is no string', '{"name": 3, "arguments": {}}'],
    ['an empty name', '{"name": "", "arguments": {}}'],
    ['a trailing comma', '{"name": "get_weather", "arguments": {"days": 1,}}'],
    ['a bad escape', '{"name": "get_weather", "arguments": {"city": "\\x"}}'],
    ['a bad number', '{"name": "get_weather", "arguments": {"days": 01}}'],
    ['single quotes', "{'name': 'get_weather', 'arguments': {}}"],
  ])('leaves %s in the text', (_, call) => {
    const text = `<tool_call>${call}</tool_call>`;
    const { content, toolCalls, hasBrokenCall } = messageOf('hermes', text);
    expect(content).toBe(text);
    expect(toolCalls.length > 0).toBe(hasBrokenCall);
  });

  it('finds a call behind the marker of a call that went wrong', () => {
    const message = messageOf(
      'hermes',
      '<tool_call>oops <tool_call>{"name": "get_time", "arguments": {}}</tool_call>',
    );
    expect(callsOf(message)).toEqual([['get_time', {}]]);
    expect(message.content).toBe('<tool_call>oops ');
  });

  it('keeps the complete calls of a list that breaks off', () => {
    const text = '<|tool_call|>[{"name": "get_time", "arguments": {}}, {"name": "get_wea';
    const message = messageOf('granite', text);
    expect(callsOf(message)).toEqual([['get_time', {}]]);
    expect(message.content).toBe(''); // what is cut behind a mark is no text
  });

  it('keeps the text between and behind calls', () => {
    const call = '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>';
    const message = messageOf('hermes', `First.\n${call}\n then \n${call}\nDone.`);
    expect(message.toolCalls).toHaveLength(2);
    expect(message.content).toBe('First.\n\n then \n\nDone.');
  });

  it('announces names that no tool has where a marker says that it is a call, and only there', () => {
    const call = '{"name": "get_moon", "arguments": {}}';
    expect(callsOf(messageOf('hermes', `<tool_call>${call}</tool_call>`))).toEqual([['get_moon', {}]]);
    for (const format of ['json', 'llama3_json'] as const)
      expect(messageOf(format, call)).toMatchObject({ content: call, toolCalls: [] });
  });

  it('leaves JSON answers alone', () => {
    for (const text of [
      '{"name": "get_weather", "age": 3}',
      '{"name": "get_weather"}',
      '[{"a": 1}]',
      'see {"name": "get_time", "arguments": {}}',
    ])
      expect(messageOf('json', text)).toMatchObject({ content: text, toolCalls: [] });
  });

  it('streams such an answer as soon as it cannot be a call', () => {
    const parser = createToolCallParser('json', { tools: [], createId: () => '' });
    expect(parser.push('{"')).toEqual([]);
    expect(parser.push('temperature": 2')).toEqual([{ kind: 'content', text: '{"temperature": 2' }]);
  });

  it('survives nesting without end', () => {
    const text = `<tool_call>{"name": "get_time", "arguments": {"a": ${'['.repeat(200_000)}`;
    expect(messageOf('hermes', text)).toMatchObject({ content: '', hasBrokenCall: true });
    const other = messageOf('gemma4', `<|tool_call>call:get_time{a:${'['.repeat(100_000)}`);
    expect(other.hasBrokenCall).toBe(true);
  });
});

describe('what is held back', () => {
  it('is only what may still become a marker', () => {
    const parser = createToolCallParser('hermes', { tools: [], createId: () => '' });
    expect(parser.push('a < b and <tool')).toEqual([{ kind: 'content', text: 'a < b and ' }]);
    expect(parser.push('box>')).toEqual([{ kind: 'content', text: '<toolbox>' }]);
  });

  it('does not hold the name or the arguments back', () => {
    const parser = createToolCallParser('hermes', { tools: [], createId: () => 'x' });
    expect(parser.push('<tool_call>\n{"name": "f')).toEqual([]);
    expect(parser.push('"')).toEqual([{ kind: 'call_start', index: 0, id: 'x', name: 'f' }]);
    expect(parser.push(', "arguments": {"a')).toEqual([{ kind: 'call_arguments', index: 0, delta: '{"a' }]);
    expect(parser.push('": 1}')).toEqual([
      { kind: 'call_arguments', index: 0, delta: '": 1}' },
      { kind: 'call_end', index: 0 },
    ]);
  });

  it('keeps characters whole that arrive in halves', () => {
    const [high, low] = '🌦️'.split('');
    const parser = createToolCallParser('qwen3_coder', {
      tools: [{ function: { name: 'f', parameters: { properties: { a: { type: 'string' } } } } }],
      createId: () => 'x',
    });
    parser.push('<function=f>\n<parameter=a>\n');
    expect(parser.push(`x${high}`)).toEqual([{ kind: 'call_arguments', index: 0, delta: 'x' }]);
    expect(parser.push(`${low}y`)).toEqual([{ kind: 'call_arguments', index: 0, delta: `${high}${low}y` }]);
  });

  it('is found in few passes over the text', { timeout: 30_000 }, () => {
    for (const piece of [
      '{',
      '<tool_call>',
      '[TOOL_CALLS]',
      '\n[',
      '<function=a',
      '>>>',
      '{"name": "get_time", ',
      ' <',
    ]) {
      const text = piece.repeat(5_000);
      for (const format of ['json', 'hermes', 'mistral', 'qwen3_coder', 'functionary_v32'] as const) {
        // All of it is content but a call that is cut: a marker at the end, and not more behind it than a name may be long.
        const { content } = messageOf(format, text);
        const rest = text.slice(content.length);
        expect(content + rest).toBe(text);
        const isCutCall = toolCallMarkers(format).some(
          (mark) => isMark(mark) && (mark.startsWith(rest) || rest.startsWith(mark)),
        );
        expect(rest === '' || (isCutCall && rest.length < 600)).toBe(true);
      }
    }
  });
});

describe('parameters without types', () => {
  const tools = [
    {
      function: {
        name: 'f',
        parameters: {
          $defs: { Id: { type: 'integer' } },
          properties: {
            text: { type: 'string' },
            either: { type: ['string', 'integer'] },
            nullable: { anyOf: [{ type: 'string' }, { type: 'null' }] },
            id: { $ref: '#/$defs/Id' },
            loop: { $ref: '#/properties/loop' },
            mode: { enum: ['1', '2'] },
            flag: { type: 'bool' },
            ratio: { type: 'number' },
            list: { type: 'array' },
            anything: {},
          },
        },
      },
    },
  ];
  const read = (key: string, value: string): unknown => {
    const text = `<tool_call>\n<function=f>\n<parameter=${key}>\n${value}\n</parameter>\n</function>\n</tool_call>`;
    const calls = callsOf(messageOf('qwen3_coder', text, tools));
    return (calls[0]![1] as Record<string, unknown>)[key];
  };

  it.each([
    ['text', '12', '12'],
    ['text', ' a\n b\n', ' a\n b\n'],
    ['text', '"quoted"', '"quoted"'],
    ['text', '', ''],
    ['either', '12', 12],
    ['either', 'twelve', 'twelve'],
    ['nullable', 'None', null],
    ['nullable', '12', '12'],
    ['id', '12', 12],
    ['id', 'twelve', 'twelve'],
    ['loop', '12', 12],
    ['mode', '1', '1'],
    ['flag', 'True', true],
    ['flag', 'FALSE', false],
    ['ratio', '.5', 0.5],
    ['ratio', '1_000', 1000],
    ['list', '["a", 1]', ['a', 1]],
    ['list', "['a', (1, 2), {'b': None}]", ['a', [1, 2], { b: null }]],
    ['list', 'a, b', 'a, b'],
    ['anything', '{"a": 1}', { a: 1 }],
    ['anything', '"a"', '"a"'],
    ['undeclared', 'true', true],
    ['undeclared', 'text', 'text'],
  ])('reads %s %j as %j', (key, value, expected) => {
    expect(read(key, value)).toEqual(expected);
  });

  it('keeps the digits of numbers that JavaScript cannot hold', () => {
    const text = '<function=f><parameter=id>12345678901234567890</parameter></function>';
    expect(messageOf('qwen3_coder', text, tools).toolCalls[0]!.arguments).toBe(
      '{"id": 12345678901234567890}',
    );
  });

  it('reads a call whose outer tag and parameter ends are missing', () => {
    const text = '<function=f>\n<parameter=text>\na\n<parameter=id>\n3\n</function>';
    expect(callsOf(messageOf('qwen3_coder', text, tools))).toEqual([['f', { text: 'a', id: 3 }]]);
  });

  it('streams strings and waits for the rest', () => {
    const parser = createToolCallParser('glm45', { tools, createId: () => 'x' });
    parser.push('<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>');
    expect(parser.push('some "text" <')).toEqual([
      { kind: 'call_arguments', index: 0, delta: 'some \\"text\\" ' },
    ]);
    parser.push('/arg_value>\n<arg_key>id</arg_key>\n<arg_value>');
    expect(parser.push('12')).toEqual([]);
    expect(parser.push('</arg_value>')).toEqual([{ kind: 'call_arguments', index: 0, delta: '12' }]);
  });

  it('takes the word of the attribute for it', () => {
    const call = (type: string): string =>
      `<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="either" string="${type}">12</｜DSML｜parameter>\n</｜DSML｜invoke>`;
    expect(callsOf(messageOf('deepseek_v32', call('true'), tools))).toEqual([['f', { either: '12' }]]);
    expect(callsOf(messageOf('deepseek_v32', call('false'), tools))).toEqual([['f', { either: 12 }]]);
  });
});

describe('Python calls', () => {
  it.each([
    ["[get_time(zone='it\\'s \\u00e9\\x41\\n')]", { zone: "it's éA\n" }],
    ['[get_time(zone="""a "b" c""")]', { zone: 'a "b" c' }],
    ["[get_time('UTC')]", { zone: 'UTC' }],
    ['[get_time(zone=None)]', { zone: null }],
    ["[get_time(zone={'a': [1, -2.5, True], 3: ()})]", { zone: { a: [1, -2.5, true], 3: [] } }],
    ['[get_time()]', {}],
  ])('reads %s', (text, expected) => {
    expect(callsOf(messageOf('pythonic', text))).toEqual([['get_time', expected]]);
  });

  it.each(['[get_time(zone=1 + 2)]', '[get_time(1, 2)]', '[get_time(zone=other)]', '[get_time(zone=x"x")]'])(
    'leaves %s in the text',
    (text) => {
      const { content, toolCalls, hasBrokenCall } = messageOf('pythonic', text);
      expect(content).toBe(text);
      expect(toolCalls.length > 0).toBe(hasBrokenCall);
    },
  );

  it('reads the call of a built-in tool behind the python tag', () => {
    const message = messageOf('llama3_json', '<|python_tag|>get_time.call(zone="UTC")');
    expect(callsOf(message)).toEqual([['get_time', { zone: 'UTC' }]]);
  });
});

describe('families', () => {
  it('drops the header of the text that functionary writes for the user', () => {
    expect(messageOf('functionary_v32', 'all\nHello >> you').content).toBe('Hello >> you');
    expect(messageOf('functionary_v32', '>>>all\nHello').content).toBe('Hello');
  });

  it('reads calls of other tools than functions in harmony only if they are given', () => {
    const text = '<|channel|>commentary to=get_time<|message|>{}<|call|>';
    expect(callsOf(messageOf('harmony', text))).toEqual([['get_time', {}]]);
    expect(messageOf('harmony', text, []).content).toBe(text);
  });

  it('reads a value with an end tag in a CDATA block', () => {
    const text = '<function name="get_time"><param name="zone"><![CDATA[a</param>\nb]]></param></function>';
    expect(callsOf(messageOf('minicpm', text))).toEqual([['get_time', { zone: 'a</param>\nb' }]]);
  });
});

describe('options', () => {
  const two = '<tool_call>{"name": "a"}</tool_call>x<tool_call>{"name": "b"}</tool_call>';

  it('reports only the first call when calls may not be parallel', () => {
    const parser = createToolCallParser('hermes', { tools: [], createId: () => '', parallel: false });
    const message = foldToolCallEvents([...parser.push(two), ...parser.finish()]);
    expect(message.toolCalls.map((call) => call.name)).toEqual(['a']);
    expect(message.content).toBe('x');
  });

  it('knows formats by name', () => {
    expect(toolFormat('hermes')).toBe('hermes');
    expect(() => toolFormat('toString')).toThrow('expected one of harmony, gemma4');
  });

  it('names the markers that must stay in the text', () => {
    expect(toolCallMarkers('kimi_k2')).toContain('<|tool_call_argument_begin|>');
    expect(toolCallMarkers('gemma4')).toContain('<|"|>');
  });
});

describe('ids', () => {
  const ids = (format: ToolFormat, text: string): string[] => {
    let drawn = 0;
    const parser = createToolCallParser(format, {
      tools: [],
      createId: createToolCallIds(format, (below) => drawn++ % below),
    });
    return foldToolCallEvents([...parser.push(text), ...parser.finish()]).toolCalls.map((call) => call.id);
  };

  it.each<[ToolFormat, string, string[]]>([
    ['hermes', '<tool_call>{"name": "a"}</tool_call>', ['chatcmpl-tool-0123456789abcdef0123456789abcdef']],
    ['mistral', '[TOOL_CALLS] [{"name": "a"}, {"name": "b"}]', ['012345678', '9ABCDEFGH']],
    [
      'mistral_args',
      '[TOOL_CALLS]a[CALL_ID]x1y2z3A4B[ARGS]{}[TOOL_CALLS]a[CALL_ID]no[ARGS]{}',
      ['x1y2z3A4B', '012345678'],
    ],
    [
      'kimi_k2',
      '<|tool_call_begin|>functions.a.b:4<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_begin|>c<|tool_call_argument_begin|>{}',
      ['functions.a.b:4', 'functions.c:1'],
    ],
  ])('of %s', (format, text, expected) => {
    expect(ids(format, text)).toEqual(expected);
  });
});

it('names the calls of kimi without prefix and index', () => {
  const call = (name: string): string =>
    `<|tool_call_begin|>${name}<|tool_call_argument_begin|>{}<|tool_call_end|>`;
  const message = messageOf('kimi_k2', call('functions.a.b:0') + call('c:1') + call('d'));
  expect(message.toolCalls.map((one) => one.name)).toEqual(['a.b', 'c', 'd']);
});

it.each([
  ['inside the end marker', '<tool_call>{"name": "a", "arguments": {}}</tool', ''],
  ['behind it', '<tool_call>{"name": "a", "arguments": {}}</tool_call> <b', '<b'],
])('a text that ends %s', (_, text, content) => {
  expect(messageOf('hermes', text)).toMatchObject({
    content: content && ` ${content}`,
    hasBrokenCall: false,
  });
});
