/** Saved caches in a folder that other files and other users share. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadCache, saveCache } from '../../../src/models/prompt-files/kv-transfer.ts';

const OWNER = { model: 'm', adapter: '', context: 'c' };
const SAVED = { tokens: Int32Array.of(1, 2, 3), state: Uint8Array.of(4, 5) };
const UUID = '00000000-0000-4000-8000-000000000000';
let root: string;
let folder: string;
beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-kv-test-'));
  folder = path.join(root, 'kv');
});
afterEach(() => {
  vi.restoreAllMocks();
  fs.rmSync(root, { recursive: true });
});

const save = () => saveCache(folder, OWNER, SAVED);
const load = (handle: unknown) => loadCache(folder, OWNER, String(handle), SAVED.tokens);

it('is made for this user alone', async () => {
  const { handle } = await save();
  const { tokens, state } = await load(handle);
  expect([...tokens, ...state]).toEqual([...SAVED.tokens, ...SAVED.state]);
  if (process.platform !== 'win32') expect(fs.statSync(folder).mode & 0o777).toBe(0o700);
});

it('loses old saved caches, and nothing else', async () => {
  const { handle } = await save();
  const mine = [`${handle}.kv`, `${UUID}.kv.part`];
  const others = ['thesis.doc', `${UUID}.kv.bak`, `x${UUID}.kv`, 'notes', `${UUID.replaceAll('0', '1')}.kv`];
  fs.writeFileSync(path.join(folder, mine[1]!), '');
  for (const name of others.slice(0, 3)) fs.writeFileSync(path.join(folder, name), 'kept');
  for (const name of others.slice(3)) fs.mkdirSync(path.join(folder, name)); // the last one has the name of a cache
  const old = new Date(Date.now() - 2 * 3_600_000);
  for (const name of [...mine, ...others]) fs.utimesSync(path.join(folder, name), old, old);
  const next = await save();
  expect(fs.readdirSync(folder).toSorted()).toEqual([...others, `${next['handle']}.kv`].toSorted());
});

describe.skipIf(process.platform === 'win32')('a folder that others may write to', () => {
  it.each<[string, () => void]>([
    ['by its mode', () => fs.chmodSync(folder, 0o770)],
    [
      'as it is not of this user',
      () => void vi.spyOn(process as { getuid(): number }, 'getuid').mockReturnValue(4711),
    ],
    [
      'behind a link',
      () => {
        fs.renameSync(folder, `${folder}-real`);
        fs.chmodSync(`${folder}-real`, 0o777);
        fs.symlinkSync(`${folder}-real`, folder);
      },
    ],
  ])('is refused, %s', async (_, open) => {
    const { handle } = await save();
    open();
    const refused = { code: 'STORE_FAILED', message: expect.stringContaining('only it may write to') };
    await expect(save()).rejects.toMatchObject(refused);
    await expect(load(handle)).rejects.toMatchObject(refused);
  });
});

it('a cache that cannot be read is not taken for absent', async () => {
  const { handle } = await save();
  const file = path.join(folder, `${handle}.kv`);
  fs.rmSync(file);
  await expect(load(handle)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  fs.mkdirSync(file);
  await expect(load(handle)).rejects.toMatchObject({ code: 'STORE_FAILED' });
});
