/** A full context, in the words by which clients of each wire know it, and the errors after which clients try again. */
import { describe, expect, it } from 'vitest';
import { contextOverflow, type ErrorCode, OnpolicyError } from '../../../src/errors.ts';
import type { ChatCompletionRequest } from '../../../src/protocol/index.ts';
import { fromErrorBody } from '../../../src/protocol/index.ts';
import { createHandler } from '../../../src/serve/http/index.ts';
import type { Servable } from '../../../src/serve/http/server/handler-options.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';
import { ask, HELLO, openHandler } from './exchange.ts';

/** Its context holds 100 tokens; a message of `x` has so many, and answers are at least 10. */
function smallService(): Servable {
  const memory = createMemoryService();
  const createCompletion = async (request: ChatCompletionRequest, options?: object) => {
    const prompt_tokens = String(request.messages.at(-1)?.content).length;
    const wanted = request.max_completion_tokens ?? request.max_tokens ?? null;
    const use = { prompt_tokens, max_model_len: 100 };
    if (prompt_tokens >= 100) throw contextOverflow('messages', 'the prompt is long', use);
    if (wanted !== null && prompt_tokens + wanted > 100)
      throw contextOverflow('max_completion_tokens', 'it does not fit', {
        ...use,
        max_completion_tokens: wanted,
      });
    return await memory.createCompletion(request as ChatCompletionRequest & { stream?: false }, options);
  };
  return { ...memory, createCompletion: createCompletion as Servable['createCompletion'] };
}

const handler = createHandler(smallService());
const content = 'x'.repeat(120);
const message = { role: 'user', content };
const TOO_LONG =
  "This model's maximum context length is 100 tokens. However, your messages resulted in 120 tokens. Please reduce the length of the messages.";

describe('input that does not fit', () => {
  it.each([
    ['/v1/chat/completions', { messages: [message] }, 'messages', TOO_LONG],
    ['/v1/chat/completions', { messages: [message], stream: true }, 'messages', TOO_LONG],
    [
      '/v1/chat/completions',
      { ...HELLO, max_tokens: 500 },
      'max_completion_tokens',
      "This model's maximum context length is 100 tokens. However, you requested 511 tokens (11 in the messages, 500 in the completion). " +
        'Please reduce the length of the messages or completion.',
    ],
    ['/v1/responses', { input: content }, 'input', TOO_LONG],
    [
      '/v1/messages',
      { messages: [message], max_tokens: 5 },
      'messages',
      'prompt is too long: 120 tokens > 100 maximum',
    ],
  ])('%s %#', async (path, body, param, text) => {
    const answer = await ask(handler, 'POST', path, { body });
    const code = 'context_length_exceeded';
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request_error', code, param } },
    });
    expect((answer.body as { error: { message: string } }).error.message).toBe(text);
    expect(answer.headers.get('x-error-code')).toBe('CONTEXT_OVERFLOW');
    expect(fromErrorBody(400, null, answer.body, 'completion').code).toBe('CONTEXT_OVERFLOW');
  });

  it('begins and fails as a stream of the responses API', async () => {
    const { status, body } = await ask(handler, 'POST', '/v1/responses', {
      body: { input: content, stream: true },
    });
    const events = String(body)
      .trim()
      .split('\n\n')
      .map((event) => JSON.parse(event.split('\ndata: ')[1]!));
    expect(status).toBe(200);
    expect(events.map(({ type, sequence_number: number }) => [number, type])).toEqual([
      [0, 'response.created'],
      [1, 'response.in_progress'],
      [2, 'response.failed'],
      [3, 'error'],
    ]);
    const code = 'context_length_exceeded';
    expect(events[2]).toMatchObject({ response: { status: 'failed', error: { code } } });
    expect(events[3]).toMatchObject({ code, message: TOO_LONG, error: { code, message: TOO_LONG } });
  });

  it.each([
    ['/v1/messages', { ...HELLO, max_tokens: 500 }, { stop_reason: 'end_turn' }],
    ['/v1/responses', { input: 'Hello there', max_output_tokens: 500 }, { status: 'completed' }],
  ])('limits the answer where only that is too long: %s', async (path, body, expected) => {
    expect(await ask(handler, 'POST', path, { body })).toMatchObject({ status: 200, body: expected });
  });
});

describe('x-should-retry', () => {
  it.each<[ErrorCode, string | null]>([
    ['INVALID_REQUEST', 'false'],
    ['NATIVE_UNAVAILABLE', 'false'],
    ['CONTEXT_OVERFLOW', 'false'],
    ['OVERLOADED', null],
    ['BACKEND_FAILED', null],
    ['OUT_OF_MEMORY', null],
  ])('%s: %s', async (code, expected) => {
    const createCompletion = () => Promise.reject(new OnpolicyError(code, 'no'));
    const failing = createHandler({ ...createMemoryService(), createCompletion });
    const { headers } = await ask(failing, 'POST', '/v1/chat/completions', { body: HELLO });
    expect(headers.get('x-should-retry')).toBe(expected);
  });

  it.each(['/v1/messages', '/v1/chat/completions', '/v1/responses'])(
    'says no to a wrong key: %s',
    async (path) => {
      const { handler: closed } = openHandler({ tokens: ['secret'] });
      const { status, headers } = await ask(closed, 'POST', path, {
        body: HELLO,
        headers: { 'x-api-key': 'wrong' },
      });
      expect([status, headers.get('x-should-retry')]).toEqual([401, 'false']);
    },
  );
});
