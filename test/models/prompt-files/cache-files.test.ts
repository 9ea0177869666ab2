/** Files of caches: what is damaged, foreign, gone, too much or cannot be written. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CacheFiles } from '../../../src/models/prompt-files/cache-files.ts';
import { partsAt } from '../../../src/models/prompt-files/names.ts';
import { diskCachesResource } from '../../../src/models/prompt-files/resource.ts';
import { smallDisk } from '../../fakes/small-disk.ts';

const OWNER = { id: 'a'.repeat(64), model: 'm.gguf' };
const TOKENS = Int32Array.from({ length: 30 }, (_, i) => i);
const PARTS = partsAt('', TOKENS, [10, 20, 30], false);
const STATE = Uint8Array.from({ length: 1000 }, (_, i) => i);
const USE = { budget: 1e6, usedMs: 1e12 };

const disk = smallDisk(256);
afterAll(() => disk.unmount());
let home: string;
let notices: string[];
beforeEach(() => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-caches-'));
  notices = [];
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  fs.rmSync(home, { recursive: true, force: true });
});
const open = (folder = home): CacheFiles => new CacheFiles(folder, (text) => notices.push(text));
const folder = (): string => path.join(home, 'caches', OWNER.id);
const fileOf = (part: { name: string }): string => path.join(folder(), part.name);
const names = (): string[] => fs.readdirSync(folder()).toSorted();

it('come back as they were written, for this user alone', async () => {
  const files = open();
  await files.write(OWNER, PARTS[0]!, STATE, USE);
  expect(await open().read(OWNER, PARTS[0]!, 1e12)).toEqual(Buffer.from(STATE));
  expect(await files.has(OWNER, PARTS[0]!)).toBe(true);
  expect(await files.ends(OWNER)).toEqual([10]);
  expect(files.stats).toEqual({ loadedTokens: 0, loadedBytes: 0, savedTokens: 10, savedBytes: 1000 });
  const mode = (file: string): number => fs.statSync(file).mode & 0o777;
  if (process.platform !== 'win32') {
    expect(names().map((name) => mode(path.join(folder(), name)))).toEqual([0o600, 0o600]);
    expect([mode(folder()), mode(path.join(home, 'caches'))]).toEqual([0o700, 0o700]);
  }
  expect(notices).toEqual([]);
});

it.each<[string, (content: Buffer) => Buffer]>([
  [
    'a bit of the cache',
    (content) => Buffer.concat([content.subarray(0, -1), Buffer.of(content.at(-1)! ^ 1)]),
  ],
  ['its end is missing', (content) => content.subarray(0, -1)],
  ['it is longer', (content) => Buffer.concat([content, Buffer.of(0)])],
  ['its head alone', (content) => content.subarray(0, 40)],
  ['nothing', () => Buffer.alloc(0)],
  ['no JSON in its head', (content) => Buffer.from(content.toString('latin1').replace('{', '['), 'latin1')],
  ['null in its head', () => Buffer.from('onpolicy-cache 1\nnull\n')],
  [
    'another place',
    (content) => Buffer.from(content.toString('latin1').replace('"to":10', '"to":11'), 'latin1'),
  ],
  ['of another program', () => Buffer.from('PK\u0003\u0004 an archive')],
  ['without an end of its head', () => Buffer.from(`onpolicy-cache 1\n${'x'.repeat(10_000)}`)],
])('a damaged one is deleted and told of: %s', async (_, damage) => {
  const files = open();
  await files.write(OWNER, PARTS[0]!, STATE, USE);
  fs.writeFileSync(fileOf(PARTS[0]!), damage(fs.readFileSync(fileOf(PARTS[0]!))));
  expect(await files.read(OWNER, PARTS[0]!, 1e12)).toBeNull();
  expect(notices).toEqual([expect.stringContaining(fileOf(PARTS[0]!))]);
  expect(names()).toEqual(['owner.json']);
  expect(await files.read(OWNER, PARTS[0]!, 1e12)).toBeNull(); // it is gone
  expect(notices).toHaveLength(1);
});

it('one under the name of another prompt is deleted', async () => {
  const files = open();
  await files.write(OWNER, PARTS[0]!, STATE, USE);
  const [other] = partsAt('salt', TOKENS, [10], false);
  fs.renameSync(fileOf(PARTS[0]!), fileOf(other!));
  expect(await files.read(OWNER, other!, 1e12)).toBeNull();
  expect(notices).toEqual([expect.stringContaining('the cache belongs to another prompt')]);
});

it('names differ by every token, the key and the place, and say nothing about the text', () => {
  const of = (key: string, tokens: number[], ends: number[]) =>
    partsAt(key, Int32Array.from(tokens), ends, false).map(({ name }) => name);
  const all = [of('', [1, 2, 3], [2, 3]), of('a', [1, 2, 3], [2, 3]), of('', [2, 2, 3], [2, 3])].flat();
  expect(new Set(all).size).toBe(6);
  expect(of('', [1, 2, 9], [2])).toEqual(of('', [1, 2], [2]));
  expect(of('', [1, 2, 3], [3])).toEqual(of('', [1, 2, 3], [2, 3]).slice(1)); // whatever was cut before
});

describe('a budget', () => {
  const write = (files: CacheFiles, part: number, usedMs: number, budget = 3500) =>
    files.write(OWNER, PARTS[part]!, STATE, { budget, usedMs });

  it('lets those give way that were used last, and of one prompt those at its end', async () => {
    const files = open();
    for (const part of [0, 1, 2]) await write(files, part, 1e12);
    const [other] = partsAt('b', TOKENS, [30], false);
    await files.write(OWNER, other!, STATE, { budget: 3500, usedMs: 1e12 + 1000 });
    expect(await files.ends(OWNER)).toEqual([10, 30]); // room is made for more than one
    expect([await files.has(OWNER, PARTS[0]!), await files.has(OWNER, other!)]).toEqual([true, true]);
    await files.touch(OWNER, PARTS[0]!, 1e12 + 6000);
    await write(files, 1, 1e12 + 6000);
    await write(files, 2, 1e12 + 6000);
    expect([await files.has(OWNER, PARTS[0]!), await files.has(OWNER, other!)]).toEqual([true, false]);
  });

  it('counts what others wrote, before and meanwhile', async () => {
    const [mine, others] = [open(), open()];
    await write(others, 0, 1e12);
    await write(mine, 1, 1e12 + 1);
    await write(others, 2, 1e12 + 2);
    const more = partsAt('b', TOKENS, [10, 20, 30], false);
    for (const [i, part] of more.entries())
      await mine.write(OWNER, part, STATE, { budget: 3500, usedMs: 1e12 + 3000 + i });
    const total = names().reduce((sum, name) => sum + fs.statSync(path.join(folder(), name)).size, 0);
    expect(total).toBeLessThan(3500 + 100);
  });

  it('of less than one cache keeps none', async () => {
    const files = open();
    await write(files, 0, 1e12, 999);
    expect(fs.existsSync(folder())).toBe(false);
  });

  it('does not count what was left half written, and deletes it after an hour', async () => {
    const files = open();
    await write(files, 0, 1e12);
    const [fresh, old] = ['fresh', 'old'].map((name) =>
      path.join(folder(), `${PARTS[1]!.name}.${name}.part`),
    );
    for (const file of [fresh!, old!]) fs.writeFileSync(file, STATE);
    const past = Date.now() / 1000 - 4000;
    fs.utimesSync(old!, past, past);
    await write(open(), 2, 1e12);
    expect([fs.existsSync(fresh!), fs.existsSync(old!)]).toEqual([true, false]);
    expect(await files.ends(OWNER)).toEqual([10, 30]);
  });
});

describe('where nothing can be written', () => {
  it('one notice says so, and after a while it is tried again', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    fs.writeFileSync(path.join(home, 'caches'), 'a file');
    const files = open();
    for (const part of PARTS) await files.write(OWNER, part, STATE, USE);
    expect(notices).toEqual([expect.stringMatching(/prompts are not kept in .*caches/)]);
    expect(files.isPaused).toBe(true);
    expect(await files.read(OWNER, PARTS[0]!, 1e12)).toBeNull();
    expect(await files.ends(OWNER)).toEqual([]);
    fs.rmSync(path.join(home, 'caches'));
    vi.setSystemTime(Date.now() + 61_000);
    await files.write(OWNER, PARTS[0]!, STATE, USE);
    expect(await files.has(OWNER, PARTS[0]!)).toBe(true);
    expect(notices).toHaveLength(1);
  });

  it.skipIf(disk.folder === null)(
    'a full disk leaves nothing half written, and what is there is read',
    async () => {
      const files = open(disk.folder!);
      const at = path.join(disk.folder!, 'caches', OWNER.id);
      await files.write(OWNER, PARTS[0]!, STATE, USE);
      disk.fill();
      await files.write(OWNER, PARTS[1]!, new Uint8Array(200_000), USE);
      expect(notices).toEqual([expect.stringContaining('the disk is full')]);
      expect(fs.readdirSync(at).toSorted()).toEqual([PARTS[0]!.name, 'owner.json']);
      expect(await files.read(OWNER, PARTS[0]!, 1e12)).toEqual(Buffer.from(STATE));
    },
  );

  it.skipIf(process.platform === 'win32')('a folder that others may write to is not read', async () => {
    const files = open();
    await files.write(OWNER, PARTS[0]!, STATE, USE);
    fs.chmodSync(path.join(home, 'caches'), 0o777);
    expect(await files.read(OWNER, PARTS[0]!, 1e12)).toBeNull();
    expect(notices).toEqual([expect.stringContaining('only it may write to')]);
  });
});

it('are listed, and deleted by the id of their owner', async () => {
  const files = open();
  const caches = diskCachesResource(home);
  expect(await caches.list()).toEqual([]);
  await caches.delete(); // there are none
  const other = { id: 'b'.repeat(64), model: 'n.gguf' };
  await files.write(OWNER, PARTS[0]!, STATE, USE);
  await files.write(other, PARTS[0]!, STATE, { ...USE, usedMs: 2e12 });
  fs.mkdirSync(path.join(home, 'caches', 'notes'));
  fs.writeFileSync(path.join(home, 'caches', other.id, 'owner.json'), '{');
  const { size } = fs.statSync(fileOf(PARTS[0]!));
  expect(await caches.list()).toEqual([
    { id: other.id, model: '', files: 1, bytes: size, used_at: 2e9 - 1 },
    { id: OWNER.id, model: 'm.gguf', files: 1, bytes: size, used_at: 1e9 - 1 },
  ]);
  await expect(caches.delete('c')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await caches.delete(OWNER.id);
  expect(await files.read(OWNER, PARTS[0]!, 1e12)).toBeNull();
  await caches.delete();
  expect(fs.readdirSync(path.join(home, 'caches'))).toEqual(['notes']);
  expect(notices).toEqual([]);
});
