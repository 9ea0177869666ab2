/** Downloads of GGUF models from a hub on this machine: chosen, whole, broken off, wrong, without room; and the list of them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { downloadsResource, fetchGguf, type Progress } from '../../../src/models/hub/index.ts';
import { ownPart } from '../../../src/models/hub/part-files.ts';
import type { HubOptions } from '../../../src/protocol/index.ts';
import { command } from '../../apps/cli/terminal.ts';
import { type ModelHub, openModelHub } from '../../fakes/model-hub.ts';

const bytesOf = (seed: number, count = 300_000): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, i) => (i * seed) % 251));
const SMALL = bytesOf(3);
const LARGE = bytesOf(7, 600_000);
const PARTS = [bytesOf(11), bytesOf(13)] as const;

let hub: ModelHub;
let folder: string;
beforeAll(async () => {
  hub = await openModelHub({
    'o/n': {
      'README.md': Buffer.from('#'),
      'Model-Q4_K_M.gguf': SMALL,
      'Model-Q8_0.gguf': LARGE,
      'mmproj-Model-F16.gguf': bytesOf(5),
    },
    'o/split': {
      'F16/Model-F16-00001-of-00002.gguf': PARTS[0],
      'F16/Model-F16-00002-of-00002.gguf': PARTS[1],
      'Other-Q8_0-00001-of-00003.gguf': SMALL, // its other parts are missing
    },
    'o/assisted': { 'Big-Q8_0.gguf': LARGE, 'Big-assistant-Q8_0.gguf': SMALL },
    'o/assistant': { 'My-Assistant-Q8_0.gguf': SMALL },
    'o/plain': { 'Plain-Q8_0.gguf': LARGE },
    'o/none': { 'README.md': Buffer.from('#') },
  });
});
afterAll(() => hub.close());
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-hub-'));
  hub.asked.length = 0;
});
afterEach(() => {
  for (const name of Object.keys(hub.faults)) delete hub.faults[name as keyof typeof hub.faults];
  fs.rmSync(folder, { recursive: true });
});

type Options = HubOptions & { signal?: AbortSignal; onProgress?: (progress: Progress) => void };
const get = (uri: string, { signal, onProgress, ...options }: Options = {}): Promise<string> =>
  fetchGguf(uri, {
    hub: { endpoint: hub.endpoint, folder, ...options },
    signal: signal ?? new AbortController().signal,
    field: 'model',
    choose: async (_reference, _files, candidates) => candidates.at(-1)!,
    onProgress: onProgress ?? null,
  });
const names = (): string[] =>
  (fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }) as string[])
    .filter((name) => fs.statSync(path.join(folder, name)).isFile())
    .map((name) => name.replaceAll(path.sep, '/'))
    .sort();
const ranges = (): (string | undefined)[] =>
  hub.asked.filter(({ url }) => url.includes('/resolve/')).map(({ range }) => range);

describe('a download', () => {
  it.each([
    ['hf:o/n:Q4_K_M', 'o/n/Model-Q4_K_M.gguf', SMALL],
    ['hf:o/n:q8_0', 'o/n/Model-Q8_0.gguf', LARGE],
    ['hf:o/n/Model-Q8_0.gguf', 'o/n/Model-Q8_0.gguf', LARGE],
    ['hf:o/n', 'o/n/Model-Q4_K_M.gguf', SMALL],
    ['hf:o/n:auto', 'o/n/Model-Q4_K_M.gguf', SMALL],
    ['hf:o/assisted', 'o/assisted/Big-Q8_0.gguf', LARGE],
    ['hf:o/assisted/Big-assistant-Q8_0.gguf', 'o/assisted/Big-assistant-Q8_0.gguf', SMALL],
    ['hf:o/assistant', 'o/assistant/My-Assistant-Q8_0.gguf', SMALL],
    ['hf:o/n/Model-Q8_0.gguf#v1', 'o/n@v1/Model-Q8_0.gguf', LARGE],
  ])('of %s is %s, and is not made twice', async (uri, name, bytes) => {
    const file = await get(uri);
    expect(file).toBe(path.join(folder, name));
    expect(fs.readFileSync(file).equals(bytes)).toBe(true);
    const { length } = hub.asked;
    expect(await get(uri, { offline: true })).toBe(file);
    expect(await get(uri)).toBe(file);
    expect(hub.asked).toHaveLength(length);
  });

  it('of a split model brings all of its files, and tells of them together', async () => {
    const seen: Progress[] = [];
    const file = await get('hf:o/split:F16', { onProgress: (progress) => seen.push(progress) });
    expect(path.basename(file)).toBe('Model-F16-00001-of-00002.gguf');
    for (const [i, bytes] of PARTS.entries())
      expect(fs.readFileSync(file.replace('00001-of', `0000${i + 1}-of`)).equals(bytes)).toBe(true);
    expect(seen.at(-1)).toMatchObject({ bytes: 600_000, totalBytes: 600_000, secondsLeft: 0 });
    expect(seen.every(({ bytes }, i) => bytes >= (seen[i - 1]?.bytes ?? 0))).toBe(true);
    fs.rmSync(file.replace('00001-of', '00002-of'));
    expect(await get('hf:o/split/F16/Model-F16-00001-of-00002.gguf')).toBe(file);
    expect(names().filter((name) => name.endsWith('.gguf'))).toHaveLength(2);
  });

  it.each<[string, string, RegExp]>([
    ['hf:o/n:Q2_K', 'MODEL_NOT_FOUND', /expected a file of type Q2_K, the repository has Q4_K_M, Q8_0$/],
    ['hf:o/n/other.gguf', 'MODEL_NOT_FOUND', /the hub has no file hf:o\/n\/other\.gguf/],
    ['hf:o/gone:Q8_0', 'MODEL_NOT_FOUND', /the hub has no repository o\/gone/],
    ['hf:o/none', 'MODEL_NOT_FOUND', /has no model in a GGUF file/],
    ['hf:o/split:Q8_0', 'MODEL_NOT_FOUND', /the repository has F16$/],
    ['hf:justname', 'MODEL_NOT_FOUND', /expected hf:owner\/repository/],
    ['hf:o/../n/x.gguf', 'MODEL_NOT_FOUND', /expected hf:owner\/repository/],
    ['hf:o/n/../../x.gguf', 'MODEL_NOT_FOUND', /expected hf:owner\/repository/],
  ])('of %s is %s', async (uri, code, message) => {
    await expect(get(uri)).rejects.toMatchObject({
      code,
      param: 'model',
      message: expect.stringMatching(message),
    });
    expect(names()).toEqual([]);
  });

  it('with another byte is refused, and nothing stays', async () => {
    hub.faults.damages = true;
    await expect(get('hf:o/n:Q8_0')).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
      message: expect.stringMatching(/expected the hash [0-9a-f]{64}, got [0-9a-f]{64}/),
    });
    expect(names()).toEqual([]);
  });

  it('goes on by itself where it breaks off', async () => {
    Object.assign(hub.faults, { cutAfter: 200_000, cuts: 2 });
    expect(fs.readFileSync(await get('hf:o/n:Q8_0')).equals(LARGE)).toBe(true);
    expect(ranges().filter((range) => range !== undefined).length).toBeGreaterThan(0);
  });

  it('fails when nothing more comes, and a later one goes on with what is there', async () => {
    hub.faults.cutAfter = 200_000;
    const last = new AbortController();
    const first = get('hf:o/n:Q8_0', {
      signal: last.signal,
      onProgress: ({ bytes }) => bytes > 100_000 && last.abort(),
    });
    await expect(first).rejects.toMatchObject({ code: 'ABORTED' });
    const [part] = names();
    expect(part).toMatch(/\.part$/);
    const { size } = fs.statSync(path.join(folder, part!));
    expect(size).toBeGreaterThan(0);
    hub.faults.cutAfter = 0;
    await expect(get('hf:o/n:Q8_0')).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
    expect(fs.statSync(path.join(folder, part!)).size).toBe(size);
    hub.faults.cutAfter = undefined;
    hub.asked.length = 0;
    expect(fs.readFileSync(await get('hf:o/n:Q8_0')).equals(LARGE)).toBe(true);
    expect(ranges()).toEqual([undefined, `bytes=${size}-`]);
  });

  it('begins anew where the hub sends no ranges', async () => {
    Object.assign(hub.faults, { cutAfter: 200_000, cuts: 1, ignoresRanges: true });
    expect(fs.readFileSync(await get('hf:o/n:Q8_0')).equals(LARGE)).toBe(true);
  });

  it('needs room on the disk before it begins', async () => {
    hub.faults.claims = { 'Model-Q8_0.gguf': 2 ** 52 };
    await expect(get('hf:o/n:Q8_0')).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringMatching(/no room in .*: 4,294,967,296 MiB are needed, and [\d,]+ MiB are free/),
    });
  });

  it.skipIf(!fs.existsSync('/dev/full'))('that fills the disk can be caught', async () => {
    hub.faults.cutAfter = 200_000;
    const last = new AbortController();
    const onProgress = (): void => last.abort();
    await expect(get('hf:o/n:Q8_0', { signal: last.signal, onProgress })).rejects.toBeDefined();
    const part = path.join(folder, names()[0]!);
    fs.rmSync(part);
    fs.symlinkSync('/dev/full', part);
    hub.faults.cutAfter = undefined;
    await expect(get('hf:o/n:Q8_0')).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringMatching(/cannot write .*: the disk is full/),
    });
  });

  it('tells the rate and the time left', async () => {
    hub.faults.slowMs = 50;
    const seen: Progress[] = [];
    await get('hf:o/n:Q8_0', { onProgress: (progress) => seen.push(progress) });
    expect(seen.length).toBeGreaterThan(1);
    for (const { bytes, totalBytes, bytesPerSecond, secondsLeft } of seen) {
      expect(totalBytes).toBe(600_000);
      expect(bytesPerSecond).toBeGreaterThan(0);
      expect(secondsLeft).toBeCloseTo((600_000 - bytes) / bytesPerSecond);
    }
  });

  it('says what keeps it from the hub', async () => {
    const closed = await openModelHub({});
    closed.close();
    await expect(get('hf:o/n:Q8_0', { endpoint: closed.endpoint })).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
      message: expect.stringContaining('ECONNREFUSED 127.0.0.1:'),
    });
    hub.faults.status = 503;
    await expect(get('hf:o/n:Q8_0')).rejects.toMatchObject({ message: expect.stringContaining('503') });
  });
});

describe('downloads', () => {
  const resource = () => downloadsResource({ folder });

  it('are listed, checked and deleted', async () => {
    expect(await resource().list()).toEqual([]);
    await get('hf:o/n:Q4_K_M');
    const file = await get('hf:o/n/Model-Q8_0.gguf#v1');
    hub.faults.cutAfter = 100_000;
    const stop = new AbortController();
    await expect(
      get('hf:o/split:F16', { signal: stop.signal, onProgress: () => stop.abort() }),
    ).rejects.toBeDefined();
    const list = await resource().list();
    expect(list).toMatchObject([
      { model: 'hf:o/n/Model-Q4_K_M.gguf', bytes: SMALL.length, totalBytes: SMALL.length, state: 'complete' },
      { model: 'hf:o/n/Model-Q8_0.gguf#v1', path: file, state: 'complete' },
      { model: 'hf:o/split/F16/Model-F16-00001-of-00002.gguf', totalBytes: null, state: 'partial' },
    ]);
    fs.writeFileSync(file, Buffer.from(LARGE).fill(1, 5, 6));
    expect(await resource().verify()).toEqual([
      { model: 'hf:o/n/Model-Q4_K_M.gguf', state: 'right' },
      { model: 'hf:o/n/Model-Q8_0.gguf#v1', state: 'damaged' },
    ]);
    expect(await resource().delete('hf:o/n/Model-Q8_0.gguf#v1')).toBe(LARGE.length);
    expect(await resource().delete(list[2]!.model)).toBe(list[2]!.bytes);
    expect(names()).toEqual(['o/n/Model-Q4_K_M.gguf', 'o/n/Model-Q4_K_M.gguf.hub.json']);
    for (const method of ['delete', 'verify'] as const)
      await expect(resource()[method]('hf:o/n/none.gguf')).rejects.toMatchObject({ code: 'MODEL_NOT_FOUND' });
  });

  const dead = 2 ** 22 + 1; // above the largest process id
  it.each<[string, (own: string) => string, number, 'running' | 'partial']>([
    ['of this process', (own) => own, 1e6, 'running'],
    ['of a process that has ended', (own) => own.replace(/\d+-/, `${dead}-`), 0, 'partial'],
    [
      'of a container with a process of its number',
      (own) => own.replace(/-.*/, '-0123456789ab'),
      0,
      'running',
    ],
    ['of one that wrote nothing for long', (own) => own.replace(/-.*/, '-0123456789ab'), 1e6, 'partial'],
    ['of one that no file names', (own) => own.replace(/-.*/, ''), 1e6, 'partial'],
  ])('%s run or not', async (_, nameOf, ageSeconds, state) => {
    fs.mkdirSync(path.join(folder, 'o', 'n'), { recursive: true });
    const part = path.join(folder, 'o', 'n', nameOf(ownPart(`a.gguf.${'0'.repeat(16)}.part`)));
    fs.writeFileSync(part, 'x');
    const written = Date.now() / 1000 - ageSeconds;
    fs.utimesSync(part, written, written);
    expect(await resource().list()).toMatchObject([{ model: 'hf:o/n/a.gguf', state }]);
    const deletion = resource().delete('hf:o/n/a.gguf');
    if (state === 'running') await expect(deletion).rejects.toMatchObject({ code: 'CONFLICT' });
    else expect(await deletion).toBe(1);
  });
});

