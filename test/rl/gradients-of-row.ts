/** A trainer, a row and the gradients of its log-probabilities -> the gradients of its adapter. */
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import type { PackedRow } from '../../src/protocol/index.ts';
import type { Trainer } from '../../src/rl/trainer.ts';

export async function gradientsOfRow(
  trainer: Trainer,
  given: PackedRow,
  gradient: Float32Array,
): Promise<AdapterWeights> {
  await trainer.forward(given);
  await trainer.backward(gradient);
  const gradients = trainer.gradients();
  await trainer.zeroGradients();
  return gradients;
}
