/** Log-probabilities, advantages and weights of one packed row -> the policy loss and its gradient per token. Pure, float64. */
import type { PolicyLossInputs } from '../protocol/index.ts';
import { type LossRow, maskedSum, readRow } from './loss-row.ts';
import { gainOf } from './objectives.ts';
import type { TrainingSettings } from './settings.ts';
import { EPSILON, type StepTotals } from './step-totals.ts';
import { correlationOf, type Moments, momentsOf } from './tally.ts';
import { tokenScales } from './token-scales.ts';

/** The loss, its gradient and metrics of the step. A metric without inputs is null. */
export type PolicyLoss = {
  readonly loss: number;
  /** (tokens) d(loss) / d(new_logprobs) */
  readonly grad_new_logprobs: Float64Array;
  /** Fraction of trained tokens whose ratio is outside the clip bounds. */
  readonly clip_fraction: number;
  /**
   * Correlation of the new probabilities and the sampler's (`original_logprobs`, otherwise `old_logprobs`), over tokens with known sampler
   * probabilities; null if undefined.
   */
  readonly probs_corr: number | null;
  /** Mean log-ratio to the reference, if it is penalized. */
  readonly kl_policy_ref: number | null;
  /** Weighted mean k3 estimate of the divergence from the reference. */
  readonly kl_div: number | null;
  /** Mean entropy of trained tokens. */
  readonly entropy: number | null;
  /** Preference losses: fraction of preferences that the policy agrees with, relative to the reference. */
  readonly preference_accuracy: number | null;
};

/** The loss of a row as a part of its step. */
export type RowLossParts = {
  /** Divided by the step's count, like the gradient. */
  readonly loss: number;
  readonly gradient: Float64Array; // (tokens) d(loss) / d(new_logprobs)
  readonly sums: LossSums;
};

/** Undivided sums of a row. A sum without inputs is null. */
export type LossSums = {
  readonly tokens: number;
  readonly loss: number;
  /** Divisor of `loss` if the row is the whole step, without the epsilon that keeps it from 0. */
  readonly lossCount: number;
  readonly clipped: number;
  readonly referenceGap: number | null;
  readonly divergence: number | null;
  readonly entropy: number | null;
  /** Preference losses: units, and how many of them the policy agrees with. */
  readonly preferences: { readonly units: number; readonly held: number } | null;
  /** Moments of the probabilities of the sampler and of the trainer. */
  readonly probabilities: Moments | null;
};

/** Converts a row that is the whole step to its public form. */
export function toPolicyLoss({ loss, gradient, sums }: RowLossParts): PolicyLoss {
  const mean = (sum: number | null) => (sum === null ? null : sum / (sums.tokens + EPSILON));
  const { preferences, probabilities } = sums;
  return {
    loss,
    grad_new_logprobs: gradient,
    clip_fraction: sums.tokens === 0 ? 0 : sums.clipped / sums.tokens,
    probs_corr: probabilities && correlationOf(probabilities),
    kl_policy_ref: mean(sums.referenceGap),
    kl_div: mean(sums.divergence),
    entropy: mean(sums.entropy),
    preference_accuracy: preferences && preferences.units > 0 ? preferences.held / preferences.units : null,
  };
}

/**
 * Computes the loss of one packed row.
 * @param totals totals of the step, if it has several rows
 */
export function rowLoss(
  inputs: PolicyLossInputs,
  settings: TrainingSettings,
  totals: StepTotals | null = null,
): RowLossParts {
  const row = readRow(inputs, settings, totals);
  const ratios = importanceRatios(row, settings.importance_sampling_level);
  const { loss, gradRatio, gradDirect } = surrogate(row, ratios.values, settings);
  return {
    loss: loss / row.lossDivisor,
    gradient: backpropagate(row, ratios, gradRatio, gradDirect, settings.importance_sampling_level),
    sums: {
      tokens: row.trainedCount,
      loss,
      lossCount: settings.loss_length === null ? row.trainedCount : row.sequenceCount * settings.loss_length,
      clipped: clippedCount(row, ratios.values, settings),
      referenceGap: settings.kl_penalty_coef > 0 ? referenceGap(row, settings) : null,
      divergence: row.reference ? k3(row) : null,
      entropy: row.entropies ? maskedSum(row, (i) => row.entropies![i]!) : null,
      preferences: null,
      probabilities: probabilities(row),
    },
  };
}

type Ratios = {
  readonly values: Float64Array; // (tokens) the ratio that weights each token
  readonly token: Float64Array; // (tokens) ratio of each single token
  readonly sequence: Float64Array; // (sequences) exp of the mean log-ratio over trained tokens
};

