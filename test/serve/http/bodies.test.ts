/** Bodies of requests -> responses: their limits, and fields that nobody knows. */
import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createHandler } from '../../../src/serve/http/index.ts';
import { ask, HELLO, openHandler } from './exchange.ts';

/** Newer releases of Node have it. */
const { zstdCompressSync: ZSTD } = zlib as { zstdCompressSync?: (text: Buffer) => Buffer };
const ID = '00000000-0000-4000-8000-000000000000';

describe('bodies', () => {
  const { handler } = openHandler({
    maxBodyBytes: 1000,
    maxMessages: 3,
    maxTrajectories: 2,
    bodyTimeoutMs: 50,
  });
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    ask(handler, 'POST', '/v1/chat/completions', { body, headers });

  it('that are no JSON are faults of the client', async () => {
    for (const body of ['', '{', 'null', '[]', '"x"', '5', '{"messages":[]}{}'])
      expect((await post(body)).status, body).toBe(400);
    expect((await post(HELLO, { 'content-type': 'text/html' })).status).toBe(400);
    expect((await post(HELLO, { 'content-type': 'application/x-www-form-urlencoded' })).status).toBe(400);
    expect((await post(HELLO, { 'content-type': 'application/json; charset=utf-8' })).status).toBe(200);
  });

  it.each<[string, (text: Buffer) => Buffer]>([
    ['gzip', zlib.gzipSync],
    ['GZIP', zlib.gzipSync],
    ['deflate', zlib.deflateSync],
    ['br', zlib.brotliCompressSync],
    ...(ZSTD ? [['zstd', ZSTD] as [string, (text: Buffer) => Buffer]] : []),
  ])('may be compressed: %s', async (encoding, compress) => {
    const send = async (body: Buffer) => {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
      const url = 'http://localhost/v1/chat/completions';
      const response = await handler(
        new Request(url, { method: 'POST', headers, body: new Uint8Array(body) }),
      );
      return [response.status, (await response.json()) as { error?: { message: string } }] as const;
    };
    const bytes = (value: unknown) => compress(Buffer.from(JSON.stringify(value)));
    expect((await send(bytes(HELLO)))[0]).toBe(200);
    const bomb = { messages: [{ role: 'user', content: 'x'.repeat(10_000_000) }] };
    expect((await send(bytes(bomb)))[0]).toBe(413);
    const [status, { error }] = await send(Buffer.from(JSON.stringify(HELLO)));
    expect([status, error!.message]).toEqual([400, 'the body is not compressed as Content-Encoding says']);
    expect((await send(bytes(HELLO).subarray(0, -6)))[0]).toBe(400);
  });

  it('name what they may be compressed with', async () => {
    const { status, body } = await post(HELLO, { 'content-encoding': 'compress' });
    expect(status).toBe(400);
    expect(body).toMatchObject({
      error: {
        message: expect.stringMatching(/^Content-Encoding: expected gzip, .*got compress$/) as string,
      },
    });
  });

  it('need no type', async () => {
    const body = JSON.stringify(HELLO);
    const url = 'http://localhost/v1/chat/completions';
    for (const headers of [{}, { 'content-type': '' }]) // fetch adds text/plain by itself
      expect((await handler(new Request(url, { method: 'POST', body, headers }))).status).toBe(200);
  });

  it('ask for as many choices as the server gives', async () => {
    const many = openHandler().handler;
    const few = openHandler({ maxChoices: 2 }).handler;
    const statusOf = async (of: typeof few, n: number) => {
      const { status, body } = await ask(of, 'POST', '/v1/chat/completions', { body: { ...HELLO, n } });
      return [status, (body as { error?: { param: string } }).error?.param];
    };
    expect(await statusOf(many, 128)).toEqual([200, undefined]);
    expect(await statusOf(many, 129)).toEqual([400, 'n']);
    expect(await statusOf(few, 2)).toEqual([200, undefined]);
    expect(await statusOf(few, 3)).toEqual([400, 'n']);
  });

  it('have a largest size', async () => {
    const answer = await post({ messages: [{ role: 'user', content: 'x'.repeat(1000) }] });
    expect(answer).toMatchObject({ status: 413, body: { error: { code: 'TOO_LARGE' } } });
    expect(answer.headers.get('connection')).toBe('close');
  });

  it.each([
    ['/v1/embeddings', { input: ['a', 'b'] }, 'input'],
    ['/v1/rerank', { query: 'a', documents: ['a', 'b'] }, 'documents'],
    ['/v1/score', { text_1: ['a', 'b'], text_2: ['a', 'b'] }, 'text_1'],
    ['/v1/score', { text_1: 'a', text_2: ['a', 'b'] }, 'text_2'],
    ['/v1/classify', { input: ['a', 'b'] }, 'input'],
  ])('of %s have a largest number of texts: %j', async (path, body, field) => {
    const errorOf = async (maxInputs: number) => {
      const answer = await ask(openHandler({ maxInputs }).handler, 'POST', path, { body });
      return (answer.body as { error: { code: string; message: string } }).error;
    };
    expect(await errorOf(1)).toMatchObject({
      code: 'TOO_LARGE',
      message: expect.stringMatching(new RegExp(`^${field}:`)),
    });
    expect((await errorOf(2)).code).toBe('UNSUPPORTED'); // by the service in memory
  });

  it('have a largest number of messages and of trajectories', async () => {
    const message = HELLO.messages[0];
    expect((await post({ messages: [message, message, message] })).status).toBe(200);
    expect((await post({ messages: [message, message, message, message] })).status).toBe(413);
    const group = { trajectories: [{}, {}] };
    const body = { trajectory_groups: [group, { trajectories: [{}] }] };
    for (const path of [`/v1/preview/models/${ID}/log`, '/v1/preview/training-jobs'])
      expect((await ask(handler, 'POST', path, { body })).status).toBe(413);
  });

  it('that never end are given up', async () => {
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{')),
    });
    const request = new Request('http://localhost/v1/chat/completions', {
      method: 'POST',
      body,
      duplex: 'half',
    } as RequestInit);
    const response = await handler(request);
    expect(response.status).toBe(408);
    expect(await response.json()).toMatchObject({ error: { code: 'TIMEOUT' } });
  });

  it('may hold fields that nobody knows', async () => {
    const messages = [{ role: 'user', content: 'Hi', weight: 1 }];
    const body = `{"messages":${JSON.stringify(messages)},"foo":1,"__proto__":{"n":2},"stream_options":null}`;
    expect(await post(body)).toMatchObject({
      status: 200,
      body: { choices: [{ message: { content: 'Hi' } }] },
    });
  });
});

