/** Streams of chat completions -> their texts, the whole answer, a response that OpenAI's unmodified client reads. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ChatCompletionRequest,
  type ChatCompletionStream,
  createRuntime,
  type Runtime,
} from '../../src/index.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, prefixCache: false, speculation: false });
});
afterAll(() => runtime.close());

const messages = [{ role: 'user' as const, content: 'Tell me a story.' }];
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

describe('final', () => {
  const shapes: readonly [string, Partial<ChatCompletionRequest>][] = [
    ['text', { max_tokens: 20 }],
    [
      'several choices with their tokens',
      { n: 3, logprobs: true, top_logprobs: 2, return_token_ids: true, max_tokens: 8 },
    ],
    ['an end by a stop string', { stop: ['.'], include_stop_str_in_output: true }],
    ['calls', { tools, tool_choice: 'required' }],
    ['the older form of calls', { functions: [tools[0]!.function], function_call: { name: 'weather' } }],
    [
      'reasoning',
      { chat_template: '{% for m in messages %}{{ m.content }}{% endfor %}<think>', max_tokens: 12 },
    ],
    [
      'an echo',
      {
        messages: [...messages, { role: 'assistant', content: 'Once' }],
        continue_final_message: true,
        add_generation_prompt: false,
        echo: true,
        max_tokens: 5,
      },
    ],
  ];
  it.each(shapes)('is what the request without a stream gets: %s', async (_name, fields) => {
    const request = { messages, seed: 7, ...fields } as ChatCompletionRequest;
    const whole = await runtime.createCompletion({ ...request, stream: false });
    const stream = await runtime.createCompletion({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    const streamed = await stream.final();
    const same = (answer: object) =>
      JSON.parse(
        JSON.stringify({ ...answer, id: '', created: 0 }).replaceAll(/chatcmpl-tool-[\w-]+/g, 'call'),
      );
    expect(same(streamed)).toEqual(same(whole));
  });

  it('has no usage unless it was asked for, and needs a whole stream', async () => {
    const request = { messages, max_tokens: 5, stream: true } as const;
    expect((await (await runtime.createCompletion(request)).final()).usage).toBeNull();
    const left = await runtime.createCompletion(request);
    for await (const _chunk of left) break;
    await expect(left.final()).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

describe('text', () => {
  it('has the pieces of the first choice', async () => {
    const stream = await runtime.createCompletion({ messages, n: 2, seed: 3, max_tokens: 16, stream: true });
    const pieces: string[] = [];
    for await (const piece of stream.text) pieces.push(piece);
    const { choices } = await stream.final();
    expect(pieces.join('')).toBe(choices[0]!.message.content);
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces).not.toContain('');
  });

  it('ends the request when the loop is left', async () => {
    const stream = await runtime.createCompletion({ messages, ignore_eos: true, stream: true });
    for await (const _piece of stream.text) break;
    await expect.poll(() => runtime.stats().running).toBe(0);
  });
});

describe('toResponse', () => {
  /** OpenAI's client, whose server answers with `toResponse` of a stream. */
  const clientOf = (open: (request: ChatCompletionRequest) => Promise<ChatCompletionStream>) =>
    new OpenAI({
      apiKey: 'none',
      baseURL: 'http://example.com/v1',
      maxRetries: 0,
      fetch: async (_url, init) => (await open(JSON.parse(String(init!.body)))).toResponse(),
    });
  const open = (request: ChatCompletionRequest) => runtime.createCompletion({ ...request, stream: true });
  const asked = { model: 'onpolicy-tiny', messages, seed: 7, max_tokens: 20 };

  it("is read by OpenAI's client", async () => {
    const answer = await clientOf(open).chat.completions.stream(asked).finalChatCompletion();
    const whole = await runtime.createCompletion(asked);
    expect(answer.choices[0]!.message.content).toBe(whole.choices[0]!.message.content);
    expect(answer.choices[0]!.finish_reason).toBe('length');
  });

  it('has the headers of events, and those that are given', async () => {
    const stream = await open(asked);
    const response = stream.toResponse({
      status: 201,
      headers: { 'x-mine': 'a', 'cache-control': 'no-store' },
    });
    expect([response.status, response.headers.get('x-mine'), response.headers.get('cache-control')]).toEqual([
      201,
      'a',
      'no-store',
    ]);
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true);
  });

  it('ends the request when its reader leaves', async () => {
    const { body } = (
      await runtime.createCompletion({ messages, ignore_eos: true, stream: true })
    ).toResponse();
    const reader = body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^data: \{"id":"chatcmpl-/);
    await reader.cancel();
    await expect.poll(() => runtime.stats().running).toBe(0);
  });

  it('tells an error as the server does', async () => {
    const failing = async (request: ChatCompletionRequest) => {
      const stream = await open({ ...request, timeout_ms: 150, ignore_eos: true, max_tokens: null } as never);
      return stream;
    };
    await expect(
      clientOf(failing).chat.completions.stream(asked).finalChatCompletion(),
    ).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
  });
});