/** Returns the square root of both ratios' product, also if one of them is too large or too small for a float. */
function geometricMean(r: number, q: number, logR: number, logQ: number): number {
  const mean = Math.sqrt(r) * Math.sqrt(q);
  return mean > 0 && mean < Number.POSITIVE_INFINITY ? mean : Math.exp(logR / 2 + logQ / 2);
}

function importanceRatios(row: LossRow, level: TrainingSettings['importance_sampling_level']): Ratios {
  const differences = row.fresh.map((logprob, i) => logprob - row.old[i]!);
  const means = new Float64Array(row.sequenceLengths.length);
  for (let i = 0; i < row.count; i++) if (row.mask[i]) means[row.sequenceOf[i]!]! += differences[i]!;
  for (const [s, length] of row.sequenceLengths.entries()) means[s]! /= Math.max(1, length);
  const token = differences.map(Math.exp);
  const sequence = means.map(Math.exp);
  const values = token.map((r, i) => {
    const s = row.sequenceOf[i]!;
    const q = sequence[s]!;
    switch (level) {
      case 'token':
        return r;
      case 'sequence':
        return q;
      case 'average':
        return r / 2 + q / 2;
      case 'geometric_average':
        return geometricMean(r, q, differences[i]!, means[s]!);
      default:
        return level satisfies never;
    }
  });
  return { values, token, sequence };
}

/** Limit of a log-ratio without other bounds, and of the distance in k3: larger values would overflow. */
const LARGEST_LOG_RATIO = 20;

/** Returns the sum of weighted token losses, and its derivatives by each token's ratio and directly by its log-probability. */
function surrogate(row: LossRow, ratios: Float64Array, settings: TrainingSettings) {
  const low = 1 - settings.epsilon;
  const high = 1 + settings.epsilon_high;
  const cap = largestRatio(settings);
  const tau = settings.variant_k2_tau ?? 0;
  const { objective, kl_penalty_coef: penalty, kl_loss_coef: divergence } = settings;
  const meanGap = penalty > 0 ? (row.totals?.referenceGap ?? referenceGap(row, settings) / row.divisor) : 0;
  const scales = tokenScales(row, settings);
  const gradRatio = new Float64Array(row.count);
  const gradDirect = new Float64Array(row.count);
  let loss = 0;
  for (let i = 0; i < row.count; i++) {
    if (!row.mask[i]) continue;
    let advantage = row.advantages[i]!;
    if (tau > 0) advantage -= tau * (row.fresh[i]! - row.old[i]!);
    if (penalty > 0) advantage += penalty * (meanGap - gapAt(row, i, settings));
    advantage += entropyBonus(row, i, settings);
    const most = advantage < 0 ? Math.min(cap, settings.dual_clip ?? Number.POSITIVE_INFINITY) : cap;
    let ratio = Math.min(ratios[i]!, most);
    let isConstant = ratios[i]! > most;
    if (settings.mask_prob_ratio && !(ratio > low && ratio < high)) {
      ratio = 0;
      isConstant = true;
    }
    // A weight or advantage of 0 contributes nothing even if the ratio is infinite: 0 times infinity would be NaN.
    if (scales[i] !== 0 && (advantage !== 0 || objective === 'dro')) {
      const clipped = Math.min(Math.max(ratio, low), high);
      const token = { scale: scales[i]!, advantage, ratio, clipped, fresh: row.fresh[i]!, old: row.old[i]! };
      const { gain, byRatio, byLogprob } = gainOf(token, settings);
      loss -= gain;
      if (!isConstant) gradRatio[i] = -byRatio;
      gradDirect[i] = -byLogprob;
    }
    if (divergence > 0 && row.weights[i] !== 0) {
      const { value, slope } = divergenceOf(row, i, settings);
      loss += divergence * row.weights[i]! * value;
      gradDirect[i]! += divergence * row.weights[i]! * slope;
    }
  }
  return { loss, gradRatio, gradDirect };
}

/** Returns the upper limit of ratios, which holds for any advantage. */
function largestRatio(settings: TrainingSettings): number {
  const cap = settings.max_negative_advantage_importance_sampling_weight ?? Number.POSITIVE_INFINITY;
  return settings.objective === 'importance_sampling' ? Math.min(cap, Math.exp(LARGEST_LOG_RATIO)) : cap;
}

/** Returns the entropy bonus of a token's advantage, held constant (arXiv:2506.14758). */
function entropyBonus(row: LossRow, i: number, settings: TrainingSettings): number {
  const { entropy_advantage_coef: coefficient, entropy_advantage_kappa: kappa } = settings;
  if (coefficient === 0) return 0;
  return Math.min(coefficient * row.entropies![i]!, Math.abs(row.advantages[i]!) / kappa);
}