describe('fields that nobody knows', () => {
  const post = (of: ReturnType<typeof openHandler>['handler'], more: object) =>
    ask(of, 'POST', '/v1/chat/completions', { body: { ...HELLO, ...more } });

  it('are ignored, and listed in a header', async () => {
    const { handler } = openHandler();
    const answer = await post(handler, {
      mystery: 1,
      'a\nb': 2,
      messages: [{ role: 'user', content: 'a', flavour: 'x' }],
    });
    expect(answer.status).toBe(200);
    const listed = answer.headers.get('x-ignored-fields')!.split(', ');
    expect(listed.sort()).toEqual(['a%0Ab', 'messages.0.flavour', 'mystery']);
    expect((await post(handler, {})).headers.get('x-ignored-fields')).toBeNull();
  });

  it.each(['temprature', 'maxTokens', 'top-p', 'Stream', 'structured_output', 'reponse_format'])(
    'are refused when they are misspelt: %s',
    async (name) => {
      const { status, body } = await post(openHandler().handler, { [name]: 1 });
      expect([status, (body as { error: { param: string } }).error.param]).toEqual([400, name]);
    },
  );

  it.each(['id', 'foo', 'best_of', 'frequency', 'provider', 'caching'])(
    'are no misspelt ones: %s',
    async (name) => {
      const answer = await post(openHandler().handler, { [name]: 1 });
      expect([answer.status, answer.headers.get('x-ignored-fields')]).toEqual([200, name]);
    },
  );

  it('are refused where the server says so', async () => {
    const { handler } = openHandler({ unknownFields: 'refuse' });
    const { status, body } = await post(handler, { mystery: 1 });
    expect([status, (body as { error: { param: string } }).error.param]).toEqual([400, 'mystery']);
    expect((await post(handler, {})).status).toBe(200);
  });

  it.each<[string, unknown, object]>([
    ['guided_json', { type: 'string' }, { structured_outputs: { json: { type: 'string' } } }],
    ['guided_regex', 'a+', { structured_outputs: { regex: 'a+' } }],
    ['guided_choice', ['a', 'b'], { structured_outputs: { choice: ['a', 'b'] } }],
    ['guided_grammar', 'root ::= "a"', { structured_outputs: { grammar: 'root ::= "a"' } }],
    ['vllm_xargs', { a: 1 }, { inference_xargs: { a: 1 } }],
  ])('%s means its successor', async (name, value, successor) => {
    const requests: object[] = [];
    const { service } = openHandler();
    const handler = createHandler({
      ...service,
      createCompletion: (async (request: object) => {
        requests.push(request);
        return await service.createCompletion(HELLO as never);
      }) as never,
    });
    expect((await post(handler, { [name]: value })).status).toBe(200);
    expect((await post(handler, { [name]: null })).status).toBe(200);
    expect(requests).toEqual([{ ...HELLO, ...successor }, HELLO]);
    const both = await post(handler, { [name]: value, ...successor });
    expect([both.status, (both.body as { error: { param: string } }).error.param]).toEqual([400, name]);
  });
});
