/** Tools in their other forms: functions of the older API, custom tools, and a choice of some of the tools. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CustomTool, Tool } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { functionsOf } from '../fakes/calls.ts';
import { chunksOf, type Fields, forced, PLAIN } from './fields/model.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

const FORMATS = {
  hermes: '<tool_call>{"name": "x", "arguments": {}}</tool_call>',
  qwen3_coder: '<tool_call><function=x><parameter=y>',
  glm45: '<tool_call>x<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>',
  deepseek_v32: '｜DSML｜',
  minimax_m2: '<minimax:tool_call><invoke name="x">',
  llama3_json: '<|python_tag|>',
  pythonic: '[func_name1(x)]',
};
const shown = (template: string): string => `${PLAIN}{% if false %}${template}{% endif %}`;
const HERMES = shown(FORMATS.hermes);
const weather: Tool = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const time: Tool = { type: 'function', function: { name: 'time' } };
const custom = (syntax: 'lark' | 'regex', definition: string): CustomTool => ({
  type: 'custom',
  custom: { name: 'sql', format: { type: 'grammar', grammar: { syntax, definition } } },
});
const messages = [{ role: 'user' as const, content: 'The weather in Rome, please.' }];
const drawn = { messages, temperature: 1.5, seed: 7, max_tokens: 300 };

describe('functions', () => {
  const call = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>';
  const fields: Fields = { chat_template: HERMES, functions: [weather.function] };

  it('are called as function_call, whole and streamed', async () => {
    const asked = await forced(runtime, `Well. ${call}\n${call}`, fields);
    const { choices } = await runtime.createCompletion({ ...asked, stream: false });
    expect(choices[0]).toMatchObject({
      finish_reason: 'function_call',
      message: {
        content: 'Well. ',
        function_call: { name: 'weather', arguments: '{"city": "Rome"}' },
        tool_calls: [],
      },
    });
    const chunks = (await chunksOf(runtime, asked)).map((chunk) => chunk.choices[0]!);
    const parts = chunks.flatMap(({ delta }) => delta.function_call ?? []);
    expect(parts.map(({ name }) => name).filter(Boolean)).toEqual(['weather']);
    expect(parts.map((part) => part.arguments).join('')).toBe('{"city": "Rome"}');
    expect(chunks.flatMap(({ delta }) => delta.tool_calls ?? [])).toEqual([]);
    expect(chunks.at(-1)!.finish_reason).toBe('function_call');
  });

  it('are shown to the template as tools, and their results as those of tools', async () => {
    const chat_template =
      '{% for m in messages %}{{ m.role }}:{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls }}{{ m.tool_call_id }};{% endfor %}{{ tools | tojson }}';
    const asked = {
      chat_template,
      functions: [{ name: 'f' }],
      messages: [
        { role: 'assistant' as const, function_call: { name: 'f', arguments: '{"a":1}' } },
        { role: 'function' as const, name: 'f', content: '5' },
      ],
      max_tokens: 1,
      return_token_ids: true,
    };
    const { prompt_token_ids } = await runtime.createCompletion({ ...asked, stream: false });
    expect(await runtime.detokenize(prompt_token_ids!)).toBe(
      'assistant:[{"id": "call00000", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}];tool:5call00000;[{"type": "function", "function": {"name": "f"}}]',
    );
  });

  it('function_call names the one that must be called', async () => {
    // The arguments are short whatever is drawn: bits of logits, and so the drawn text, differ between processors.
    const city = { type: 'string', maxLength: 20 };
    const parameters = { type: 'object', properties: { city }, additionalProperties: false };
    const functions = [{ name: 'weather', parameters }, { name: 'time' }];
    const { choices } = await runtime.createCompletion({
      ...drawn,
      ...fields,
      functions,
      function_call: { name: 'weather' },
      stream: false,
    });
    expect(choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: null, function_call: { name: 'weather' } },
    });
    JSON.parse(choices[0]!.message.function_call!.arguments);
    const none = await forced(runtime, call, { ...fields, function_call: 'none' });
    const [text] = (await runtime.createCompletion({ ...none, stream: false })).choices;
    expect(text).toMatchObject({ finish_reason: 'stop', message: { content: call, function_call: null } });
  });

  it('have errors at their own path', async () => {
    const broken = { name: 'f', parameters: { type: 'objects' } };
    const asked = { ...drawn, ...fields, functions: [broken], function_call: { name: 'f' } };
    await expect(runtime.createCompletion({ ...asked, stream: false })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'functions.0.parameters#/type',
    });
  });
});

describe('a custom tool', () => {
  const LARK = 'start: "say " WORD ("\\n" WORD)?\nWORD: /"[a-c]{1,4}"/';

  it.each(
    Object.entries(FORMATS).flatMap(
      ([name, template]) =>
        [
          [
            name,
            template,
            'regex',
            String.raw`SELECT "[a-d\\]{2,5}" FROM \w{1,6};`,
            /^SELECT "[a-d\\]{2,5}" FROM \w{1,6};$/,
          ],
          [name, template, 'lark', LARK, /^say "[a-c]{1,4}"(\n"[a-c]{1,4}")?$/],
        ] as const,
    ),
  )('%s: is called with text under its grammar', async (_, template, syntax, definition, fits) => {
    const asked = {
      ...drawn,
      chat_template: shown(template),
      tools: [weather, custom(syntax, definition)],
      tool_choice: { type: 'custom' as const, custom: { name: 'sql' } },
    };
    const { choices } = await runtime.createCompletion({ ...asked, n: 3, stream: false });
    for (const { message, finish_reason } of choices) {
      expect(finish_reason).toBe('stop');
      expect(message).toMatchObject({
        content: null,
        tool_calls: [{ type: 'custom', custom: { name: 'sql' } }],
      });
      const [call] = message.tool_calls;
      expect(call?.type === 'custom' && call.custom.input).toMatch(fits);
    }
  });

  it('is streamed as text, the same as whole', async () => {
    const asked = {
      ...drawn,
      chat_template: HERMES,
      tools: [custom('regex', '"é😀{3}"\\n[ab]{150}')],
      tool_choice: 'required' as const,
      parallel_tool_calls: false,
    };
    const { choices } = await runtime.createCompletion({ ...asked, stream: false });
    const [whole] = choices[0]!.message.tool_calls;
    const chunks = (await chunksOf(runtime, asked)).map((chunk) => chunk.choices[0]!);
    const parts = chunks.flatMap(({ delta }) => delta.tool_calls ?? []);
    expect(parts[0]).toMatchObject({ index: 0, type: 'custom', custom: { name: 'sql' } });
    expect(parts.length).toBeGreaterThan(1); // a chunk may hold several tokens
    expect({
      type: 'custom',
      custom: { name: 'sql', input: parts.map((part) => part.custom!.input).join('') },
    }).toEqual({
      type: whole!.type,
      custom: whole?.type === 'custom' && whole.custom,
    });
    expect(chunks.at(-1)!.finish_reason).toBe('tool_calls');
  });

  it('takes any text without a format, also by itself', async () => {
    const call = String.raw`<tool_call>{"name": "note", "arguments": {"input": "a \"b\"\nc"}}</tool_call>`;
    const tools: Tool[] = [{ type: 'custom', custom: { name: 'note' } }];
    const asked = await forced(runtime, call, { chat_template: HERMES, tools });
    const { choices } = await runtime.createCompletion({ ...asked, stream: false });
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ type: 'custom', custom: { name: 'note', input: 'a "b"\nc' } }] },
    });
  });

  it('keeps to its grammar in calls that the model makes by itself', async () => {
    const call = '<tool_call>\n{"name": "sql", "arguments": {"input": "yes"}}\n</tool_call>';
    const fields: Fields = { chat_template: HERMES, tools: [custom('regex', 'yes|no')] };
    const asked = await forced(runtime, call, fields);
    const { choices } = await runtime.createCompletion({ ...asked, stream: false });
    expect(choices[0]!.message.tool_calls).toMatchObject([{ custom: { input: 'yes' } }]);
    const other = await forced(runtime, call.replace('yes', 'maybe'), fields);
    await expect(runtime.createCompletion({ ...other, stream: false })).rejects.toMatchObject({
      code: 'NO_ALLOWED_TOKEN',
    });
  });

  it.each([
    ['regex', 'a(b', 'tools.1.custom.format.grammar.definition', { offset: 1 }],
    ['lark', 'start: thing', 'tools.1.custom.format.grammar.definition', { offset: 7 }],
  ] as const)('names a faulty %s', async (syntax, definition, param, ctx) => {
    const asked = {
      ...drawn,
      tools: [weather, custom(syntax, definition)],
      tool_choice: 'required' as const,
    };
    await expect(runtime.createCompletion({ ...asked, stream: false })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param,
      detail: [{ input: definition, ctx }],
    });
  });
});

describe('a grammar that cannot hold the calls that a model makes by itself', () => {
  it('is compiled all the same', async () => {
    const asked = { ...drawn, chat_template: shown(FORMATS.pythonic), tools: [custom('regex', 'a(b')] };
    await expect(runtime.createCompletion({ ...asked, stream: false })).rejects.toMatchObject({
      param: 'tools.0.custom.format.grammar.definition',
    });
  });
});

describe('allowed_tools', () => {
  const allow = (mode: 'auto' | 'required', ...names: string[]): Fields => ({
    tools: [weather, time, custom('regex', 'a')],
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: { mode, tools: names.map((name) => ({ type: 'function', function: { name } })) },
    },
  });

  it('forces one of them', async () => {
    for (const [name, template] of Object.entries(FORMATS)) {
      const asked = { ...drawn, chat_template: shown(template), ...allow('required', 'time'), n: 3 };
      const { choices } = await runtime.createCompletion({ ...asked, stream: false });
      for (const { message, finish_reason } of choices) {
        expect(finish_reason, name).toBe('tool_calls');
        expect(new Set(functionsOf(message.tool_calls).map((call) => call.name))).toEqual(new Set(['time']));
      }
    }
  });

  it('leaves calls of other tools text, where the format tells no call from text', async () => {
    const text = '[weather(city="Rome")]';
    const fields = { chat_template: shown(FORMATS.pythonic), ...allow('auto', 'time') };
    const [left] = (
      await runtime.createCompletion({ ...(await forced(runtime, text, fields)), stream: false })
    ).choices;
    expect(left).toMatchObject({ finish_reason: 'stop', message: { content: text, tool_calls: [] } });
    const [made] = (
      await runtime.createCompletion({ ...(await forced(runtime, '[time()]', fields)), stream: false })
    ).choices;
    expect(made).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } });
  });

  it('lets no call of another tool begin, where the format does', async () => {
    const call = '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>';
    const fields = { chat_template: HERMES, ...allow('auto', 'time') };
    const asked = await forced(runtime, call, fields);
    await expect(runtime.createCompletion({ ...asked, stream: false })).rejects.toMatchObject({
      code: 'NO_ALLOWED_TOKEN',
    });
  });

  it('shows all tools to the template', async () => {
    const chat_template = '{% for t in tools %}{{ t.function.name }} {% endfor %}';
    const { prompt_token_ids } = await runtime.createCompletion({
      messages,
      chat_template,
      ...allow('auto', 'time'),
      max_tokens: 1,
      return_token_ids: true,
      stream: false,
    });
    expect(await runtime.detokenize(prompt_token_ids!)).toBe('weather time sql ');
  });
});
