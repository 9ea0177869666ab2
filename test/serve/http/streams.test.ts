/** Streams over a socket: slow readers, readers that leave, errors on the way, the server's end. */
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { connect, type ServeOptions, type Server, serve } from '../../../src/serve/http/index.ts';
import {
  createMemoryService,
  type MemoryService,
  type MemoryServiceOptions,
} from '../../fakes/memory-service.ts';
import { HELLO } from './exchange.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function open(
  memory: MemoryServiceOptions = {},
  options: ServeOptions = {},
): Promise<{ server: Server; service: MemoryService }> {
  const service = createMemoryService(memory);
  const server = await serve(service, options);
  closers.push(() => server.close());
  return { server, service };
}

/** A streaming request whose response is not read. */
async function begin(url: string): Promise<http.IncomingMessage> {
  const request = http.request(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  });
  request.end(JSON.stringify({ ...HELLO, stream: true }));
  request.on('error', () => {}); // the connection is cut by either side
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.pause();
  return response;
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of response) text += part;
  return text;
}

describe('a stream', () => {
  it('is not made faster than it is read', async () => {
    const pieces = Array.from({ length: 20_000 }, (_, i) => `${i} ${'x'.repeat(1000)}\n`); // 20 MB
    const { server, service } = await open({ pieces });
    const response = await begin(server.url);
    await sleep(300); // real time: the buffers of two sockets fill
    const madeWhilePaused = service.made();
    await sleep(200);
    expect(service.made()).toBe(madeWhilePaused);
    expect(madeWhilePaused).toBeLessThan(10_000); // what the buffers of two sockets hold
    const text = await textOf(response);
    expect(service.made()).toBe(20_000);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(text.match(/"finish_reason":"stop"/g)).toHaveLength(1);
  });

  it('ends its request when the reader leaves', async () => {
    const { server, service } = await open({ pieces: Array(10_000).fill('x'), pieceMs: 1 });
    const response = await begin(server.url);
    expect(service.active()).toBe(1);
    response.destroy();
    await expect.poll(service.active, { interval: 5 }).toBe(0);
    expect(service.made()).toBeLessThan(1000);
  });

  it('is forgotten when its reader leaves between two parts', async () => {
    const { server, service } = await open({ pieces: Array(20_000).fill('x'.repeat(1000)) });
    const response = await begin(server.url);
    const [part] = (await once(response.resume(), 'data')) as [Buffer];
    response.pause();
    const { id } = JSON.parse(part.toString().slice('data: '.length).split('\n')[0]!);
    await sleep(300); // real time: the buffers of two sockets fill, and the next part waits
    response.destroy();
    await expect.poll(service.active, { interval: 5 }).toBe(0);
    const control = await fetch(`${server.url}/v1/chat/completions/control`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, action: 'reasoning_end' }),
    });
    expect(await control.json()).toEqual({
      success: false,
      message: 'no stream with this id is running',
    });
  });

  it('that nobody reads is cut off when time is up', async () => {
    const { server, service } = await open(
      { pieces: Array(20_000).fill('x'.repeat(1000)) },
      { requestTimeoutMs: 100 },
    );
    const response = await begin(server.url);
    await expect.poll(service.active, { interval: 5 }).toBe(0);
    await expect(textOf(response)).rejects.toThrow('aborted');
  });

  it('that takes too long ends with an error as its last event', async () => {
    const { server } = await open({ pieces: Array(10_000).fill('x'), pieceMs: 5 }, { requestTimeoutMs: 50 });
    const text = await textOf(await begin(server.url));
    const events = text.trimEnd().split('\n\n');
    expect(events.at(-1)).toBe('data: [DONE]');
    expect(JSON.parse(events.at(-2)!.slice('data: '.length))).toMatchObject({ error: { code: 'TIMEOUT' } });
    await using client = connect({ baseUrl: server.url });
    const stream = await client.createCompletion({ ...HELLO, stream: true } as never);
    const read = (async () => {
      for await (const _ of stream as never as AsyncIterable<unknown>);
    })();
    await expect(read).rejects.toMatchObject({ code: 'TIMEOUT', status: 408 });
  });
});

