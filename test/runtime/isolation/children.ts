/** The processes that this one, or another, has started for isolated models. */
import { execFileSync } from 'node:child_process';
import { expect } from 'vitest';

/** Their ids. */
export function enginePids(parent = process.pid): number[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' });
  return table
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((row) => row !== null)
    .filter(([, , ppid, args]) => Number(ppid) === parent && args!.includes('isolation/program.js'))
    .map(([, pid]) => Number(pid));
}

/** Resolves when the process is gone, and no zombie. */
export async function isGone(pid: number): Promise<void> {
  const isThere = (): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  await expect.poll(isThere, { timeout: 10_000, interval: 20 }).toBe(false);
}

/** Kills the only one. */
export function killEngine(signal: NodeJS.Signals = 'SIGKILL'): number {
  const [pid, ...others] = enginePids();
  expect(others).toEqual([]);
  process.kill(pid!, signal);
  return pid!;
}
