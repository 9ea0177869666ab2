/** Forms with a sound: how their fields are read, what answers look like, and what is refused before it is read whole. */
import { describe, expect, it } from 'vitest';
import type { ChatCompletionRequest } from '../../../src/protocol/index.ts';
import { createHandler } from '../../../src/serve/http/index.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';
import { openHandler } from './exchange.ts';

const PATH = 'http://localhost/v1/audio/transcriptions';

async function post(
  fields: Record<string, string>,
  bytes: Uint8Array<ArrayBuffer> | null = new Uint8Array(9),
  options = {},
) {
  const { handler, service } = openHandler(options, { pieces: ['Hello ', 'there'] });
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  if (bytes) body.append('file', new Blob([bytes]), 'speech.wav');
  const response = await handler(new Request(PATH, { method: 'POST', body }));
  const text = await response.text();
  return { status: response.status, type: response.headers.get('content-type'), text, calls: service.calls };
}

describe('POST /v1/audio/transcriptions', () => {
  it('answers with JSON, text or events', async () => {
    const whole = await post({ language: 'en', temperature: '0.5', seed: '3' });
    expect(whole.status).toBe(200);
    expect(JSON.parse(whole.text)).toMatchObject({ text: 'Hello there', usage: { type: 'tokens' } });
    expect(await post({ response_format: 'text' })).toMatchObject({
      type: 'text/plain; charset=utf-8',
      text: 'Hello there',
    });
    const events = await post({ stream: 'true' });
    expect(events.type).toMatch(/^text\/event-stream/);
    const parts = events.text
      .trim()
      .split('\n\n')
      .map((line) => line.replace('data: ', ''));
    expect(parts.at(-1)).toBe('[DONE]');
    expect(parts.slice(0, -1).map((part) => (JSON.parse(part) as { type: string }).type)).toContain(
      'transcript.text.delta',
    );
  });

  it.each<[string, Record<string, string>, Uint8Array<ArrayBuffer> | null, object, number, RegExp]>([
    ['no file', {}, null, {}, 400, /file: this field is required/],
    ['a form of times', { response_format: 'srt' }, new Uint8Array(9), {}, 400, /srt needs times/],
    ['times', { 'timestamp_granularities[]': 'word' }, new Uint8Array(9), {}, 400, /timestamp_granularities/],
    [
      'a temperature that is none',
      { temperature: 'hot' },
      new Uint8Array(9),
      {},
      400,
      /temperature: expected a number/,
    ],
    [
      'a stream that is none',
      { stream: 'yes' },
      new Uint8Array(9),
      {},
      400,
      /stream: expected true or false/,
    ],
    [
      'too large a sound',
      {},
      new Uint8Array(5000),
      { maxBodyBytes: 4000 },
      413,
      /file: expected at most 4000 bytes/,
    ],
  ])('refuses %s', async (_, fields, bytes, options, status, message) => {
    const answer = await post(fields, bytes, options);
    expect(answer.status).toBe(status);
    expect(answer.text).toMatch(message);
    expect(answer.calls).toEqual([]);
  });

  it.each([['json'], ['text']])('counts the tokens of an answer as %s', async (response_format) => {
    const service = createMemoryService();
    const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
    const createCompletion = async (request: ChatCompletionRequest) => ({
      ...(await service.createCompletion(request)),
      usage,
    });
    const counting = Object.assign(Object.create(service), { createCompletion });
    const handler = createHandler(counting, { tokens: [{ token: 'a', tokensPerMinute: 1 }] });
    const ask = () => {
      const body = new FormData();
      body.append('response_format', response_format);
      body.append('file', new Blob([new Uint8Array(9)]), 'speech.wav');
      return handler(new Request(PATH, { method: 'POST', body, headers: { authorization: 'Bearer a' } }));
    };
    expect((await ask()).status).toBe(200);
    expect((await ask()).status).toBe(429);
  });

  it('refuses another body', async () => {
    const { handler } = openHandler();
    const response = await handler(
      new Request(PATH, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }),
    );
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(/expected multipart\/form-data/);
  });
});
