import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { functionsOf } from '../fakes/calls.ts';
import { chunksOf, type Fields, forced, PLAIN } from './fields/model.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

async function whole(text: string, fields: Fields = {}): Promise<ChatCompletion> {
  return await runtime.createCompletion({ ...(await forced(runtime, text, fields)), stream: false });
}

async function chunks(text: string, fields: Fields = {}): Promise<ChatCompletionChunk[]> {
  return await chunksOf(runtime, await forced(runtime, text, fields));
}

const THINKS = `${PLAIN}{% if false %}<think></think>{% endif %}`;
const tool = (name: string) => ({
  type: 'function' as const,
  function: {
    name,
    parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
  },
});
const tools = [tool('weather'), tool('time')];
const HERMES = `${PLAIN}{% if tools %}<tool_call>{"name": "x", "arguments": {}}</tool_call>{% endif %}`;

describe('reasoning', () => {
  it('is taken out of the content', async () => {
    const { choices } = await whole('<think>two and two</think>four', { chat_template: THINKS });
    expect(choices[0]!.message).toMatchObject({
      content: 'four',
      reasoning: 'two and two',
      reasoning_content: 'two and two',
    });
    expect(choices[0]!.finish_reason).toBe('stop');
  });

  it('that the prompt has opened needs no opening tag, and without a closing one it is everything', async () => {
    const chat_template = `${PLAIN}<think>`;
    expect((await whole('hm</think>yes', { chat_template })).choices[0]!.message).toMatchObject({
      content: 'yes',
      reasoning: 'hm',
    });
    expect((await whole('hm hm', { chat_template })).choices[0]!.message).toMatchObject({
      content: null,
      reasoning: 'hm hm',
    });
  });

  it('is not reported with include_reasoning false, but counted', async () => {
    const { choices, usage } = await whole('<think>two and two</think>four', {
      chat_template: THINKS,
      include_reasoning: false,
    });
    expect(choices[0]!.message).toMatchObject({ content: 'four', reasoning: null, reasoning_content: null });
    expect(usage.completion_tokens).toBe(
      (await whole('<think>two and two</think>four', { chat_template: THINKS })).usage.completion_tokens,
    );
  });

  it('streams as deltas of its own', async () => {
    const deltas = (await chunks('<think>two and two</think>four', { chat_template: THINKS })).map(
      ({ choices }) => choices[0]!.delta,
    );
    expect(deltas.map(({ reasoning }) => reasoning ?? '').join('')).toBe('two and two');
    expect(deltas.map(({ reasoning_content }) => reasoning_content ?? '').join('')).toBe('two and two');
    expect(deltas.map(({ content }) => content ?? '').join('')).toBe('four');
  });
});

