/** The columns of a packed row and settings -> its loss, the gradient by each log-probability, and metrics. */
import type { PolicyLossInputs } from '../protocol/index.ts';
import type { LossPool } from './loss-pool.ts';
import type { TrainingSettings } from './settings.ts';
import type { RowLoss } from './steps.ts';

/** `scale`: what loss and gradient are multiplied by. A row's targets are the trained tokens: none is masked. */
export async function rowGradient(
  columns: Omit<PolicyLossInputs, 'mask'>,
  settings: TrainingSettings,
  scale: number,
  lossPool: LossPool,
): Promise<RowLoss> {
  const mask = new Uint8Array(columns.new_logprobs.length).fill(1);
  const loss = await lossPool.compute({ ...columns, mask }, settings);
  return {
    loss: loss.loss * scale,
    gradient: Float32Array.from(loss.grad_new_logprobs, (value) => value * scale),
    metrics: {
      'loss/train': loss.loss,
      'loss/entropy': loss.entropy,
      'loss/kl_div': loss.kl_div,
      'loss/kl_policy_ref': loss.kl_policy_ref,
      'train/clip_fraction': loss.clip_fraction,
      'train/probs_corr': loss.probs_corr,
      'train/preference_accuracy': loss.preference_accuracy,
    },
  };
}