/** Returns the k3 estimate of a token's divergence from the reference, and its derivative by the log-probability. */
function divergenceOf(row: LossRow, i: number, { kl_loss_unbiased }: TrainingSettings) {
  const gap = row.reference![i]! - row.fresh[i]!;
  if (!kl_loss_unbiased) return { value: Math.exp(gap) - gap - 1, slope: 1 - Math.exp(gap) };
  const difference = row.fresh[i]! - row.old[i]!;
  const near = Math.min(gap, LARGEST_LOG_RATIO);
  const ratio = Math.exp(Math.min(difference, LARGEST_LOG_RATIO));
  const k3 = Math.exp(near) - near - 1;
  const ratioSlope = difference < LARGEST_LOG_RATIO ? ratio : 0;
  const k3Slope = gap < LARGEST_LOG_RATIO ? 1 - Math.exp(near) : 0;
  return { value: ratio * k3, slope: ratioSlope * k3 + ratio * k3Slope };
}

/** Propagates the derivatives by the ratios back to the log-probabilities: a sequence's ratio depends on all its tokens. */
function backpropagate(
  row: LossRow,
  ratios: Ratios,
  gradRatio: Float64Array,
  gradDirect: Float64Array,
  level: TrainingSettings['importance_sampling_level'],
): Float64Array {
  // d(ratio)/d(its own log-ratio) and d(ratio)/d(the sequence's mean log-ratio)
  const own = { token: 1, sequence: 0, average: 0.5, geometric_average: 0.5 }[level];
  const shared = { token: 0, sequence: 1, average: 0.5, geometric_average: 0.5 }[level];
  /** Returns the derivative through a ratio. The ratio may be infinite, or NaN for a masked token; a factor of 0 then gives 0. */
  const through = (i: number, share: number, ratio: number) => {
    if (gradRatio[i] === 0 || share === 0) return 0;
    return gradRatio[i]! * share * (level === 'geometric_average' ? ratios.values[i]! : ratio);
  };
  const sequenceSums = new Float64Array(ratios.sequence.length);
  for (let i = 0; i < row.count; i++) {
    const s = row.sequenceOf[i]!;
    sequenceSums[s]! += through(i, shared, ratios.sequence[s]!);
  }
  return gradDirect.map((direct, i) => {
    if (!row.mask[i]) return 0;
    const s = row.sequenceOf[i]!;
    const throughOwn = through(i, own, ratios.token[i]!);
    return (direct + throughOwn + sequenceSums[s]! / row.sequenceLengths[s]!) / row.lossDivisor;
  });
}

/** Returns the number of trained tokens whose ratio is outside the clip bounds. */
function clippedCount(row: LossRow, ratios: Float64Array, settings: TrainingSettings): number {
  const cap = settings.max_negative_advantage_importance_sampling_weight ?? Number.POSITIVE_INFINITY;
  let outside = 0;
  for (let i = 0; i < row.count; i++) {
    const ratio = Math.min(ratios[i]!, cap);
    if (row.mask[i] && (ratio < 1 - settings.epsilon || ratio > 1 + settings.epsilon_high)) outside++;
  }
  return outside;
}

/** Returns moments of pairs of a token's probability for the sampler and for the trainer, for tokens with both. */
function probabilities(row: LossRow): Moments {
  const [sampled, trained]: number[][] = [[], []];
  for (let i = 0; i < row.count; i++) {
    if (!row.isSampledKnown[i] || Number.isNaN(row.fresh[i])) continue;
    sampled!.push(Math.exp(row.sampled[i]!));
    trained!.push(Math.exp(row.fresh[i]!));
  }
  return momentsOf(sampled!, trained!);
}

function referenceGap(row: LossRow, settings: TrainingSettings): number {
  return maskedSum(row, (i) => gapAt(row, i, settings));
}

/** Returns the log-ratio of the penalized policy to the reference at a token. */
function gapAt(row: LossRow, i: number, { kl_penalty_source }: TrainingSettings): number {
  return (kl_penalty_source === 'sample' ? row.old : row.fresh)[i]! - row.reference![i]!;
}

function k3(row: LossRow): number {
  return maskedSum(row, (i) => {
    if (row.weights[i] === 0) return 0; // for infinite numbers, 0 times infinity would be NaN
    const gap = row.reference![i]! - row.fresh[i]!;
    return (Math.exp(gap) - gap - 1) * row.weights[i]!;
  });
}
