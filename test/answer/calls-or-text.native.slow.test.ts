/** Tools beside structured outputs, in every format: an answer is either calls or what fits, and the model decides which. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { formatRow, TOOL_FORMATS, type ToolFormat } from '../../src/template/tool-calls/index.ts';
import { engineSources } from '../engine-sources.ts';
import { functionsOf } from '../fakes/calls.ts';
import { chunksOf, EXACT_MODEL, type Fields, onlyThese, PLAIN, specialId } from './fields/model.ts';

const formats = TOOL_FORMATS.filter((format) => format !== 'none');

/** Signs of templates whose answers are messages with headers: the parser of reasoning reads these first. */
const framed: Partial<Record<string, string>> = {
  harmony: '<|channel|><|message|>',
  muse_glimmer: 'to=self<|message|><|eom|>',
  inkling: '<|content_thinking|><|end_message|>',
};

let runtime: Runtime;
let end: number;
beforeAll(async () => {
  const model = { path: EXACT_MODEL, chatTemplate: PLAIN, contextSize: 1024, threads: 1 };
  runtime = await createRuntime({
    model,
    models: {
      long: { ...model, contextSize: 2048 },
      ...Object.fromEntries(
        formats.map((toolFormat) => [
          toolFormat,
          {
            ...model,
            toolFormat,
            chatTemplate:
              toolFormat in framed ? `${PLAIN}{% if false %}${framed[toolFormat]}{% endif %}` : PLAIN,
          },
        ]),
      ),
    },
  });
  end = await specialId(runtime, '<|im_end|>');
});
afterAll(() => runtime.close());

const colour = { enum: ['red', 'dark blue'] };
const schema = {
  type: 'object',
  properties: { colour },
  required: ['colour'],
  additionalProperties: false,
};
const response_format = { type: 'json_schema' as const, json_schema: { name: 'answer', schema } };
const FITTING = '{"colour": "dark blue"}';
const tools = ['get_weather', 'get_time'].map((name) => ({
  type: 'function' as const,
  function: {
    name,
    strict: true,
    parameters: {
      type: 'object',
      properties: {
        city: { enum: ['Rome', 'L\'Aquila "1"'] },
        days: { type: 'integer', minimum: 1, maximum: 9 },
      },
      required: ['city', 'days'],
      additionalProperties: false,
    },
  },
}));

const request = (model: string, fields: Fields): ChatCompletionRequest => ({
  model,
  messages: [{ role: 'user', content: 'The weather in Rome?' }],
  tools,
  temperature: 1,
  max_tokens: 600,
  return_token_ids: true,
  ...fields,
});

const ask = async (model: string, fields: Fields): Promise<ChatCompletion> =>
  await runtime.createCompletion({ ...request(model, fields), stream: false });

/** Returns request fields that force the model to write these tokens. */
const saying = (ids: readonly number[]): Fields => ({ logits_processors: [onlyThese(ids, end)] });

const isFitting = (text: string | null): boolean => {
  const { colour: shown, ...others } = JSON.parse(text ?? 'null') as Record<string, unknown>;
  return colour.enum.includes(String(shown)) && Object.keys(others).length === 0;
};

const isCall = (text: string): boolean => {
  const { city, days, ...others } = JSON.parse(text) as Record<string, unknown>;
  return (
    ['Rome', 'L\'Aquila "1"'].includes(String(city)) && Number(days) >= 1 && Object.keys(others).length === 0
  );
};

/** The deltas of a stream, joined. */
async function streamed(model: string, fields: Fields) {
  let [content, reasoning, finish] = ['', '', null as string | null];
  const calls: { name: string; arguments: string }[] = [];
  for (const { choices } of await chunksOf(runtime, request(model, fields))) {
    const { delta, finish_reason } = choices[0] ?? { delta: {}, finish_reason: null };
    content += delta.content ?? '';
    reasoning += delta.reasoning ?? '';
    finish = finish_reason ?? finish;
    for (const { index, function: made } of delta.tool_calls ?? []) {
      calls[index] ??= { name: '', arguments: '' };
      calls[index].name += made?.name ?? '';
      calls[index].arguments += made?.arguments ?? '';
    }
  }
  return { content, reasoning, finish, calls };
}

const shown = ({ choices }: ChatCompletion) => ({
  content: choices[0]!.message.content ?? '',
  reasoning: choices[0]!.message.reasoning ?? '',
  finish: choices[0]!.finish_reason,
  calls: functionsOf(choices[0]!.message.tool_calls),
});