describe('a request that is no stream', () => {
  it('is ended when the client leaves', async () => {
    const { server, service } = await open({ pieces: Array(10_000).fill('x'), pieceMs: 1 });
    const controller = new AbortController();
    const request = fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(HELLO),
      headers: { 'content-type': 'application/json' },
      signal: controller.signal,
    });
    await expect.poll(service.active, { interval: 5 }).toBe(1);
    controller.abort();
    await expect(request).rejects.toThrow('aborted');
    await expect.poll(service.active, { interval: 5 }).toBe(0);
  });
});

describe('a client that has closed its side', () => {
  it.each([
    ['HTTP/1.1', false],
    ['HTTP/1.1', true],
    ['HTTP/1.0', false],
    ['HTTP/1.0', true],
  ])('gets its answer: %s, stream %s', async (version, stream) => {
    const { server, service } = await open({ pieces: Array(10).fill('x'), pieceMs: 40 });
    const body = JSON.stringify({ ...HELLO, stream });
    const { port } = new URL(server.url);
    const socket = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    socket.end(
      `POST /v1/chat/completions ${version}\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    let text = '';
    for await (const part of socket) text += part;
    expect(text).toContain('HTTP/1.1 200 OK');
    expect(text).toContain(stream ? 'data: [DONE]' : '"content":"xxxxxxxxxx"');
    expect(service.made()).toBe(10);
  });
});

describe('closing the server', () => {
  it('lets what runs finish, and takes nothing new', async () => {
    const { server } = await open({ pieces: Array(20).fill('x'), pieceMs: 10 });
    const response = await begin(server.url);
    const closed = server.close();
    await expect(fetch(`${server.url}/health`)).rejects.toThrow();
    const text = await textOf(response);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(text.match(/"content":"x"/g)).toHaveLength(20);
    await closed;
    await server.close();
  });

  it('ends what does not finish in time, and says so', async () => {
    const { server, service } = await open({ pieces: Array(10_000).fill('x'), pieceMs: 5 }, { graceMs: 50 });
    const response = await begin(server.url);
    const closed = server.close();
    expect(await textOf(response)).toContain('"code":"CLOSED"');
    await closed;
    expect(service.active()).toBe(0);
  });

  it('cuts off who does not read', async () => {
    const { server } = await open({ pieces: Array(20_000).fill('x'.repeat(1000)) }, { graceMs: 20 });
    const response = await begin(server.url);
    await server.close();
    await expect(textOf(response)).rejects.toThrow('aborted');
  });
});

describe('listening', () => {
  it('is for this machine alone without tokens', async () => {
    const service = createMemoryService();
    await expect(serve(service, { host: '0.0.0.0' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'tokens',
    });
    const server = await serve(service, { host: '0.0.0.0', tokens: ['secret'] });
    await server.close();
  });

  it('says when it cannot', async () => {
    const { server } = await open();
    const port = Number(new URL(server.url).port);
    await expect(serve(createMemoryService(), { port })).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
  });

  it('takes targets in the absolute form, and paths with two slashes', async () => {
    const { server } = await open();
    const { port } = new URL(server.url);
    for (const [path, status] of [
      [`http://127.0.0.1:${port}/health`, 200],
      ['//health', 200],
      ['http://elsewhere.example/v1/models', 401], // its host counts: who has no token asks this machine by its name
      ['ftp:', 400],
      ['http://', 400],
    ] as const) {
      const request = http.request({ port, path }).end();
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      response.resume();
      expect(response.statusCode, path).toBe(status);
    }
  });

  it('answers a Host header that cannot be read', async () => {
    const { server } = await open();
    const { port } = new URL(server.url);
    for (const host of ['a b', '[', 'x:99999999', '%%%']) {
      const request = http.request({ port, path: '/health', headers: { host } }).end();
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      response.resume();
      expect(response.statusCode, host).toBe(400);
    }
  });
});
