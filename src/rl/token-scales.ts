/** A row and the settings -> the factor of each token's loss, held constant: its weight, corrections for the sampler, masks. Pure. */
import type { LossRow } from './loss-row.ts';
import type { TrainingSettings } from './settings.ts';
import { upperQuantile } from './step-totals.ts';

/** Returns the factors, (tokens). A token with factor 0 does not count. */
export function tokenScales(row: LossRow, settings: TrainingSettings): Float64Array {
  const scales = row.weights.map((weight, i) => weight * truncation(row, i, settings));
  if (settings.sampler_correction) correctSampler(scales, row, settings);
  if (settings.off_policy_mask_threshold !== null)
    maskFarAnswers(scales, row, settings.off_policy_mask_threshold);
  if (settings.dppo_mask_low !== null || settings.dppo_mask_high !== null)
    maskFarTokens(scales, row, settings);
  if (settings.ipo_mask !== null) maskMovedTokens(scales, row, settings.ipo_mask);
  if (settings.top_entropy_quantile < 1) maskSureTokens(scales, row, settings.top_entropy_quantile);
  return scales;
}

/** Returns the ratio of the trainer's old probability to the sampler's, truncated at the setting. */
function truncation(row: LossRow, i: number, settings: TrainingSettings): number {
  const most = settings.truncated_importance_sampling;
  if (most === null || !row.original || Number.isNaN(row.original[i]!)) return 1;
  return Math.min(Math.exp(row.old[i]! - row.original[i]!), most);
}

/**
 * Applies the sampler correction: tokens are masked as in IcePop, sequences are masked and capped as in TRL and verl. A token without a
 * sampler probability has ratio 1.
 */
function correctSampler(scales: Float64Array, row: LossRow, settings: TrainingSettings): void {
  const { sampler_correction: kind, sampler_correction_min: least, sampler_correction_max: most } = settings;
  const differences = row.old.map((logprob, i) => logprob - row.sampled[i]!);
  const isMean = kind === 'sequence_mean_mask' || kind === 'sequence_mean_cap';
  const isCap = kind === 'sequence_cap' || kind === 'sequence_mean_cap';
  const sums = sequenceSums(row, differences);
  for (let i = 0; i < row.count; i++) {
    const s = row.sequenceOf[i]!;
    const log = isMean ? sums[s]! / Math.max(1, row.sequenceLengths[s]!) : sums[s]!;
    const lift = Math.exp(kind === 'token_mask' ? differences[i]! : log);
    if (isCap) scales[i]! *= Math.min(lift, most);
    else scales[i] = lift >= least && lift <= most ? scales[i]! * lift : 0;
  }
}

/** Masks bad answers that have become very unlikely under the policy, as in DeepSeek-V3.2. */
function maskFarAnswers(scales: Float64Array, row: LossRow, threshold: number): void {
  const sums = sequenceSums(
    row,
    row.sampled.map((logprob, i) => logprob - row.fresh[i]!),
  );
  for (let i = 0; i < row.count; i++) {
    const s = row.sequenceOf[i]!;
    if (row.advantages[i]! < 0 && sums[s]! / row.sequenceLengths[s]! > threshold) scales[i] = 0;
  }
}

/** Masks tokens that a step would move further out of the trust region: DPPO (arXiv:2602.04879) by total variation, as in prime-rl. */
function maskFarTokens(scales: Float64Array, row: LossRow, settings: TrainingSettings): void {
  const low = settings.dppo_mask_low ?? Number.POSITIVE_INFINITY;
  const high = settings.dppo_mask_high ?? Number.POSITIVE_INFINITY;
  for (let i = 0; i < row.count; i++) {
    const moved = movedBy(row, i);
    if (row.advantages[i]! > 0 ? moved > high : moved < -low) scales[i] = 0;
  }
}

/** Masks tokens on which trainer and sampler disagree, in either direction: IPO, as in prime-rl. */
function maskMovedTokens(scales: Float64Array, row: LossRow, most: number): void {
  for (let i = 0; i < row.count; i++) if (Math.abs(movedBy(row, i)) > most) scales[i] = 0;
}

/** Returns a token's probability under the new weights minus that of the sampler. */
function movedBy(row: LossRow, i: number): number {
  return Math.exp(row.fresh[i]!) - Math.exp(row.sampled[i]!);
}

/** Keeps the tokens with the highest entropy (arXiv:2506.01939): those from a quantile up, as in TRL. */
function maskSureTokens(scales: Float64Array, row: LossRow, share: number): void {
  const limit =
    row.totals?.entropyLimit ??
    upperQuantile(
      row.entropies!.filter((_, i) => row.mask[i]),
      share,
    );
  for (let i = 0; i < row.count; i++) if (!(row.entropies![i]! >= limit)) scales[i] = 0;
}

/** (sequences) over trained tokens. */
function sequenceSums(row: LossRow, values: Float64Array): Float64Array {
  const sums = new Float64Array(row.sequenceLengths.length);
  for (let i = 0; i < row.count; i++) if (row.mask[i]) sums[row.sequenceOf[i]!]! += values[i]!;
  return sums;
}
