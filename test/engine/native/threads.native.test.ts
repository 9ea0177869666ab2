/** Which cores compute unless a caller says how many. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { defaultThreads, loadAddon } from '../../../src/engine/native/index.ts';
import { type CoreLook, testing } from '../../addon/testing-addon.ts';

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

  const V2 = 'sys/fs/cgroup';
  const V1 = 'sys/fs/cgroup/cpu,cpuacct';
  const old = (folder: string, quota: number) => ({
    [`${folder}/cpu.cfs_quota_us`]: `${quota}\n`,
    [`${folder}/cpu.cfs_period_us`]: '100000\n',
  });
  it.runIf(process.platform === 'linux').each<[string, string, Record<string, string>, number]>([
    ['none', '0::/\n', {}, 0],
    ['no limit', '0::/\n', { [`${V2}/cpu.max`]: 'max 100000\n' }, 0],
    ['half a core', '0::/\n', { [`${V2}/cpu.max`]: '50000 100000\n' }, 1],
    ['a container of 2.5', '0::/\n', { [`${V2}/cpu.max`]: '250000 100000\n' }, 2],
    ['a group', '0::/a/b\n', { [`${V2}/a/b/cpu.max`]: '300000 100000\n' }, 3],
    [
      'a group around it',
      '0::/a/b\n',
      { [`${V2}/a/b/cpu.max`]: '300000 100000\n', [`${V2}/a/cpu.max`]: '200000 100000\n' },
      2,
    ],
    [
      'a group of the host, not seen in the container',
      '0::/x/y\n',
      { [`${V2}/cpu.max`]: '200000 100000\n' },
      2,
    ],
    ['version 1', '5:memory:/m\n4:cpu,cpuacct:/a\n', old(`${V1}/a`, 400_000), 4],
    ['version 1 without a limit', '4:cpu,cpuacct:/a\n', old(`${V1}/a`, -1), 0],
    ['version 1 of the container', '4:cpu,cpuacct:/docker/x\n', old(V1, 150_000), 1],
    ['version 1 under a shorter name', '4:cpu,cpuacct:/\n', old('sys/fs/cgroup/cpu', 200_000), 2],
    ['a set of cores alone', '3:cpuset:/a\n', old('sys/fs/cgroup/cpuset/a', 100_000), 0],
    [
      'both versions',
      '4:cpu:/\n0::/\n',
      { ...old('sys/fs/cgroup/cpu', 300_000), [`${V2}/unified/cpu.max`]: '200000 100000\n' },
      2,
    ],
    ['damaged', 'nothing\n0::/\n', { [`${V2}/cpu.max`]: 'x y\n' }, 0],
  ])('follow quotas: %s', (name, groups, files, expected) => {
    const root = devices(`quota ${name}`, { 'proc/self/cgroup': groups, ...files });
    expect(loadAddon().quotaCores(root)).toBe(expected);
  });

  it('are at most those of the process, and one for a tiny model', () => {
    const threads = defaultThreads();
    expect(threads).toBeGreaterThanOrEqual(1);
    expect(threads).toBeLessThanOrEqual(os.availableParallelism());
    expect(defaultThreads(true)).toBe(1);
  });
});

describe('a budget of threads', () => {
  const look = (idle: number, own: number, seconds = 0.1): CoreLook => ({ seconds, idle, own });
  const quiet = look(0, 2);
  const busy = look(0, 1.3);
  const beside = look(0, 1); // one thread, and another program on the other core
  const soon = look(0, 1, 0.01);

  it.each([
    ['a quiet machine', 2, [quiet, quiet], [[2], [2]]],
    ['a quiet machine, between steps', 2, [look(0.4, 1.6), look(1.9, 0.1)], [[2], [2]]],
    ['another program came', 2, [quiet, busy, beside, beside], [[2], [1], [1], [1]]],
    ['it went', 2, [busy, beside, look(0.9, 1)], [[1], [1], [2]]],
    ['one that takes a little', 2, [look(0, 1.7), look(0, 1.6)], [[2], [2]]],
    ['two on eight cores', 8, [look(0, 6.5), look(0, 6)], [[6], [6]]],
    ['more than cores', 2, [look(0, 0.4)], [[1]]],
    ['a look too soon', 2, [look(0, 1, 0.01)], [[2]]],
    ['a look after a long time', 2, [busy, look(2, 0, 3)], [[1], [1]]],
    ['a long computation beside another program', 2, [{ ...quiet, during: look(0, 1, 3) }, soon], [[2], [1]]],
    ['a long one whose neighbour went', 2, [{ ...busy, during: look(0.9, 1, 3) }, soon], [[1], [2]]],
  ] as const)('%s', (_, cores, looks, expected) => {
    expect(testing.threadBudget(cores, looks, [cores])).toEqual(expected);
  });

  it('is shared by what computes at once, and no user gets more than it wants', () => {
    expect(testing.threadBudget(8, [look(1, 7)], [8, 8, 2, 1])).toEqual([[8, 4, 2, 1]]);
    expect(testing.threadBudget(2, [busy], [2, 2])).toEqual([[1, 1]]);
  });

  it('tries a further thread at growing distances, and keeps it where others make room', () => {
    const tried = (own: (threads: number) => number, seconds = 0): number[] => {
      const looks: (CoreLook & { during?: CoreLook })[] = [busy];
      const times: number[] = [];
      for (let i = 1; i <= 400; i++) {
        const threads = testing.threadBudget(2, looks, [2]).at(-1)![0]!;
        if (threads === 2) {
          times.push(i);
          if (seconds > 0) looks.push({ ...looks.pop()!, during: look(0, own(threads), seconds) });
        }
        looks.push(look(0, own(threads)));
      }
      return times;
    };
    const rivals = tried((threads) => (threads === 2 ? 1.3 : 1));
    expect(rivals.length).toBeGreaterThan(2);
    expect(rivals.length).toBeLessThan(8);
    const distances = rivals.slice(1).map((time, i) => time - rivals[i]!);
    expect(distances).toEqual(distances.toSorted((a, b) => a - b));
    expect(tried((threads) => (threads === 2 ? 1.9 : 1)).length).toBeGreaterThan(380);
    const slow = tried((threads) => (threads === 2 ? 1.3 : 1), 1);
    expect(slow.length).toBeGreaterThan(1);
    expect(slow[1]! - slow[0]!).toBeGreaterThan(2 * (rivals[1]! - rivals[0]!));
  });

  it.runIf(process.platform === 'linux')('takes cores of programs with a lower priority for free', () => {
    const idleWith = (nice: number): number => {
      const file = path.join(work, `stat-${nice}`);
      const cores = os.cpus().map((_, i) => `cpu${i} 100 ${nice} 100 100 0 0 0 0 0 0\n`);
      fs.writeFileSync(file, `cpu 0 0 0 0 0 0 0 0 0 0\n${cores.join('')}intr 0\n`);
      return testing.coreTimes(file)!.idle;
    };
    const gained = idleWith(500) - idleWith(0);
    if (os.getPriority() > 0) expect(gained).toBe(0);
    else expect(gained).toBeCloseTo(5 * os.availableParallelism());
  });

  it('knows what this process computed', () => {
    const before = testing.coreTimes();
    if (before === null) return expect(process.platform).not.toBe('linux');
    const end = performance.now() + 200;
    while (performance.now() < end);
    const after = testing.coreTimes()!;
    expect(after.own).toBeGreaterThan(before.own);
    expect(after.idle).toBeGreaterThanOrEqual(before.idle);
    expect(after.now - before.now).toBeGreaterThanOrEqual(0.2);
  });
});
