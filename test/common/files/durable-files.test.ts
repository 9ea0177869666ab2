/** Files that replace others while somebody has them open. */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeFolder, rename, replaceFile } from '../../../src/common/index.ts';

const failure = (code: string): Error => Object.assign(new Error(code), { code });
const TRIES = 101;

describe('rename', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }));
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });

  it.each<[string, string, failures: number, calls: number, succeeds: boolean]>([
    ['win32', 'EPERM', 3, 4, true],
    ['win32', 'EBUSY', TRIES, TRIES, false],
    ['win32', 'ENOENT', 1, 1, false],
    ['linux', 'EPERM', 1, 1, false],
  ])('on %s after %s, %i times: %i calls', async (platform, code, failures, calls, succeeds) => {
    vi.spyOn(process, 'platform', 'get').mockReturnValue(platform as NodeJS.Platform);
    const call = vi.spyOn(fs, 'rename').mockResolvedValue();
    for (let i = 0; i < failures; i++) call.mockRejectedValueOnce(failure(code));
    const renamed = rename('a', 'b').then(
      () => true,
      () => false,
    );
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await renamed).toBe(succeeds);
    expect(call).toHaveBeenCalledTimes(calls);
  });
});

it('a file is replaced while it is open', async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'onpolicy-durable-'));
  const file = path.join(folder, 'a.json');
  await fs.writeFile(file, 'old');
  const reader = await fs.open(file, 'r');
  const replaced = replaceFile(file, 'new'); // on Windows it waits
  expect(await reader.readFile('utf8')).toBe('old');
  await reader.close();
  await replaced;
  expect(await fs.readFile(file, 'utf8')).toBe('new');
  expect(await fs.readdir(folder)).toEqual(['a.json']);
  await fs.rm(folder, { recursive: true });
});

it('folders are made with those above them, and not where the system makes none', async () => {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'onpolicy-durable-'));
  try {
    const deep = path.join(root, 'a', 'b', 'c');
    await Promise.all([makeFolder(deep), makeFolder(deep)]);
    expect((await fs.stat(deep)).isDirectory()).toBe(true);
    await fs.writeFile(path.join(root, 'file'), '');
    await expect(makeFolder(path.join(root, 'file'))).rejects.toMatchObject({ code: 'EEXIST' });
    await expect(makeFolder(path.join(root, 'file', 'x'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    const mkdir = vi.spyOn(fs, 'mkdir');
    mkdir.mockRejectedValueOnce(failure('ENOENT')); // the one above was made just then
    await makeFolder(path.join(root, 'late'));
    expect((await fs.stat(path.join(root, 'late'))).isDirectory()).toBe(true);
    mkdir.mockRejectedValue(failure('ENOENT')); // as below /proc
    await expect(makeFolder(path.join(root, 'x', 'y'))).rejects.toMatchObject({ code: 'ENOENT' });
  } finally {
    vi.restoreAllMocks();
    await fs.rm(root, { recursive: true });
  }
});
