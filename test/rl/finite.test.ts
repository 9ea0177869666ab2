/** Gradients that are not finite reach no native code, and cost one step. */
import { expect, it, vi } from 'vitest';
import { ADAPTER_ADAMW } from '../../src/rl/optimizer.ts';
import { serialTrainer } from '../../src/rl/serial-trainer.ts';

const native = {
  step: vi.fn(async () => ({ gradNorm: 1, isApplied: true })),
  zeroGradients: vi.fn(),
  clearAbort() {},
  abort() {},
  close() {},
};

it.each([
  ['finite ones', [[1, -2], [0]], true],
  ['NaN', [[1, Number.NaN], [0]], false],
  ['infinity in the last of several', [[1], [0, Number.NEGATIVE_INFINITY]], false],
])('after %s a step is applied or not, and the next one is', async (_, numbers, isApplied) => {
  native.zeroGradients.mockClear();
  const { takeGradients, calls } = serialTrainer(native, ADAPTER_ADAMW);
  const taken = numbers.map((row) => takeGradients(Float32Array.from(row)));
  expect(taken.every(Boolean)).toBe(isApplied);
  expect((await calls.step({ learningRate: 1 })).isApplied).toBe(isApplied);
  expect(native.zeroGradients).toHaveBeenCalledTimes(isApplied ? 0 : 1);
  expect((await calls.step({ learningRate: 1 })).isApplied).toBe(true);
});