describe('tool calls', () => {
  const two =
    '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>\n<tool_call>{"name": "time", "arguments": {"days": 2}}</tool_call>';
  const calls = [
    {
      id: expect.any(String),
      type: 'function',
      function: { name: 'weather', arguments: '{"city": "Rome"}' },
    },
    { id: expect.any(String), type: 'function', function: { name: 'time', arguments: '{"days": 2}' } },
  ];

  it('may be several; parallel_tool_calls false keeps the first', async () => {
    const all = await whole(two, { chat_template: HERMES, tools });
    expect(all.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: calls },
    });
    const one = await whole(two, { chat_template: HERMES, tools, parallel_tool_calls: false });
    expect(one.choices[0]!.message.tool_calls).toEqual(calls.slice(0, 1));
    const streamed = (
      await chunks(two, { chat_template: HERMES, tools, parallel_tool_calls: false })
    ).flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    expect(new Set(streamed.map(({ index }) => index))).toEqual(new Set([0]));
  });

  it('stream the name first, then the arguments, each under the index of its call', async () => {
    const all = await chunks(two, { chat_template: HERMES, tools, speculation: false });
    const deltas = all.flatMap(({ choices }) => choices[0]!.delta.tool_calls ?? []);
    for (const [index, { function: call }] of calls.entries()) {
      const [first, ...rest] = deltas.filter((delta) => delta.index === index);
      expect(first).toMatchObject({
        id: expect.stringMatching(/^chatcmpl-tool-/),
        type: 'function',
        function: { name: call.name },
      });
      for (const delta of rest) expect(delta).toEqual({ index, function: { arguments: expect.any(String) } });
      const text = [first!, ...rest].map((delta) => delta.function?.arguments ?? '').join('');
      expect(text).toBe(call.arguments);
    }
    expect(deltas.map(({ index }) => index)).toEqual(deltas.map(({ index }) => index).toSorted());
    expect(all.at(-1)!.choices[0]).toMatchObject({ finish_reason: 'tool_calls' });
    for (const { choices } of all) expect(choices[0]!.delta.content ?? '').not.toContain('<tool_call>');
  });

  it('are looked for by default, and with tool_choice null', async () => {
    for (const fields of [{}, { tool_choice: null }, { tool_choice: 'auto' as const }])
      expect(
        (await whole(two, { chat_template: HERMES, tools, ...fields })).choices[0]!.message,
      ).toMatchObject({
        tool_calls: calls,
      });
  });

  it('may follow content', async () => {
    const { choices } = await whole(`Let me see. ${two}`, { chat_template: HERMES, tools });
    expect(choices[0]!.message).toMatchObject({
      content: expect.stringContaining('Let me see.'),
      tool_calls: calls,
    });
  });

  it('that break off before their name are no text, with finish_reason length', async () => {
    const ids = await runtime.tokenize(two, { parseSpecial: true });
    for (let max_completion_tokens = 1; max_completion_tokens <= ids.length; max_completion_tokens++) {
      const fields = { chat_template: HERMES, tools, max_completion_tokens };
      const [cut] = (await whole(two, fields)).choices;
      expect(cut!.finish_reason).toBe('length');
      if (cut!.message.tool_calls.length === 0) expect(cut!.message.content).toBe('');
      const deltas = (await chunks(two, fields)).map(({ choices }) => choices[0]!);
      expect(deltas.at(-1)!.finish_reason).toBe('length');
      expect(deltas.map(({ delta }) => delta.content ?? '').join('')).toBe(cut!.message.content ?? '');
      const sent = deltas.flatMap(({ delta }) => delta.tool_calls ?? []);
      for (const [index, call] of functionsOf(cut!.message.tool_calls).entries())
        expect(
          sent
            .filter((part) => part.index === index)
            .map((part) => part.function!.arguments)
            .join(''),
        ).toBe(call.arguments);
    }
  });

  it('are plain text with tool_choice none, and without tools', async () => {
    for (const fields of [{ tools, tool_choice: 'none' as const }, {}])
      expect((await whole(two, { chat_template: HERMES, ...fields })).choices[0]).toMatchObject({
        finish_reason: 'stop',
        message: { content: two, tool_calls: [] },
      });
  });

  it('follow reasoning', async () => {
    const chat_template = `${HERMES}{% if false %}<think></think>{% endif %}`;
    const { choices } = await whole(`<think>rome?</think>${two}`, { chat_template, tools });
    expect(choices[0]!.message).toMatchObject({ reasoning: 'rome?', tool_calls: calls });
  });

  it('use the format that the model option names', async () => {
    const path = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
    await using other = await createRuntime({ threads: 1, model: { path, toolFormat: 'json' } });
    const { choices } = await other.createCompletion({
      ...(await forced(runtime, '{"name": "weather", "arguments": {"city": "Rome"}}', { tools })),
      stream: false,
    });
    expect(choices[0]!.message.tool_calls).toEqual(calls.slice(0, 1));
    await expect(
      (await createRuntime({ model: { path, toolFormat: 'nonsense' } })).createCompletion({
        messages: [{ role: 'user', content: 'x' }],
      }),
    ).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });
});

