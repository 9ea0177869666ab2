/** This machine -> the default number of threads of a model, a trainer or an encoder. */
import os from 'node:os';
import { loadAddon } from './addon.ts';

/** The folder that has /proc and /sys. */
const ROOT = '';
/** The folder in which Linux describes its cores. */
const DEVICES = '/sys/devices';

/**
 * The cores of this process without efficiency cores, because all threads of a computation wait for the slowest one, and no more than
 * the quota of its container pays for, because a process that has used it up stands still until the next period. `isTiny`: a
 * model whose work is too small to share.
 */
export function defaultThreads(isTiny = false): number {
  if (isTiny) return 1;
  const available = os.availableParallelism();
  const addon = loadAddon();
  return Math.min(
    available,
    addon.performanceCores(DEVICES) || available,
    addon.quotaCores(ROOT) || available,
  );
}
