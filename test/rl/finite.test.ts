/** Gradients that are not finite reach no native code, and cost one step. */
import { expect, it, vi } from 'vitest';
import { FiniteGradients } from '../../src/rl/finite.ts';

const OPTIONS = { learningRate: 1, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0, maxGradNorm: 1 };

it.each([
  ['finite ones', [[1, -2], [0]], true],
  ['NaN', [[1, Number.NaN], [0]], false],
  ['infinity in the last of several', [[1], [0, Number.NEGATIVE_INFINITY]], false],
])('after %s a step is applied or not, and the next one is', async (_, numbers, isApplied) => {
  const native = {
    step: vi.fn(async () => ({ gradNorm: 1, isApplied: true })),
    zeroGradients: vi.fn(),
  };
  const gradients = new FiniteGradients();
  const taken = numbers.map((row) => gradients.take(Float32Array.from(row)));
  expect(taken.every(Boolean)).toBe(isApplied);
  expect((await gradients.step(native, OPTIONS)).isApplied).toBe(isApplied);
  expect(native.zeroGradients).toHaveBeenCalledTimes(isApplied ? 0 : 1);
  expect((await gradients.step(native, OPTIONS)).isApplied).toBe(true);
});