describe('the command', () => {
  it('downloads, lists, checks and deletes', async () => {
    const at = (...words: string[]) =>
      command([
        ...words,
        '--hub-endpoint',
        hub.endpoint,
        '--hub-folder',
        folder,
        '--home',
        path.join(folder, '.home'),
      ]);
    const pulled = await at('pull', 'hf:o/plain/Plain-Q8_0.gguf');
    expect(pulled).toMatchObject({
      exitCode: 0,
      output: `${path.join(folder, 'o/plain/Plain-Q8_0.gguf')}\n`,
    });
    expect(pulled.errors).toMatch(
      /^(hf:o\/plain\/Plain-Q8_0\.gguf {2}1 MiB of 1 MiB {2}\d+ MiB\/s {2}\d+ s left\n)+$/,
    );
    expect((await at('downloads')).output).toMatch(
      /^model +size +state\nhf:o\/plain\/Plain-Q8_0.gguf +1 MiB +complete\ntogether +1 MiB\n$/,
    );
    expect((await at('downloads', 'verify')).output).toMatch(/Plain-Q8_0.gguf +right\n$/);
    fs.appendFileSync(path.join(folder, 'o/plain/Plain-Q8_0.gguf'), 'x');
    expect(await at('downloads', 'verify')).toMatchObject({
      exitCode: 1,
      errors: expect.stringContaining('damaged'),
    });
    expect((await at('downloads', 'delete', 'hf:o/plain/Plain-Q8_0.gguf')).output).toMatch(/1 MiB freed\n$/);
    expect((await at('downloads', 'delete')).exitCode).toBe(2);
    hub.faults.claims = { 'Plain-Q8_0.gguf': 2 ** 52 };
    expect(await at('pull', 'hf:o/plain:Q8_0')).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/^onpolicy: no room in/),
    });
  });
});
