/** Downloads from a hub on this machine: whole, cut and continued, wrong, gated, mirrored, offline. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ggufFormat } from '../../src/models/gguf-format.ts';
import { ownPart } from '../../src/models/hub/part-files.ts';
import { resolveFile } from '../../src/models/model-files.ts';
import { fetchModel } from '../../src/onnx/download.ts';
import type { HubOptions } from '../../src/protocol/index.ts';

const GRAPH = Buffer.from(Array.from({ length: 50_000 }, (_, i) => (i * 7) % 256));
const FILES: Record<string, Buffer> = {
  'config.json': Buffer.from('{}'),
  'tokenizer.json': Buffer.from('{"a":1}'),
  'tokenizer_config.json': Buffer.from('{"b":2}'),
  'onnx/model.onnx': GRAPH,
  'tiny.gguf': Buffer.from('GGUF of a hub'),
};
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const gitHash = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

/** State of the fake hub: its next behaviour, and the requests that it received. */
const hub = {
  token: null as string | null,
  cutAfter: null as number | null, // bytes of the graph, once
  damage: false,
  hasHashes: true,
  asked: [] as {
    method: string;
    file: string;
    range: string | undefined;
    authorization: string | undefined;
  }[],
};
let server: http.Server;
let endpoint: string;
let folder: string;

