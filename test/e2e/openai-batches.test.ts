/** Files and batches of the official OpenAI client, unmodified, through restarts of the server. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI, { NotFoundError, toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BatchRow } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { type Server, serve } from '../../src/serve/http/index.ts';
import { lineOf } from '../serve/batch/fake-rows.ts';

const TOKENS = ['of-one-client', { token: 'of-another', scopes: ['complete' as const] }];

let home: string;
let runtime: Runtime;
let server: Server;
let client: OpenAI;

async function start(): Promise<void> {
  runtime = await createRuntime({ home, threads: 1 });
  server = await serve(runtime, { tokens: TOKENS, graceMs: 5000 });
  client = clientOf('of-one-client');
}

async function stop(): Promise<void> {
  await server.close();
  await runtime.close();
}

const clientOf = (apiKey: string): OpenAI =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });

beforeAll(async () => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-batches-'));
  await start();
});
afterAll(async () => {
  await stop();
  fs.rmSync(home, { recursive: true, force: true });
});

const upload = (lines: readonly string[], by = client) =>
  toFile(Buffer.from(lines.join('\n')), 'rows.jsonl').then((file) =>
    by.files.create({ file, purpose: 'batch' }),
  );
const begin = (input_file_id: string, by = client) =>
  by.batches.create({
    input_file_id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    metadata: { of: 'me' },
  });
const lines = (count: number, max_tokens = 8): string[] =>
  Array.from({ length: count }, (_, i) => lineOf(`id-${i}`, `Tell me a story about ${i}.`, { max_tokens }));

async function ended(id: string): Promise<OpenAI.Batch> {
  for (;;) {
    const batch = await client.batches.retrieve(id);
    if (['completed', 'failed', 'cancelled'].includes(batch.status)) return batch;
    await sleep(20);
  }
}

async function rowsOf(file: string): Promise<BatchRow[]> {
  const text = await (await client.files.content(file)).text();
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as BatchRow);
}

describe('files', () => {
  it('are kept, listed, read and deleted', async () => {
    const file = await upload(['{"a":1}', '{"ä":"😀"}']);
    expect(file).toMatchObject({
      object: 'file',
      bytes: 21,
      filename: 'rows.jsonl',
      purpose: 'batch',
      status: 'processed',
    });
    expect(await client.files.retrieve(file.id)).toEqual(file);
    expect(await (await client.files.content(file.id)).text()).toBe('{"a":1}\n{"ä":"😀"}');
    const others = [await upload(['1']), await upload(['2'])];
    const listed: string[] = [];
    for await (const { id } of await client.files.list({ limit: 2, order: 'asc' })) listed.push(id);
    expect(listed).toEqual([file.id, ...others.map(({ id }) => id)]);
    for (const { id } of [file, ...others])
      expect(await client.files.delete(id)).toEqual({ id, object: 'file', deleted: true });
    await expect(client.files.retrieve(file.id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(client.files.content('../../x')).rejects.toBeInstanceOf(NotFoundError);
  });

  it('of one client are hidden from another', async () => {
    const [one, other] = [clientOf('of-one-client'), clientOf('of-another')];
    const file = await upload(['1'], one);
    await expect(other.files.retrieve(file.id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(begin(file.id, other)).rejects.toBeInstanceOf(NotFoundError);
    expect((await other.files.list()).data).toEqual([]);
    const theirs = await upload(['2'], other);
    expect((await one.files.retrieve(theirs.id)).id).toBe(theirs.id); // it may do everything
    await one.files.delete(file.id);
    await one.files.delete(theirs.id);
  });

  it('that are faulty are refused', async () => {
    const bad = async (body: FormData | string, type?: string) => {
      const headers = { authorization: 'Bearer of-one-client', ...(type ? { 'content-type': type } : {}) };
      const answer = await fetch(`${server.url}/v1/files`, { method: 'POST', body, headers });
      return [answer.status, ((await answer.json()) as { error: { message: string } }).error.message];
    };
    const form = (parts: Record<string, string | Blob>): FormData => {
      const made = new FormData();
      for (const [name, value] of Object.entries(parts)) made.append(name, value);
      return made;
    };
    expect(await bad('{}', 'application/json')).toEqual([
      400,
      expect.stringContaining('expected multipart/form-data'),
    ]);
    expect(await bad('--x', 'multipart/form-data; boundary=x')).toEqual([
      400,
      expect.stringContaining('not a form'),
    ]);
    expect(await bad('x', 'multipart/form-data')).toEqual([400, expect.stringContaining('with a boundary')]);
    expect(await bad(form({ purpose: 'batch' }))).toEqual([400, 'file: this field is required']);
    expect(await bad(form({ file: new Blob(['x']) }))).toEqual([400, 'purpose: this field is required']);
    const strict = await serve(runtime, { maxFileBytes: 1000, batchFolder: path.join(home, 'strict') });
    const answer = await fetch(`${strict.url}/v1/files`, {
      method: 'POST',
      body: form({ purpose: 'batch', file: new Blob(['x'.repeat(5e6)]) }),
    });
    expect([answer.status, await answer.json()]).toEqual([
      413,
      { error: expect.objectContaining({ code: 'TOO_LARGE', param: 'file' }) },
    ]);
    await strict.close();
    for (const folder of ['batches', 'strict'])
      expect(fs.readdirSync(path.join(home, folder, 'files'))).toEqual([]); // nothing is left of any of them
  });
});

describe('a batch', () => {
  it('is answered row by row', async () => {
    const file = await upload(
      [...lines(20), 'no json', lineOf('a path', 'x', { model: '/etc/passwd' })],
      clientOf('of-another'),
    );
    const created = await begin(file.id, clientOf('of-another'));
    expect(created).toMatchObject({
      object: 'batch',
      endpoint: '/v1/chat/completions',
      input_file_id: file.id,
      completion_window: '24h',
      metadata: { of: 'me' },
      errors: null,
    });
    const batch = await ended(created.id);
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 22, completed: 20, failed: 2 },
    });
    const rows = await rowsOf(batch.output_file_id!);
    expect(rows.map((row) => row.custom_id).toSorted()).toEqual(
      lines(20)
        .map((_, i) => `id-${i}`)
        .toSorted(),
    );
    expect(rows[0]!.response).toMatchObject({
      status_code: 200,
      body: { object: 'chat.completion', usage: { completion_tokens: expect.any(Number) } },
    });
    const errors = await rowsOf(batch.error_file_id!);
    expect(
      errors.map(({ line, error, response }) => [line, error?.code ?? response?.status_code]).toSorted(),
    ).toEqual([
      [21, 'INVALID_REQUEST'],
      [22, 403], // the token may name no files
    ]);
    expect((await client.files.retrieve(batch.output_file_id!)).purpose).toBe('batch_output');
    await client.files.delete(file.id);
  });

  it('goes on when the server starts again', async () => {
    const file = await upload(lines(300, 16));
    const { id } = await begin(file.id);
    for (let stops = 0; stops < 2; stops++) {
      const before = (await client.batches.retrieve(id)).request_counts!.completed;
      while ((await client.batches.retrieve(id)).request_counts!.completed <= before) await sleep(5);
      await stop();
      await start();
    }
    const batch = await ended(id);
    expect(batch.errors).toBeNull();
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 300, completed: 300, failed: 0 },
    });
    const rows = await rowsOf(batch.output_file_id!);
    expect(new Set(rows.map((row) => row.custom_id)).size).toBe(300);
    expect(rows.length).toBe(300);
    expect(batch.error_file_id).toBeNull();
    const listed = (await client.batches.list()).data;
    expect(listed[0]).toEqual(batch);
  });

  it('that is cancelled keeps what is done; one behind it goes on', async () => {
    const file = await upload(lines(2000, 40));
    const [first, second] = [await begin(file.id), await begin((await upload(lines(3))).id)];
    while ((await client.batches.retrieve(first.id)).request_counts!.completed === 0) await sleep(5);
    await expect(client.files.delete(file.id)).rejects.toMatchObject({ status: 409 });
    expect((await client.batches.cancel(first.id)).status).toBe('cancelling');
    const batch = await ended(first.id);
    expect(batch.status).toBe('cancelled');
    const rows = await rowsOf(batch.output_file_id!);
    expect(rows.length).toBe(batch.request_counts!.completed);
    await expect(client.batches.cancel(first.id)).rejects.toMatchObject({ status: 409 });
    expect((await ended(second.id)).status).toBe('completed');
  });

  it('that asks for nothing there is is refused', async () => {
    await expect(begin('file-none')).rejects.toMatchObject({ status: 404, param: 'input_file_id' });
    const file = await upload(lines(1));
    await expect(
      client.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/nothing' as never,
        completion_window: '24h',
      }),
    ).rejects.toMatchObject({ status: 400, param: 'endpoint' });
  });

  it('needs no port', async () => {
    const inside = new OpenAI({ fetch: runtime.fetch, baseURL: 'http://in.process/v1', apiKey: 'any' });
    const file = await upload(lines(2), inside);
    const { id } = await begin(file.id, inside);
    while ((await inside.batches.retrieve(id)).status !== 'completed') await sleep(5);
  });
});
