/** Scripted servers -> retries and errors of the client. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ChatCompletionRequest } from '../../../src/protocol/index.ts';
import type { Service } from '../../../src/protocol/service/service.ts';
import { type ConnectOptions, connect, serve } from '../../../src/serve/http/index.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';

const HELLO: ChatCompletionRequest = { messages: [{ role: 'user', content: 'Hello there' }] };
const ANSWER = { id: 'chatcmpl-1', choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' } }] };
const ID = '00000000-0000-4000-8000-000000000000';
const EMPTY = { object: 'list', data: [], has_more: false, first_id: null, last_id: null };

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

type Reply = (request: http.IncomingMessage, response: http.ServerResponse) => void;

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
const events =
  (...data: string[]): Reply =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(data.map((line) => `data: ${line}\n\n`).join(''));
  };
const hangUp: Reply = (request) => request.socket.destroy();

/** A client of a server that gives these replies, one to a request, the last one for ever. */
async function against(
  replies: readonly Reply[],
  options: Partial<ConnectOptions> = {},
): Promise<{ client: Service; requests: string[]; bodies: string[] }> {
  const requests: string[] = [];
  const bodies: string[] = [];
  const server = http.createServer(async (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    let body = '';
    for await (const part of request) body += part;
    bodies.push(body);
    replies[Math.min(requests.length, replies.length) - 1]!(request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  closers.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return { client: connect({ baseUrl: `http://127.0.0.1:${port}`, ...options }), requests, bodies };
}

async function read(client: Service): Promise<string> {
  let text = '';
  for await (const { choices } of await client.createCompletion({ ...HELLO, stream: true }))
    text += choices[0]?.delta.content ?? '';
  return text;
}

describe('a call is tried again', () => {
  it.each<[string, Reply]>([
    ['a server that is busy', json(429, { error: { message: 'busy' } }, { 'retry-after': '0' })],
    ['a server that is starting', json(503, {}, { 'retry-after': '0' })],
    ['a connection that breaks', hangUp],
    ['a gateway that fails', json(502, 'no')],
  ])('after %s', async (_, reply) => {
    const { client, requests } = await against([reply, json(200, ANSWER)]);
    expect(await client.createCompletion(HELLO)).toEqual(ANSWER);
    expect(requests).toHaveLength(2);
  });

  it('only so often', async () => {
    const { client, requests } = await against([json(503, {}, { 'retry-after': '0' })], { maxRetries: 3 });
    await expect(client.createCompletion(HELLO)).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
    expect(requests).toHaveLength(4);
  });

  it('not where it could have been done already', async () => {
    const group = { model_id: ID, trajectory_groups: [] };
    for (const call of [
      (client: Service) => client.train(group),
      (client: Service) => client.models.log(ID, { trajectory_groups: [] }),
      (client: Service) => client.models.create({ base_model: 'x' }),
      (client: Service) => client.models.delete(ID),
      (client: Service) => client.checkpoints.delete(ID, { steps: [1] }),
    ]) {
      const { client, requests } = await against([hangUp]);
      await expect(call(client)).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
      expect(requests).toHaveLength(1);
    }
  });

  it('where nothing was listening', async () => {
    const server = await serve(createMemoryService());
    await server.close();
    let calls = 0;
    const counting: typeof fetch = (...args) => {
      calls += 1;
      return fetch(...args);
    };
    const client = connect({ baseUrl: server.url, fetch: counting });
    const error = client.train({ model_id: ID, trajectory_groups: [] });
    await expect(error).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    expect(calls).toBe(3);
  });

  it('not after a fault of the caller', async () => {
    const { client, requests } = await against([json(400, { error: { message: 'no', code: 400 } })]);
    await expect(client.createCompletion(HELLO)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: 'no',
    });
    expect(requests).toHaveLength(1);
  });

  it('not while the caller gives up', async () => {
    const { client } = await against([json(503, {}, { 'retry-after': '20' })]);
    const signal = AbortSignal.timeout(30);
    await expect(client.createCompletion(HELLO, { signal })).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

describe('an answer that takes too long', () => {
  it('is given up', async () => {
    const { client } = await against([() => {}], { timeoutMs: 30 });
    await expect(client.createCompletion(HELLO)).rejects.toMatchObject({ code: 'TIMEOUT' });
    await expect(read(client)).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  it('is not a stream that has begun', async () => {
    const server = await serve(createMemoryService({ pieces: ['a', 'b', 'c'], pieceMs: 40 }));
    closers.push(() => server.close());
    expect(await read(connect({ baseUrl: server.url, timeoutMs: 60 }))).toBe('abc');
  });
});

describe('a server that is not ours', () => {
  it.each<[string, Reply, object]>([
    [
      'vLLM',
      json(404, { error: { message: 'no model', type: 'NotFoundError', param: null, code: 404 } }),
      { code: 'MODEL_NOT_FOUND', message: 'no model' },
    ],
    [
      'an older vLLM',
      json(401, { error: 'Unauthorized' }),
      { code: 'UNAUTHORIZED', message: 'Unauthorized' },
    ],
    [
      'llama.cpp',
      json(500, { error: { code: 500, message: 'failed', type: 'server_error' } }),
      { code: 'BACKEND_FAILED', message: 'failed' },
    ],
    [
      'FastAPI',
      json(422, { detail: [{ loc: ['body', 'n'], msg: 'must be', type: 'int' }] }),
      { code: 'INVALID_REQUEST', param: 'body.n' },
    ],
    [
      'text',
      (_, response) => response.writeHead(403).end('go away'),
      { code: 'FORBIDDEN', message: 'go away' },
    ],
    ['nothing', (_, response) => response.writeHead(418).end(), { code: 'INVALID_REQUEST' }],
    ['a page', (_, response) => response.writeHead(200).end('<html>'), { code: 'NETWORK_FAILED' }],
  ])('makes errors as ours: %s', async (_, reply, expected) => {
    const { client } = await against([reply]);
    await expect(client.createCompletion(HELLO)).rejects.toMatchObject(expected);
  });

  it.each<[string, Reply]>([
    ['as vLLM has none', json(404, { detail: 'Not Found' })],
    ['as llama.cpp has none', json(404, { error: { message: 'File Not Found', code: 404 } })],
    ['as a plain server has none', (_, response) => response.writeHead(404).end('404 page not found')],
    ['by the method', json(405, { detail: 'Method Not Allowed' })],
  ])('and lacks the preview endpoints, %s, is told so', async (_, reply) => {
    const { client } = await against([reply]);
    for (const call of [
      () => client.models.list(),
      () => client.models.create({ base_model: 'x' }),
      () => client.checkpoints.list(ID),
      () => client.train({ model_id: ID, trajectory_groups: [] }),
      () => client.trainingJobs.retrieve(ID),
    ])
      await expect(call()).rejects.toMatchObject({
        code: 'UNSUPPORTED',
        message: expect.stringMatching(/^the server has no endpoint \/v1\/preview\//),
      });
  });

  it('and has them, is understood', async () => {
    const { client } = await against([json(404, { detail: 'model not found' })]);
    await expect(client.models.retrieve(ID)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'model not found',
    });
  });
});

describe('a stream', () => {
  const chunk = (content: string): string => JSON.stringify({ choices: [{ index: 0, delta: { content } }] });

  it('is read whatever its pieces', async () => {
    const { client } = await against([
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const bytes = Buffer.from(
          `: hello\r\n\r\ndata: ${chunk('Grüße ')}\r\n\r\ndata:${chunk('🌍')}\n\ndata: [DONE]\n\n`,
        );
        for (const byte of bytes) response.write(Buffer.of(byte));
        response.end();
      },
    ]);
    expect(await read(client)).toBe('Grüße 🌍');
  });

  it.each([
    ['in one piece', 1000],
    ['in pieces of two bytes', 2],
    ['byte by byte', 1],
  ])('may begin with a byte order mark, %s', async (_, size) => {
    const { client } = await against([
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const bytes = Buffer.from(`\uFEFFdata: ${chunk('\uFEFFa')}\n\ndata: [DONE]\n\n`);
        for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size));
        response.end();
      },
    ]);
    expect(await read(client)).toBe('\uFEFFa'); // only the mark at the very beginning is none of the text
  });

  it.each<[string, Reply, object]>([
    [
      'breaks off',
      events(chunk('a')),
      { code: 'NETWORK_FAILED', message: 'the stream broke off before its end' },
    ],
    ['holds no JSON', events('{'), { code: 'NETWORK_FAILED' }],
    ['is no stream', json(200, ANSWER), { code: 'NETWORK_FAILED' }],
    [
      'holds an error of vLLM',
      events(chunk('a'), JSON.stringify({ error: { message: 'no', code: 400 } })),
      { code: 'INVALID_REQUEST', message: 'no' },
    ],
    [
      'holds one of ours',
      events(JSON.stringify({ error: { message: 'no', code: 'NO_ALLOWED_TOKEN' } })),
      { code: 'NO_ALLOWED_TOKEN' },
    ],
  ])('that %s is an error', async (_, reply, expected) => {
    const { client, requests } = await against([reply]);
    await expect(read(client)).rejects.toMatchObject(expected);
    expect(requests).toHaveLength(1);
  });

  it('whose connection breaks is an error', async () => {
    const { client } = await against([
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(`data: ${chunk('a')}\n\n`, () => response.destroy());
      },
    ]);
    await expect(read(client)).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
  });
});

describe('a connection', () => {
  it('is used again after a stream', async () => {
    const sockets = new Set<unknown>();
    const chunk = JSON.stringify({ choices: [{ index: 0, delta: { content: 'a' } }] });
    const reply: Reply = (request, response) => {
      sockets.add(request.socket);
      events(chunk, '[DONE]')(request, response);
    };
    const { client } = await against([reply]);
    for (let i = 0; i < 3; i++) {
      expect(await read(client)).toBe('a');
      await new Promise((resolve) => setTimeout(resolve, 20)); // real time: the socket becomes free after the last event
    }
    expect(sockets.size).toBe(1);
  });

  it('is not led elsewhere', async () => {
    const { client, requests } = await against([json(307, {}, { location: '/other' })], { maxRetries: 0 });
    await expect(client.createCompletion(HELLO)).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
      message: expect.stringContaining('redirects'),
    });
    expect(requests).toEqual(['POST /v1/chat/completions']);
  });

  it('can be made by a fetch of the caller', async () => {
    const chunk = JSON.stringify({ choices: [{ index: 0, delta: { content: 'a' } }] });
    const { client } = await against(
      [json(200, ANSWER), events(chunk, '[DONE]'), json(307, {}, { location: '/other' })],
      {
        fetch,
        maxRetries: 0,
      },
    );
    expect(await client.createCompletion(HELLO)).toEqual(ANSWER);
    expect(await read(client)).toBe('a');
    await expect(client.createCompletion(HELLO)).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
  });
});

describe('what is sent', () => {
  it('has every digit of a seed, and the headers that were asked for', async () => {
    const { client, requests, bodies } = await against([json(200, ANSWER)], { apiKey: 'k' });
    await client.createCompletion({ ...HELLO, seed: 9_223_372_036_854_775_807n });
    expect(requests).toEqual(['POST /v1/chat/completions']);
    expect(bodies[0]).toContain('"seed":9223372036854775807}');
  });

  it('is no function', async () => {
    const { client, requests } = await against([json(200, ANSWER)]);
    const request = { ...HELLO, logits_processors: [() => {}] } as never;
    await expect(client.createCompletion(request)).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      param: 'logits_processors.0',
    });
    expect(requests).toEqual([]);
  });

  it('is a list query without what was not given', async () => {
    const { client, requests } = await against([json(200, EMPTY)]);
    await client.models.list({ after: 'a b', limit: 3, order: null });
    await client.checkpoints.list('x/y');
    expect(requests).toEqual([
      'GET /v1/preview/models?after=a+b&limit=3',
      'GET /v1/preview/models/x%2Fy/checkpoints',
    ]);
  });
});

it('a training job that fails says why', async () => {
  const { OnpolicyError } = await import('../../../src/errors.ts');
  const failure = new OnpolicyError('OUT_OF_MEMORY', 'too large');
  const server = await serve(createMemoryService({ failure }));
  closers.push(() => server.close());
  await using client = connect({ baseUrl: server.url, pollMs: 2 });
  const { id } = await client.models.create({ base_model: 'x' });
  const job = await client.train({ model_id: id, trajectory_groups: [] });
  await expect(job.done).rejects.toMatchObject({ code: 'OUT_OF_MEMORY', message: 'too large' });
  expect(job.status).toBe('failed');
});

it('options that are wrong are named', () => {
  for (const [options, param] of [
    [{}, 'baseUrl'],
    [{ baseUrl: 'localhost:80' }, 'baseUrl'],
    [{ baseUrl: 'http://a', key: 'x' }, 'key'],
    [{ baseUrl: 'http://a', timeoutMs: -1 }, 'timeoutMs'],
  ] as const)
    expect(() => connect(options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', param }),
    );
});