function answer(request: http.IncomingMessage, response: http.ServerResponse): void {
  const { pathname } = new URL(request.url!, 'http://hub');
  const [, area, ...rest] = pathname.split('/');
  const file = area === 'storage' ? rest.join('/') : rest.slice(3).join('/');
  const { method = '', headers } = request;
  hub.asked.push({
    method,
    file: `${area}/${file}`,
    range: headers.range,
    authorization: headers.authorization,
  });
  const bytes = FILES[file];
  if (!bytes) return void response.writeHead(404).end();
  if (area !== 'storage' && hub.token !== null && headers.authorization !== `Bearer ${hub.token}`)
    return void response.writeHead(401).end();
  if (file === 'onnx/model.onnx' && area !== 'storage') {
    const facts = hub.hasHashes
      ? { 'x-linked-etag': `"${sha256(bytes)}"`, 'x-linked-size': String(bytes.length) }
      : {};
    return void response.writeHead(302, { ...facts, location: `/storage/${file}` }).end();
  }
  const from = Number(/bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0);
  const body = Buffer.from(bytes.subarray(from));
  if (hub.damage && file === 'onnx/model.onnx') body[0]! ^= 1;
  response.writeHead(from > 0 ? 206 : 200, {
    'content-length': body.length,
    etag: `"${gitHash(bytes)}"`,
    'accept-ranges': 'bytes',
    ...(from > 0 ? { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
  });
  if (method === 'HEAD') return void response.end();
  if (hub.cutAfter === null || file !== 'onnx/model.onnx') return void response.end(body);
  const cut = hub.cutAfter;
  hub.cutAfter = null;
  response.write(body.subarray(0, cut), () => setTimeout(() => response.destroy(), 20)); // what was written goes out first
}

beforeAll(async () => {
  server = http.createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-hub-'));
  Object.assign(hub, { token: null, cutAfter: null, damage: false, hasHashes: true, asked: [] });
  vi.stubEnv('HF_TOKEN', 'from the environment');
});
afterEach(() => {
  fs.rmSync(folder, { recursive: true });
  vi.unstubAllEnvs();
});

const fetchGraph = (options: HubOptions = {}, signal = new AbortController().signal): Promise<string> =>
  fetchModel({ repository: 'o/n-onnx', graph: 'onnx/model.onnx' }, { endpoint, folder, ...options }, signal);
const left = (): string[] =>
  (fs.readdirSync(folder, { recursive: true }) as string[])
    .filter((name) => name.endsWith('.part'))
    .map((name) => name.replaceAll(path.sep, '/'))
    .sort();
const graphRequests = () =>
  hub.asked.filter(({ file, method }) => file === 'storage/onnx/model.onnx' && method === 'GET');

describe('an ONNX download', () => {
  it('lands in the folder, and is not made twice', async () => {
    const file = await fetchGraph();
    expect(file).toBe(path.join(folder, 'o/n-onnx/onnx/model.onnx'));
    expect(fs.readFileSync(file)).toEqual(GRAPH);
    expect(fs.readFileSync(path.join(folder, 'o/n-onnx/config.json'), 'utf8')).toBe('{}');
    await fetchGraph({ offline: true });
    expect(graphRequests()).toHaveLength(1);
    expect(left()).toEqual([]);
  });

  it('goes on where it was cut', async () => {
    hub.cutAfter = 20_000;
    expect(fs.readFileSync(await fetchGraph())).toEqual(GRAPH);
    expect(graphRequests().map(({ range }) => range)).toEqual([
      undefined,
      expect.stringMatching(/^bytes=[1-9]\d*-$/),
    ]);
    expect(left()).toEqual([]);
  });

  it('takes what a process left that was killed', async () => {
    const dead = ownPart('')
      .replace(String(process.pid), String(2 ** 22 + 1))
      .slice(1); // above the largest process id
    const part = path.join(folder, `o/n-onnx/onnx/model.onnx.${sha256(GRAPH).slice(0, 16)}.part.${dead}`);
    fs.mkdirSync(path.dirname(part), { recursive: true });
    fs.writeFileSync(part, GRAPH.subarray(0, 30_000));
    expect(fs.readFileSync(await fetchGraph())).toEqual(GRAPH);
    expect(graphRequests().map(({ range }) => range)).toEqual(['bytes=30000-']);
    expect(fs.existsSync(part)).toBe(false);
  });

  it('begins anew when what is there is of another version', async () => {
    const part = path.join(folder, `o/n-onnx/onnx/model.onnx.${'0'.repeat(16)}.part`);
    fs.mkdirSync(path.dirname(part), { recursive: true });
    fs.writeFileSync(part, 'old');
    expect(fs.readFileSync(await fetchGraph())).toEqual(GRAPH);
    expect(graphRequests().map(({ range }) => range)).toEqual([undefined]);
  });

  it('is refused with another hash, and leaves nothing', async () => {
    hub.damage = true;
    await expect(fetchGraph()).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
      message: expect.stringContaining(`expected the hash ${sha256(GRAPH)}`),
    });
    expect(left()).toEqual([]);
    expect(fs.existsSync(path.join(folder, 'o/n-onnx/onnx/model.onnx'))).toBe(false);
  });

  it('is checked by its hash as a blob of git, where the hub gives no other', async () => {
    hub.hasHashes = false;
    expect(fs.readFileSync(await fetchGraph())).toEqual(GRAPH);
  });

  it('needs the token of a gated repository, and does not send it elsewhere', async () => {
    hub.token = 'secret';
    await expect(fetchGraph()).rejects.toMatchObject({ message: expect.stringContaining('answered 401') });
    expect(hub.asked.every(({ authorization }) => authorization === undefined)).toBe(true);
    expect(fs.readFileSync(await fetchGraph({ token: 'secret' }))).toEqual(GRAPH);
  });

  it('asks nobody when it is offline', async () => {
    await expect(fetchGraph({ offline: true })).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
      message: expect.stringContaining('nothing may be downloaded'),
    });
    expect(hub.asked).toEqual([]);
  });

  it('of a model that sees brings what it sees with, with the weights that are there', async () => {
    const files = {
      'config.json': Buffer.from('{"image_token_id":1}'),
      'preprocessor_config.json': Buffer.from('{"c":3}'),
      'onnx/decoder_model_merged.onnx': Buffer.from('a decoder'),
      'onnx/decoder_model_merged_q4.onnx': Buffer.from('a small decoder'),
      'onnx/vision_encoder.onnx': Buffer.from('eyes'),
      'onnx/vision_encoder_q4.onnx': Buffer.from('small eyes'),
      'onnx/embed_tokens.onnx': Buffer.from('embeddings'),
    };
    const before = { ...FILES };
    Object.assign(FILES, files);
    try {
      expect(path.basename(await fetchGraph())).toBe('decoder_model_merged.onnx');
      const small = { repository: 'o/n-onnx', graph: 'onnx/decoder_model_merged_q4.onnx' };
      const signal = new AbortController().signal;
      expect(path.basename(await fetchModel(small, { endpoint, folder }, signal))).toBe(
        'decoder_model_merged_q4.onnx',
      );
      for (const [name, bytes] of Object.entries(files))
        expect(fs.readFileSync(path.join(folder, 'o/n-onnx', name))).toEqual(bytes);
      const { length } = hub.asked;
      await fetchGraph({ offline: true });
      expect(hub.asked).toHaveLength(length);
    } finally {
      for (const name of Object.keys(files)) delete FILES[name];
      Object.assign(FILES, before);
    }
  });

  it('ends when it is aborted', async () => {
    const controller = new AbortController();
    const running = fetchModel(
      { repository: 'o/n-onnx', graph: 'onnx/model.onnx' },
      { endpoint, folder },
      controller.signal,
      () => controller.abort(),
    );
    await expect(running).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

describe('a GGUF download', () => {
  const resolve = (options: HubOptions): Promise<string> =>
    resolveFile('hf:o/n/tiny.gguf', {
      hub: { endpoint, folder, ...options },
      formats: [ggufFormat],
      signal: new AbortController().signal,
    });

  it('takes the same options, and no token of the environment', async () => {
    hub.token = 'secret';
    await expect(resolve({})).rejects.toMatchObject({ code: 'NETWORK_FAILED', param: 'model' });
    expect(hub.asked.every(({ authorization }) => authorization === undefined)).toBe(true);
    const file = await resolve({ token: 'secret' });
    expect(file).toBe(path.join(folder, 'o', 'n', 'tiny.gguf'));
    expect(fs.readFileSync(file)).toEqual(FILES['tiny.gguf']);
    const before = hub.asked.length;
    expect(await resolve({ offline: true })).toBe(file);
    expect(hub.asked).toHaveLength(before);
  });

  it('asks nobody when it is offline', async () => {
    await expect(resolve({ offline: true })).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
    expect(hub.asked).toEqual([]);
  });
});
