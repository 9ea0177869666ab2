/** Thoughts of a service that always thinks: in the content or the summary, sealed, streamed, replayed, and given back. */
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionRequest,
} from '../../../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../../../src/protocol/service/index.ts';
import { createFetch } from '../../../../src/serve/http/index.ts';

const header = { id: 'chatcmpl-1', created: 5, model: 'm' };

/** Says "So." after it has thought "Hm, well". */
function thinking(): { client: OpenAI; fetch: typeof fetch; asked: ChatCompletionRequest[] } {
  const asked: ChatCompletionRequest[] = [];
  const whole = {
    ...header,
    choices: [
      {
        message: { reasoning: 'Hm, well', content: 'So.', tool_calls: [] },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: null,
  } as unknown as ChatCompletion;
  const chunks = [{ reasoning: 'Hm, ' }, { reasoning: 'well' }, { content: 'So.' }].map(
    (delta, i) =>
      ({
        ...header,
        choices: [{ index: 0, delta, logprobs: null, finish_reason: i === 2 ? 'stop' : null }],
      }) as unknown as ChatCompletionChunk,
  );
  const service = {
    createCompletion: async (request: ChatCompletionRequest) => {
      asked.push(request);
      const stream = (async function* () {
        yield* chunks;
      })();
      return request.stream ? new ChatCompletionStream(stream, () => {}) : whole;
    },
    renderPrompt: async (request: ChatCompletionRequest) => {
      asked.push(request);
      return { count: 7 };
    },
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  const fetch = createFetch(service as never);
  const client = new OpenAI({ fetch, baseURL: 'http://in-process/v1', apiKey: 'any', maxRetries: 0 });
  return { client, fetch, asked };
}

const CONTENT = { summary: [], content: [{ type: 'reasoning_text', text: 'Hm, well' }] };
const SUMMARY = { summary: [{ type: 'summary_text', text: 'Hm, well' }], content: [] };
const ASK = { model: 'm', input: 'Hi' };

describe('thoughts are', () => {
  it.each<[string, Partial<OpenAI.Responses.ResponseCreateParams>, object, boolean]>([
    ['the content', {}, CONTENT, false],
    ['the summary where it is asked for', { reasoning: { summary: 'auto' } }, SUMMARY, false],
    ['sealed, too', { include: ['reasoning.encrypted_content'], store: false }, CONTENT, true],
  ])('%s, whole, streamed and given back', async (_, more, thoughts, isSealed) => {
    const { client, asked } = thinking();
    const whole = await client.responses.create({ ...ASK, ...more, stream: false });
    const streamed = await client.responses.stream({ ...ASK, ...more } as never).finalResponse();
    for (const { output } of [whole, streamed]) {
      expect(output[0]).toMatchObject({ type: 'reasoning', status: 'completed', ...thoughts });
      expect('encrypted_content' in output[0]!).toBe(isSealed);
      const [item] = output as [OpenAI.Responses.ResponseReasoningItem];
      const given = isSealed ? { ...item, content: [] } : item;
      await client.responses.create({ ...ASK, input: [given, { role: 'user', content: 'And?' }] });
      expect(asked.at(-1)!.messages[0]).toMatchObject({ role: 'assistant', reasoning: 'Hm, well' });
    }
    expect(whole.reasoning).toEqual({ effort: null, summary: more.reasoning?.summary ?? null });
  });

  it('nothing where another server sealed them', async () => {
    const { client, asked } = thinking();
    const item = { type: 'reasoning' as const, id: 'rs_1', summary: [], encrypted_content: 'gAAAA' };
    await client.responses.create({ ...ASK, input: [item, { role: 'user', content: 'And?' }] });
    expect(asked[0]!.messages).toEqual([{ role: 'user', content: 'And?' }]);
  });

  it("shown by Vercel's provider, and kept for the next turn", async () => {
    const { fetch, asked } = thinking();
    const model = createOpenAI({ fetch, baseURL: 'http://in-process/v1', apiKey: 'any' }).responses('m');
    const providerOptions = {
      openai: { forceReasoning: true, reasoningSummary: 'auto', store: false },
    };
    const options = { model, prompt: 'Hi', maxRetries: 0, providerOptions };
    expect(await streamText(options).reasoningText).toBe('Hm, well');
    const { reasoningText, response } = await generateText(options);
    expect(reasoningText).toBe('Hm, well');
    const messages = [...response.messages, { role: 'user' as const, content: 'And?' }];
    await generateText({ ...options, prompt: messages });
    expect(asked.at(-1)!.messages[0]).toMatchObject({ role: 'assistant', reasoning: 'Hm, well' });
  });
});

it.each([
  {},
  { reasoning: { summary: 'detailed' as const }, include: ['reasoning.encrypted_content' as const] },
])('a stored response has its events again: %j', async (more) => {
  const { client } = thinking();
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of await client.responses.create({ ...ASK, ...more, stream: true }))
    events.push(event);
  const { response } = events.at(-1) as OpenAI.Responses.ResponseCompletedEvent;
  const again: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of await client.responses.retrieve(response.id, { stream: true })) again.push(event);
  const types = (list: typeof events) =>
    list.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
  expect(types(again)).toEqual(types(events));
  expect(again.map(({ sequence_number }) => sequence_number)).toEqual(again.map((_, i) => i));
  expect(again.slice(-3)).toEqual(
    events.slice(-3).map((event, i) => ({ ...event, sequence_number: again.length - 3 + i })),
  );
  const rest: OpenAI.Responses.ResponseStreamEvent[] = [];
  const after = { stream: true, starting_after: 5 } as const;
  for await (const event of await client.responses.retrieve(response.id, after)) rest.push(event);
  expect(rest).toEqual(again.slice(6));
});

describe('a conversation is', () => {
  const input: OpenAI.Responses.ResponseInput = [
    { role: 'user', content: 'Find x' },
    {
      type: 'local_shell_call',
      id: 'l1',
      call_id: 'c1',
      status: 'completed',
      action: { type: 'exec', command: ['ls'], env: {} },
    },
    { type: 'local_shell_call_output', id: 'c1', output: 'a.txt' },
    {
      type: 'web_search_call',
      id: 'w1',
      status: 'completed',
      action: { type: 'search', query: 'x' } as never,
    },
    { type: 'compaction', encrypted_content: 'gAAAA' },
    { type: 'mcp_call', id: 'm1', server_label: 's', name: 'read', arguments: '{}', output: 'text' },
    {
      role: 'user',
      content: [
        { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,aGk=' },
        { type: 'input_file', filename: 'b.pdf', file_data: 'data:application/pdf;base64,JVBERi0A' },
      ],
    },
  ];

  it('read with the items of other servers, and stored with all of them', async () => {
    const { client, asked } = thinking();
    const { id } = await client.responses.create({ ...ASK, input });
    expect(asked[0]!.messages).toEqual([
      { role: 'user', content: 'Find x' },
      {
        role: 'assistant',
        content: [],
        tool_calls: [
          {
            id: 'c1',
            type: 'function',
            function: { name: 'local_shell', arguments: '{"type":"exec","command":["ls"],"env":{}}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'a.txt' },
      {
        role: 'assistant',
        content: [],
        tool_calls: [{ id: 'm1', type: 'function', function: { name: 'read', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'm1', content: 'text' },
      {
        role: 'user',
        content: [
          { type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,aGk=' } },
          { type: 'text', text: '(The file b.pdf cannot be read here.)' },
        ],
      },
    ]);
    const pages: OpenAI.Responses.ResponseItem[] = [];
    for await (const item of client.responses.inputItems.list(id, { limit: 3, order: 'asc' }))
      pages.push(item);
    expect(pages).toHaveLength(input.length);
    expect(pages[0]).toEqual({
      id: expect.stringMatching(/^msg_/) as string,
      type: 'message',
      role: 'user',
      status: 'completed',
      content: [{ type: 'input_text', text: 'Find x' }],
    });
    expect(pages[3]).toEqual(input[3]);
    const newest = await client.responses.inputItems.list(id, { limit: 1 });
    expect([newest.data, newest.has_more]).toEqual([[pages.at(-1)], true]);
  });

  it('counted', async () => {
    const { client, asked } = thinking();
    expect(await client.responses.inputTokens.count({ model: 'm', input: 'Hi', instructions: 'Be' })).toEqual(
      {
        object: 'response.input_tokens',
        input_tokens: 7,
      },
    );
    expect(asked[0]!.messages).toEqual([
      { role: 'system', content: 'Be' },
      { role: 'user', content: 'Hi' },
    ]);
  });

  it('compacted to its messages of the user and a summary, which the next request has', async () => {
    const { client, asked } = thinking();
    const compacted = await client.responses.compact({ model: 'm', input });
    expect(asked[0]!.messages.at(-1)!.content).toMatch(/^Summarize/);
    expect(compacted).toMatchObject({ object: 'response.compaction', usage: { total_tokens: 0 } });
    expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'message', 'compaction']);
    const next = [
      ...(compacted.output as OpenAI.Responses.ResponseInput),
      { role: 'user' as const, content: 'Go on' },
    ];
    await client.responses.create({ ...ASK, input: next });
    expect(asked.at(-1)!.messages.map(({ role, content }) => [role, JSON.stringify(content)])).toEqual([
      ['user', expect.stringContaining('Find x')],
      ['user', expect.stringContaining('a.txt')],
      ['assistant', expect.stringMatching(/Summary of the conversation so far:.*So\./)],
      ['user', '"Go on"'],
    ]);
    await expect(client.responses.compact({ model: 'm' })).rejects.toMatchObject({
      status: 400,
      param: 'input',
    });
  });
});
