/** A model's heads and its cache -> whether the kernels of `native/kernels/attention` compute its attention. */

import type { CacheType } from '../../protocol/index.ts';
import type { ModelShape } from './memory.ts';

/** Types of caches that these kernels read. */
export const OWN_CELLS: readonly CacheType[] = ['f16', 'q8_0', 'f32'];
/** The size of a head must be a multiple of this. */
const HEAD_UNIT = 32;

/**
 * Returns true also for models whose attention has an extra that the kernels lack (capped scores, ALiBi, sinks): the engine's attention
 * runs then.
 */
export function fitsOwnAttention(
  { keySize, valueSize }: Pick<ModelShape, 'keySize' | 'valueSize'>,
  cacheType: CacheType,
): boolean {
  return OWN_CELLS.includes(cacheType) && keySize % HEAD_UNIT === 0 && valueSize % HEAD_UNIT === 0;
}
