/** The columns of a packed row and settings -> its loss, the gradient by each log-probability, and its contribution to the metrics. */
import type { PolicyLossInputs } from '../protocol/index.ts';
import type { LossSums } from './loss.ts';
import type { LossPool } from './loss-pool.ts';
import type { TrainingSettings } from './settings.ts';
import type { StepTotals } from './step-totals.ts';
import type { RowLoss } from './steps.ts';
import type { Tally } from './tally.ts';

/**
 * Computes the loss of a row whose targets are all trained, so that no mask is needed.
 * @param totals totals of the step; null if the row is the whole step
 */
export async function rowGradient(
  columns: Omit<PolicyLossInputs, 'mask'>,
  settings: TrainingSettings,
  totals: StepTotals | null,
  lossPool: LossPool,
): Promise<RowLoss> {
  const mask = new Uint8Array(columns.new_logprobs.length).fill(1);
  const { loss, gradient, sums } = await lossPool.compute({ ...columns, mask }, settings, totals);
  return { loss, gradient: Float32Array.from(gradient), tally: toTally(sums) };
}

/** Adds the cross-entropy of a row's observation tokens to its policy loss: a mean over those of the optimizer step. */
export function withObservations(
  policy: RowLoss,
  logprobs: Float32Array, // (observation targets)
  weights: Float64Array, // (observation targets)
  count: number, // observation targets of the step
): RowLoss {
  let [loss, sum] = [0, 0];
  for (const [i, weight] of weights.entries()) {
    sum -= logprobs[i]!;
    loss -= weight * logprobs[i]!;
  }
  const gradient = new Float32Array(policy.gradient.length + weights.length);
  gradient.set(policy.gradient);
  gradient.set(
    weights.map((weight) => -weight / count),
    policy.gradient.length,
  );
  const { means, correlations } = policy.tally;
  return {
    loss: policy.loss + loss / count,
    gradient,
    tally: { means: { ...means, 'loss/observation': [sum, weights.length] }, correlations },
  };
}

function toTally(sums: LossSums): Tally {
  const { tokens, preferences, probabilities } = sums;
  const overTokens = {
    'loss/entropy': sums.entropy,
    'loss/kl_div': sums.divergence,
    'loss/kl_policy_ref': sums.referenceGap,
    'train/clip_fraction': sums.clipped,
  };
  const means: Record<string, [number, number]> = { 'loss/train': [sums.loss, sums.lossCount] };
  for (const [name, sum] of Object.entries(overTokens)) if (sum !== null) means[name] = [sum, tokens];
  if (preferences) means['train/preference_accuracy'] = [preferences.held, preferences.units];
  return { means, correlations: probabilities ? { 'train/probs_corr': probabilities } : {} };
}
