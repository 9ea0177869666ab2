/** A model's heads and its cache -> whether the kernels of `native/attention` compute its attention. */

import type { CacheType } from '../protocol/index.ts';
import type { ModelShape } from './memory.ts';

/** Types of caches that they read. */
export const OWN_CELLS: readonly CacheType[] = ['f16', 'q8_0', 'f32'];
/** What the size of a head is a multiple of. */
const HEAD_UNIT = 32;

/** True also for models whose attention has an extra that they lack (capped scores, ALiBi, sinks): the engine's runs then. */
export function fitsOwnAttention(
  { keySize, valueSize }: Pick<ModelShape, 'keySize' | 'valueSize'>,
  cacheType: CacheType,
): boolean {
  return OWN_CELLS.includes(cacheType) && keySize % HEAD_UNIT === 0 && valueSize % HEAD_UNIT === 0;
}