describe.each(formats)('%s', (format) => {
  const textIds = async (): Promise<number[]> => {
    const begin = formatRow(format as ToolFormat).writes?.textBegin ?? '';
    return [...(await runtime.tokenize(begin + FITTING, { parseSpecial: true }))];
  };

  it.each([true, false])('a call may be made, parallel_tool_calls %s', async (parallel_tool_calls) => {
    const fields = { tool_choice: 'required' as const, parallel_tool_calls, thinking_token_budget: 20 };
    const forced = await ask(format, { ...fields, n: 16, temperature: 1.5, seed: 4 });
    const made = forced.choices.find(({ finish_reason }) => finish_reason === 'tool_calls')!;
    expect(functionsOf(made.message.tool_calls).length).toBeGreaterThan(0);
    const again = { response_format, parallel_tool_calls, ...saying(made.token_ids!) };
    const whole = shown(await ask(format, again));
    expect(whole).toEqual(shown({ ...forced, choices: [made] }));
    expect(await streamed(format, again)).toEqual(whole);
  });

  it('a text that fits may be written', async () => {
    const fields = { response_format, ...saying(await textIds()) };
    const expected = { content: FITTING, reasoning: '', finish: 'stop', calls: [] };
    expect(shown(await ask(format, fields))).toEqual(expected);
    expect(await streamed(format, fields)).toEqual(expected);
  });

  it('nothing else may', async () => {
    const kinds = new Set<string>();
    const { choices } = await ask(format, {
      response_format,
      n: 8,
      temperature: 1.5,
      seed: 2,
      thinking_token_budget: 20,
    });
    for (const { message, finish_reason } of choices) {
      kinds.add(finish_reason!);
      const calls = functionsOf(message.tool_calls);
      if (calls.length === 0) expect([finish_reason, isFitting(message.content)]).toEqual(['stop', true]);
      else expect(message.content).toBeNull();
      if (finish_reason === 'length') continue; // a long list of calls
      for (const call of calls) expect(isCall(call.arguments), call.arguments).toBe(true);
    }
    for (const kind of kinds) expect(['stop', 'tool_calls', 'length']).toContain(kind);
  });

  it('required and named: calls only; none: the schema only', async () => {
    const fields = { response_format, parallel_tool_calls: false, thinking_token_budget: 20, seed: 1 };
    const named = { type: 'function' as const, function: { name: 'get_time' } };
    for (const tool_choice of ['required' as const, named]) {
      const { message } = (await ask(format, { ...fields, tool_choice })).choices[0]!;
      const calls = functionsOf(message.tool_calls);
      expect([message.content, calls.length]).toEqual([null, 1]);
      expect(isCall(calls[0]!.arguments)).toBe(true);
      if (tool_choice === named) expect(calls[0]!.name).toBe('get_time');
    }
    if (format in framed) return; // its text has a header, which the model writes by itself
    const { message } = (await ask(format, { ...fields, tool_choice: 'none', n: 1 })).choices[0]!;
    expect([isFitting(message.content), message.tool_calls]).toEqual([true, []]);
  });
});

/** One way to constrain a text, a text that fits, and one that does not. */
const KINDS: [string, Fields, string, string][] = [
  ['json', { structured_outputs: { json: schema } }, FITTING, '{"colour": "blue"}'],
  ['json as text', { structured_outputs: { json: JSON.stringify(schema) } }, FITTING, '{"city": "Rome"}'],
  ['json_object', { structured_outputs: { json_object: true } }, '{"a": [1]}', '[1]'],
  ['json_object of a format', { response_format: { type: 'json_object' } }, '{"a": [1]}', 'Well'],
  [
    'compact json',
    { structured_outputs: { json: schema, disable_any_whitespace: true } },
    '{"colour":"red"}',
    FITTING,
  ],
  ['regex', { structured_outputs: { regex: '[0-9]{3}' } }, '123', '12a'],
  ['choice', { structured_outputs: { choice: ['red', 'dark "blue"'] } }, 'dark "blue"', 'blue'],
  ['EBNF', { structured_outputs: { grammar: 'root ::= "a" root | "b"' } }, 'aab', 'aac'],
  ['Lark', { structured_outputs: { grammar: '# ::=\nstart: "a"* "b"' } }, 'aab', 'aac'],
  [
    'a tag',
    {
      response_format: {
        type: 'structural_tag',
        format: {
          type: 'tag',
          begin: '<a>',
          content: { type: 'json_schema', json_schema: schema },
          end: '</a>',
        },
      },
    },
    `<a>${FITTING}</a>`,
    '<a>{}</a>',
  ],
  [
    'a tag of the old form',
    {
      response_format: {
        type: 'structural_tag',
        triggers: ['<a'],
        structures: [{ begin: '<a>', schema, end: '</a>' }],
      },
    },
    `Well: <a>${FITTING}</a>`,
    'Well: <a>{}</a>',
  ],
];

