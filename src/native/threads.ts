/** How many threads a model, a trainer or an encoder has unless it is told. */
import os from 'node:os';
import { loadAddon } from './addon.ts';

/** Where Linux describes its cores. */
const DEVICES = '/sys/devices';

/**
 * The cores of this process without efficiency cores, because all threads of a computation wait for the slowest one. `isTiny`: a
 * model whose work is too small to share.
 */
export function defaultThreads(isTiny = false): number {
  if (isTiny) return 1;
  const available = os.availableParallelism();
  return Math.min(available, loadAddon().performanceCores(DEVICES) || available);
}