describe('the template sees', () => {
  const prompt = async (fields: Partial<ChatCompletionRequest>): Promise<string> => {
    const request = {
      messages: [{ role: 'user' as const, content: 'x' }],
      max_completion_tokens: 1,
      return_token_ids: true,
      ...fields,
    };
    const answer = await runtime.createCompletion({ ...request, stream: false });
    return await runtime.detokenize(answer.prompt_token_ids!);
  };

  it.each<[string, Partial<ChatCompletionRequest>, string]>([
    [
      'documents',
      {
        documents: [{ title: 'T', text: 'body' }],
        chat_template: '{% for d in documents %}{{ d.title }}={{ d.text }}{% endfor %}',
      },
      'T=body',
    ],
    [
      'reasoning_effort',
      { reasoning_effort: 'high', chat_template: 'effort {{ reasoning_effort }}' },
      'effort high',
    ],
    [
      'chat_template_kwargs over everything',
      {
        reasoning_effort: 'high',
        chat_template_kwargs: { reasoning_effort: 'none' },
        chat_template: 'effort {{ reasoning_effort }}',
      },
      'effort none',
    ],
    [
      'tools, also with tool_choice none',
      { tools, tool_choice: 'none', chat_template: '{% for t in tools %}{{ t.function.name }} {% endfor %}' },
      'weather time ',
    ],
    [
      'add_generation_prompt',
      { add_generation_prompt: false, chat_template: 'gen {{ add_generation_prompt }}' },
      'gen False',
    ],
    [
      'content as text where it wants text',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 'b' },
            ],
          },
        ],
        chat_template: PLAIN,
      },
      'a\nb',
    ],
    [
      'content as parts where it wants parts',
      {
        chat_template:
          '{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}',
      },
      '[x]',
    ],
    [
      'names, call ids and arguments as objects',
      {
        messages: [
          { role: 'user', content: 'x', name: 'Ann' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
            ],
          },
          { role: 'tool', content: 'sunny', tool_call_id: 'c1' },
        ],
        chat_template:
          '{% for m in messages %}{{ m.name or "" }}{% for c in m.tool_calls or [] %}{{ c.function.arguments.city }}{% endfor %}{{ m.tool_call_id or "" }};{% endfor %}',
      },
      'Ann;Rome;c1;',
    ],
    [
      'reasoning of earlier turns under both names',
      {
        messages: [{ role: 'assistant', content: 'a', reasoning: 'why' }],
        chat_template: '{% for m in messages %}{{ m.reasoning }}{{ m.reasoning_content }}{% endfor %}',
      },
      'whywhy',
    ],
    [
      'every kind of message',
      {
        messages: [
          { role: 'developer', content: 'd', tools: [tool('mine')] },
          { role: 'system', content: 's' },
          { role: 'user', content: [{ type: 'text', text: 'u' }, 'v', { type: 'input_text', text: 'w' }] },
          { role: 'assistant', content: [{ type: 'refusal', refusal: 'r' }] },
          { role: 'tool', content: 't', tool_call_id: 'c' },
          { role: 'function', content: 'f', name: 'old' },
          { role: 'critic', content: null, name: 'cy' },
        ],
        chat_template:
          '{% for m in messages %}{{ m.role }}={{ m.content }}{{ m.name or "" }}{% for t in m.tools or [] %}{{ t.function.name }}{% endfor %};{% endfor %}',
      },
      'developer=dmine;system=s;user=u\nv\nw;assistant=r;tool=t;tool=fold;critic=cy;',
    ],
    [
      'any role',
      {
        messages: [{ role: 'critic', content: 'hm' }],
        chat_template: '{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}',
      },
      'critic:hm',
    ],
  ])('%s', async (_, fields, expected) => {
    expect(await prompt(fields)).toBe(expected);
  });

  it('no media: a text model says so', async () => {
    const content = [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }];
    await expect(
      prompt({ messages: [{ role: 'user', content }], mm_processor_kwargs: { size: 1 } }),
    ).rejects.toMatchObject({ code: 'UNSUPPORTED', param: 'messages.0.content.0' });
    expect(await prompt({ mm_processor_kwargs: { size: 1 }, chat_template: 'x' })).toBe('x');
  });

  it('a continued message open, also after tool turns and with several parts', async () => {
    const messages: ChatCompletionRequest['messages'] = [
      { role: 'user', content: 'x' },
      { role: 'tool', content: 'sunny', tool_call_id: 'c1' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'It is' },
          { type: 'text', text: 'sun' },
        ],
      },
    ];
    const text = await prompt({ messages, continue_final_message: true, add_generation_prompt: false });
    expect(text).toMatch(/<\|im_start\|>assistant\nIt is\nsun$/);
  });
});
