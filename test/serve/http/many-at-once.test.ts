/** Many requests on one connection or of one signal -> no warning; a report -> a page that no other page may frame. */
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { connect, createHandler, serve } from '../../../src/serve/http/index.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';
import { ask, HELLO } from './exchange.ts';

/** Warnings of Node while a test runs. */
function watchWarnings(): string[] {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  return warnings;
}

it('thirty pipelined requests', async () => {
  const warnings = watchWarnings();
  const server = await serve(createMemoryService({ pieceMs: 5 }), { port: 0 });
  const body = JSON.stringify(HELLO);
  const request = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1');
  let text = '';
  socket.on('data', (part) => {
    text += part.toString();
  });
  socket.write(request.repeat(30));
  await expect.poll(() => text.match(/HTTP\/1\.1 200/g)?.length, { timeout: 10_000 }).toBe(30);
  socket.destroy();
  await server.close();
  await sleep(10);
  expect(warnings).toEqual([]);
});

it('thirty requests of one signal', async () => {
  const warnings = watchWarnings();
  const server = await serve(createMemoryService({ pieceMs: 5 }), { port: 0 });
  const client = connect({ baseUrl: server.url });
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 30 }, () => client.createCompletion(HELLO as never, { signal })));
  await client.close();
  await server.close();
  await sleep(10);
  expect(warnings).toEqual([]);
});

it('a report is framed by no page', async () => {
  const handler = createHandler({ ...createMemoryService(), report: async () => '<p>' });
  const { headers } = await ask(handler, 'GET', '/v1/preview/models/x/report');
  expect(headers.get('content-security-policy')).toMatch(/frame-ancestors 'none'/);
  expect(headers.get('x-frame-options')).toBe('DENY');
});
