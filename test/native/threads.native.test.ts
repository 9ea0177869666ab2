/** Which cores compute unless a caller says how many. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { defaultThreads, loadAddon } from '../../src/native/index.ts';

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-cores-'));
afterAll(() => fs.rmSync(work, { recursive: true, force: true }));

/** A folder as /sys/devices. */
const devices = (name: string, files: Record<string, string>): string => {
  const folder = path.join(work, name);
  fs.mkdirSync(folder);
  for (const [file, text] of Object.entries(files)) {
    const to = path.join(folder, file);
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.writeFileSync(to, text);
  }
  return folder;
};
const capacities = (all: readonly number[]) =>
  Object.fromEntries(all.map((capacity, i) => [`system/cpu/cpu${i}/cpu_capacity`, `${capacity}\n`]));

describe('threads', () => {
  it.runIf(process.platform === 'linux').each([
    ['intel', { 'cpu_core/cpus': '0-11\n', 'cpu_atom/cpus': '12-19\n' }, 12],
    ['several-ranges', { 'cpu_core/cpus': '0-3,8,10-11\n' }, 7],
    ['arm', capacities([446, 446, 446, 446, 871, 871, 1024, 1024]), 4],
    ['alike', capacities([1024, 1024]), 2],
    ['unknown', {}, 0],
  ])('leave efficiency cores out: %s', (name, files, expected) => {
    expect(loadAddon().performanceCores(devices(name, files))).toBe(expected);
  });

  it('are at most those of the process, and one for a tiny model', () => {
    const threads = defaultThreads();
    expect(threads).toBeGreaterThanOrEqual(1);
    expect(threads).toBeLessThanOrEqual(os.availableParallelism());
    expect(defaultThreads(true)).toBe(1);
  });
});