const CALL = '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome", "days": 3}}\n</tool_call>';
const MADE = [{ name: 'get_time', arguments: '{"city": "Rome", "days": 3}' }];
const sayingText = async (text: string): Promise<Fields> =>
  saying([...(await runtime.tokenize(text, { parseSpecial: true }))]);

describe.each(KINDS)('%s', (kind, fields, fitting, other) => {
  it('a text that fits, a call, and nothing else', async () => {
    const say = async (text: string) =>
      shown(await ask('hermes', { ...fields, ...(await sayingText(text)) }));
    // options for JSON hold for the arguments, too
    const call =
      kind === 'compact json' ? CALL.replace(/\{"city.*?\}/, (text) => text.replaceAll(' ', '')) : CALL;
    expect(await say(fitting)).toMatchObject({ content: fitting, calls: [], finish: 'stop' });
    expect(await say(call)).toMatchObject({ content: '', finish: 'tool_calls' });
    const wrong = fitting.startsWith('Well') ? [] : [CALL.replace('3', '0'), `Well\n${CALL}`]; // there any text fits
    for (const one of [other, ...wrong])
      await expect(say(one), one).rejects.toMatchObject({ code: 'NO_ALLOWED_TOKEN' });
  });
});

const sources = engineSources();
if (sources === null)
  process.stderr.write('own templates skipped: the sources of the engine are not there\n');

const museCall = (days: number): string =>
  ` to=get_time<|message|><atem:function_calls>\n<atem:invoke name="get_time">\n<atem:parameter name="city">Rome</atem:parameter>\n<atem:parameter name="days">${days}</atem:parameter>\n</atem:invoke>\n</atem:function_calls>`;
const harmonyCall = (days: number): string =>
  `<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>{"city": "Rome", "days": ${days}}`;

/** Template, reasoning, header of a text, one call. */
const OWN: [string, string, string, (days: number) => string][] = [
  ['muse-glimmer', ' to=self<|message|>why<|eom|><|start|>assistant', ' to=user<|message|>', museCall],
  [
    'openai-gpt-oss-120b',
    '<|channel|>analysis<|message|>why<|end|><|start|>assistant',
    '<|channel|>final<|message|>',
    harmonyCall,
  ],
];

describe.skipIf(sources === null).each(OWN)('the published template %s', (name, thoughts, header, call) => {
  it('takes a text that fits and a call, behind reasoning and without, and nothing else', async () => {
    const chat_template = fs.readFileSync(path.join(sources!, 'models/templates', `${name}.jinja`), 'utf8');
    const say = async (text: string) => {
      const said = await sayingText(text);
      const fields = { response_format, chat_template, tools: tools.slice(1), max_tokens: 300, ...said };
      const whole = shown(await ask('long', fields));
      expect(await streamed('long', fields)).toEqual(whole);
      return whole;
    };
    for (const [before, reasoning] of [
      ['', ''],
      [thoughts, 'why'],
    ] as const) {
      const text = { content: FITTING, reasoning, finish: 'stop', calls: [] };
      expect(await say(`${before}${header}${FITTING}`)).toEqual(text);
      const made = { content: '', reasoning, finish: 'tool_calls', calls: MADE };
      expect(await say(before + call(3))).toEqual(made);
    }
    for (const wrong of [call(0), `${header}{"colour": "blue"}`, `${thoughts}${FITTING}`])
      await expect(say(wrong), wrong).rejects.toMatchObject({ code: 'NO_ALLOWED_TOKEN' });
  });
});

const THINK = '{% if false %}<think></think><tool_call>{% endif %}';

describe('reasoning before it', () => {
  it.each([
    ['that the model begins', THINK, '<think>why</think>'],
    ['that the prompt has begun', `${THINK}<think>`, 'why</think>'],
    ['that is empty in the prompt', `${THINK}<think></think>`, ''],
  ])('%s', async (_, tail, thoughts) => {
    const fields = { response_format, chat_template: PLAIN + tail, max_tokens: 200 };
    const reasoning = thoughts === '' ? '' : 'why';
    for (const [text, content, calls] of [
      [FITTING, FITTING, []],
      [CALL, '', MADE],
    ] as const) {
      const said = { ...fields, ...(await sayingText(thoughts + text)) };
      const whole = shown(await ask('hermes', said));
      expect(whole).toMatchObject({ reasoning, content, calls });
      expect(await streamed('hermes', said)).toEqual(whole);
    }
    const wrong = { ...fields, ...(await sayingText(`${thoughts}{"colour": "blue"}`)) };
    await expect(ask('hermes', wrong)).rejects.toMatchObject({ code: 'NO_ALLOWED_TOKEN' });
  });

  it('once: behind reasoning that the prompt has begun there is none', async () => {
    const fields = { response_format, chat_template: `${PLAIN}${THINK}<think>`, max_tokens: 200 };
    const twice = await sayingText(`why</think><think>again</think>${FITTING}`);
    await expect(ask('hermes', { ...fields, ...twice })).rejects.toMatchObject({ code: 'NO_ALLOWED_TOKEN' });
  });
});

describe('tools of other kinds', () => {
  it('a tool that is not strict takes any object; tools that are not allowed are not called', async () => {
    const [weather, time] = tools.map((tool) => ({ ...tool, function: { ...tool.function, strict: false } }));
    const loose = '<tool_call>\n{"name": "get_time", "arguments": {"town": "Bari"}}\n</tool_call>';
    const fields = { response_format, tools: [weather!, time!], ...(await sayingText(loose)) };
    expect(shown(await ask('hermes', fields)).calls).toEqual([
      { name: 'get_time', arguments: '{"town": "Bari"}' },
    ]);
    const allowed = {
      mode: 'auto' as const,
      tools: [{ type: 'function' as const, function: { name: 'get_weather' } }],
    };
    const tool_choice = { type: 'allowed_tools' as const, allowed_tools: allowed };
    await expect(ask('hermes', { ...fields, tool_choice })).rejects.toMatchObject({
      code: 'NO_ALLOWED_TOKEN',
    });
  });

  it('a custom tool with a grammar', async () => {
    const format = { type: 'grammar' as const, grammar: { syntax: 'regex' as const, definition: '[0-9]+' } };
    const custom = [{ type: 'custom' as const, custom: { name: 'dial', format } }];
    const call = (input: string): string =>
      `<tool_call>\n{"name": "dial", "arguments": {"input": "${input}"}}\n</tool_call>`;
    const fields = { response_format, tools: custom };
    const { choices } = await ask('hermes', { ...fields, ...(await sayingText(call('123'))) });
    expect(choices[0]!.message.tool_calls).toMatchObject([{ custom: { name: 'dial', input: '123' } }]);
    const wrong = ask('hermes', { ...fields, ...(await sayingText(call('12a'))) });
    await expect(wrong).rejects.toMatchObject({ code: 'NO_ALLOWED_TOKEN' });
  });
});

describe('what is wrong is named by the path of the caller', () => {
  const faulty = { type: 'object', properties: { a: { pattern: 'x(' } } };
  const json_schema = { name: 'x', schema: faulty };
  it.each<[string, Fields, string]>([
    ['a schema', { structured_outputs: { json: faulty } }, 'structured_outputs.json#/properties/a/pattern'],
    [
      'a schema of a format',
      { response_format: { type: 'json_schema', json_schema } },
      'response_format.json_schema.schema#/properties/a/pattern',
    ],
    [
      'a schema as text',
      { structured_outputs: { json: JSON.stringify(faulty) } },
      'structured_outputs.json#/properties/a/pattern',
    ],
    ['a regex', { structured_outputs: { regex: '(' } }, 'structured_outputs.regex'],
    ['a grammar', { structured_outputs: { grammar: 'root ::= (' } }, 'structured_outputs.grammar'],
    [
      'white space',
      { structured_outputs: { json: {}, whitespace_pattern: '(' } },
      'structured_outputs.whitespace_pattern',
    ],
  ])('%s', async (_, fields, param) => {
    for (const tool_choice of ['auto', 'required', 'none'] as const)
      await expect(ask('hermes', { ...fields, tool_choice })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        param,
      });
  });

  it('and so are warnings', async () => {
    const loose = { type: 'string', format: 'colour', maxLength: 5 };
    const format = { type: 'json_schema' as const, json_schema: { name: 'x', schema: loose } };
    const { warnings } = await ask('hermes', { response_format: format, seed: 1, max_tokens: 20 });
    expect(warnings).toEqual([
      "response_format.json_schema.schema#/format: unknown format 'colour' is not enforced",
    ]);
  });
});
