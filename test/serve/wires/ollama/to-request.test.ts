/** Requests of Ollama's API -> those of chats, texts and embeddings, and the caller's paths in errors about them. */
import { Ollama } from 'ollama';
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../../src/errors.ts';
import type {
  ChatCompletionChunk,
  EmbeddingRequest,
  OllamaChatRequest,
} from '../../../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../../../src/protocol/service/index.ts';
import { createFetch } from '../../../../src/serve/http/index.ts';
import { toChat, toPromptChat, toSeconds, toText } from '../../../../src/serve/wires/ollama/to-request.ts';

const plain = (value: unknown): object => JSON.parse(JSON.stringify(value)) as object;
const CALL = { function: { name: 'f', arguments: { a: 1 } } };

it.each<[string, OllamaChatRequest, object]>([
  [
    'options',
    { options: { num_predict: 5, repeat_penalty: 1.2, top_k: 3, stop: ['x'], num_ctx: 9 } },
    { max_completion_tokens: 5, repetition_penalty: 1.2, top_k: 3, stop: ['x'] },
  ],
  ['no limit', { options: { num_predict: -1 } }, { max_completion_tokens: null }],
  ['any JSON', { format: 'json' }, { response_format: { type: 'json_object' } }],
  [
    'a schema',
    { format: { type: 'object' } },
    { response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } },
  ],
  ['no thoughts', { think: false }, { reasoning_effort: 'none' }],
  ['thoughts', { think: true }, { chat_template_kwargs: { enable_thinking: true } }],
  ['much thought', { think: 'max' }, { reasoning_effort: 'max', chat_template_kwargs: { thinking: true } }],
  [
    'pictures',
    { messages: [{ role: 'user', content: 'Hi', images: ['AAAA'] }] },
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image_url', image_url: { url: 'data:;base64,AAAA' } },
          ],
        },
      ],
    },
  ],
  [
    'calls without ids, and their results by name and by order',
    {
      messages: [
        { role: 'assistant', thinking: 'Hm', tool_calls: [CALL, { function: { name: 'g' } }] },
        { role: 'tool', tool_name: 'g', content: '2' },
        { role: 'tool', content: '1' },
      ],
    },
    {
      messages: [
        {
          role: 'assistant',
          reasoning: 'Hm',
          tool_calls: [
            { id: 'call_0_0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
            { id: 'call_0_1', type: 'function', function: { name: 'g', arguments: '{}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_0_1', content: '2' },
        { role: 'tool', tool_call_id: 'call_0_0', content: '1' },
      ],
    },
  ],
])('a chat says the same of %s', (_, request, chat) => {
  expect(plain(toChat(request).request)).toMatchObject(chat);
});

it('a prompt becomes messages, or stays a text', () => {
  const asked = { system: 'Be', prompt: 'Hi', options: { num_predict: 4 } };
  expect(plain(toPromptChat(asked).request)).toMatchObject({
    messages: [
      { role: 'system', content: 'Be' },
      { role: 'user', content: 'Hi' },
    ],
  });
  const text = plain(toText({ ...asked, suffix: '!', logprobs: true, top_logprobs: 2 }).request);
  expect(text).toMatchObject({ prompt: 'Hi', suffix: '!', max_tokens: 4, logprobs: 2 });
});

it.each<[unknown, number | null]>([
  [null, null],
  ['', null],
  [0, 0],
  ['0', 0],
  [300, 300],
  ['5m', 300],
  ['1h30m', 5400],
  ['1500ms', 1.5],
  [-1, -1],
  ['-5m', -1],
])('keep_alive %j is %j seconds', (given, seconds) => {
  expect(toSeconds(given as string)).toBe(seconds);
});

it.each<[string, string]>([
  ['max_completion_tokens', 'options.num_predict'],
  ['temperature', 'options.temperature'],
  ['repetition_penalty', 'options.repeat_penalty'],
  ['response_format.json_schema.schema.type', 'format.type'],
  ['messages.1.content', 'prompt'],
  ['messages.1.content.1.image_url.url', 'images.0'],
  ['messages.0', 'system'],
])('an error about %s is one about %s', (own, callers) => {
  const { paths } = toPromptChat({ system: 'Be', prompt: 'Hi', images: ['AAAA'] });
  const error = new OnpolicyError('INVALID_REQUEST', `${own}: wrong`, { param: own });
  expect((paths.inError(error) as OnpolicyError).message).toBe(`${callers}: wrong`);
});

describe('a service that thinks and calls', () => {
  const delta = (more: object, finish_reason: string | null = null) =>
    ({
      choices: [{ index: 0, delta: more, logprobs: null, finish_reason }],
    }) as unknown as ChatCompletionChunk;
  const called = (index: number, text: string, name?: string) => ({
    tool_calls: [{ index, ...(name ? { id: `c${index}` } : {}), function: { name, arguments: text } }],
  });
  const open = (chunks: ChatCompletionChunk[]) => {
    const asked: EmbeddingRequest[] = [];
    const service = {
      createCompletion: async () => {
        const stream = (async function* () {
          yield* chunks;
        })();
        return new ChatCompletionStream(stream, () => {});
      },
      createEmbeddings: async (request: EmbeddingRequest) => {
        asked.push(request);
        return { data: [{ embedding: [1, 2] }], usage: { prompt_tokens: 3 } };
      },
      servedModels: () => ['m'],
      close: async () => {},
      [Symbol.asyncDispose]: async () => {},
    };
    return { client: new Ollama({ host: 'http://x', fetch: createFetch(service as never) }), asked };
  };
  const messages = [{ role: 'user', content: 'Hi' }];

  it('shows thoughts and whole calls, in the order they came', async () => {
    const { client } = open([
      delta({ reasoning: 'Hm' }),
      delta({ content: 'I ask.' }),
      delta(called(0, '{"a"', 'f')),
      delta(called(0, ':1}')),
      delta(called(1, '', 'g')),
      delta({}, 'tool_calls'),
    ]);
    const parts: unknown[] = [];
    for await (const { message } of await client.chat({ model: 'm', messages, stream: true }))
      parts.push(message);
    const first = { id: 'c0', function: { index: 0, name: 'f', arguments: { a: 1 } } };
    const second = { id: 'c1', function: { index: 1, name: 'g', arguments: {} } };
    const role = 'assistant';
    expect(parts).toEqual([
      { role, content: '', thinking: 'Hm' },
      { role, content: 'I ask.' },
      { role, content: '', tool_calls: [first] },
      { role, content: '', tool_calls: [second] },
      { role, content: '' },
    ]);
    const { message } = await client.chat({ model: 'm', messages });
    expect(message).toEqual({ role, content: 'I ask.', thinking: 'Hm', tool_calls: [first, second] });
  });

  it('shows no call that broke off', async () => {
    const { client } = open([delta(called(0, '{"a":', 'f')), delta({}, 'length')]);
    const { message, done_reason } = await client.chat({ model: 'm', messages });
    expect([message, done_reason]).toEqual([{ role: 'assistant', content: '' }, 'length']);
  });

  it('makes vectors of texts', async () => {
    const { client, asked } = open([]);
    const one = await client.embed({ model: 'm', input: 'Hi', truncate: false, dimensions: 2 });
    expect(one).toMatchObject({ model: 'm', embeddings: [[1, 2]], prompt_eval_count: 3 });
    expect(await client.embeddings({ model: 'm:latest', prompt: 'Hi', keep_alive: '5m' })).toEqual({
      embedding: [1, 2],
    });
    expect(asked.map((request) => plain(request))).toEqual([
      { model: 'm', input: 'Hi', dimensions: 2, truncate_prompt_tokens: null, keep_alive: null },
      { model: 'm', input: 'Hi', truncate_prompt_tokens: -1, keep_alive: 300 },
    ]);
    expect((await client.embed({ model: 'm', input: [] })).embeddings).toEqual([]);
  });

  it('that fails on the way says so in a last line', async () => {
    const chunks = (async function* () {
      yield delta({ content: 'a' });
      throw new OnpolicyError('BACKEND_FAILED', 'the device is gone');
    })();
    const service = { createCompletion: async () => new ChatCompletionStream(chunks, () => {}) };
    const client = new Ollama({ host: 'http://x', fetch: createFetch(service as never) });
    const read = async () => {
      for await (const _ of await client.chat({ model: 'm', messages, stream: true }));
    };
    await expect(read()).rejects.toThrow('the device is gone');
  });
});
