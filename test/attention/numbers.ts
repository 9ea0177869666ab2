/** Inputs of the kernels of `native/kernels/attention`, and how far results are from those of 64-bit sums. */
import { testing as addon } from '../addon/testing-addon.ts';
import { toHalf } from '../matmul/formats.ts';
import { normals } from '../rl/tiny-model.ts';

/** Names of the sets of instructions that this processor has. */
export const KERNELS = addon.attentionKernels();

/** Returns random numbers far enough from 0 that 16 bits hold them as normal numbers. */
export function numbers(count: number, seed: number): Float64Array {
  const normal = normals(seed);
  return Float64Array.from({ length: count }, () => {
    const value = normal();
    return Math.sign(value) * toHalf(Math.max(Math.abs(value), 0.01));
  });
}

/** Returns the largest absolute difference. */
export const difference = (got: Float32Array, expected: readonly number[]): number =>
  Math.max(...expected.map((value, i) => Math.abs(value - got[i]!)));
