/** Uploads that break off, at any byte and in any way -> no file and no descriptor is left. */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { pending } from '../../../src/common/index.ts';
import { serve } from '../../../src/serve/http/index.ts';
import { partsOf } from '../../../src/serve/http/message-parts.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';
import { openHandler } from './exchange.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-uploads-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

const BOUNDARY = 'xxxx';
const PART = `--${BOUNDARY}\r\ncontent-disposition: form-data; name=`;
const FILE = `${PART}"file"; filename="a.jsonl"\r\n\r\n${'a line\n'.repeat(20)}\r\n`;
const PURPOSE = `${PART}"purpose"\r\n\r\nbatch\r\n`;
const END = `--${BOUNDARY}--\r\n`;
const HEADERS = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };

const filesIn = (folder: string): string[] => fs.readdirSync(path.join(folder, 'files'));
/** Open descriptors of a folder's files. */
function descriptors(folder: string): string[] {
  if (process.platform !== 'linux') return [];
  return fs.readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [fs.readlinkSync(`/proc/self/fd/${fd}`)].filter((file) => file.startsWith(folder));
    } catch {
      return []; // closed since
    }
  });
}
const filesOpen = (folder: string): string[] =>
  descriptors(folder).filter((file) => file.includes('/files/'));

it.each(['breaks off', 'says nothing more', 'ends early'])('a body that %s', async (how) => {
  const batchFolder = path.join(root, how);
  const { handler } = openHandler({ batchFolder, bodyTimeoutMs: how === 'says nothing more' ? 30 : 10_000 });
  const text = FILE + PURPOSE + END;
  const upload = async (bytes: number) => {
    let isSent = false;
    const body = new ReadableStream({
      pull: (controller) => {
        if (!isSent) controller.enqueue(Buffer.from(text.slice(0, bytes)));
        else if (how === 'breaks off') controller.error(new Error('cut'));
        else if (how === 'ends early') controller.close();
        else return new Promise(() => {});
        isSent = true;
        return undefined;
      },
    });
    const init = { method: 'POST', headers: HEADERS, body, duplex: 'half' } as RequestInit;
    return (await handler(new Request('http://localhost/v1/files', init))).status;
  };
  const cuts = Array.from({ length: 200 }, (_, i) => 1 + Math.floor((i * (text.length - END.length)) / 200));
  for (let i = 0; i < cuts.length; i += 20)
    for (const status of await Promise.all(cuts.slice(i, i + 20).map(upload)))
      expect([400, 408, 499]).toContain(status);
  expect(filesIn(batchFolder)).toEqual([]);
  await expect.poll(() => filesOpen(batchFolder)).toEqual([]); // a file that was being opened is closed later
  if (how === 'ends early') expect(await upload(text.length)).toBe(200);
});

it('a form without a purpose', async () => {
  const batchFolder = path.join(root, 'purpose');
  const { handler } = openHandler({ batchFolder });
  const init = { method: 'POST', headers: HEADERS, body: FILE + END };
  expect((await handler(new Request('http://localhost/v1/files', init))).status).toBe(400);
  expect(filesIn(batchFolder)).toEqual([]);
});

it('connections of a server that are cut', async () => {
  const batchFolder = path.join(root, 'server');
  const server = await serve(createMemoryService(), { port: 0, batchFolder });
  const cut = (bytes: number): Promise<void> =>
    new Promise((resolve) => {
      const length = String(FILE.length + 1_000_000);
      const request = http.request(`${server.url}/v1/files`, {
        method: 'POST',
        headers: { ...HEADERS, 'content-length': length },
      });
      request.on('error', () => {});
      request.on('close', () => resolve());
      request.write(FILE.slice(0, bytes), () => setTimeout(() => request.destroy(), 20));
    });
  await Promise.all(Array.from({ length: 100 }, (_, i) => cut(100 + i)));
  await expect.poll(() => filesIn(batchFolder)).toEqual([]);
  await expect.poll(() => filesOpen(batchFolder)).toEqual([]);
  await server.close();
});

it('a connection that is closed before its body is read', async () => {
  const read = pending<void>();
  const server = http.createServer((message) => {
    message.on('error', () => {});
    message.once('close', () =>
      partsOf(message, () => {})
        .next()
        .then(() => read.resolve(), read.reject),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const { port } = server.address() as AddressInfo;
  const request = http.request({ port, method: 'POST', headers: { 'content-length': 10 } });
  request.on('error', () => {});
  request.write('half', () => setTimeout(() => request.destroy(), 20));
  await expect(read.promise).rejects.toThrow('aborted');
  await new Promise((resolve) => server.close(resolve));
});
