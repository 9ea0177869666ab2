/** Log-probabilities, advantages and weights of one packed row -> the policy loss and its gradient per token. Pure, float64. */
import { checkArguments, type PolicyLossInputs } from '../protocol/index.ts';
import { readColumn, requireKnown } from './columns.ts';
import { type ExperimentalConfig, resolveSettings, type TrainingSettings } from './settings.ts';

/** The loss, its gradient and metrics of the step. A metric without inputs is null. */
export type PolicyLoss = {
  readonly loss: number;
  /** (tokens) d(loss) / d(new_logprobs) */
  readonly grad_new_logprobs: Float64Array;
  /** Fraction of trained tokens whose ratio is outside the clip bounds. */
  readonly clip_fraction: number;
  /** Correlation of old and new probabilities where the old ones are known; null if undefined. */
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

const EPSILON = 1e-6;

/** Computes the loss of one packed row under `experimental_config`. */
export function policyLoss(
  inputs: PolicyLossInputs,
  experimentalConfig?: ExperimentalConfig | null,
): PolicyLoss {
  checkArguments('PolicyLossInputs', inputs);
  return rowLoss(inputs, resolveSettings(experimentalConfig));
}

/** The same under settings that are complete. */
export function rowLoss(inputs: PolicyLossInputs, settings: TrainingSettings): PolicyLoss {
  const row = readRow(inputs, settings);
  const ratios = importanceRatios(row, settings.importance_sampling_level);
  const { loss, gradRatio, gradDirect } = surrogate(row, ratios.values, settings);
  return {
    loss: loss / row.lossDivisor,
    grad_new_logprobs: backpropagate(row, ratios, gradRatio, gradDirect, settings.importance_sampling_level),
    clip_fraction: clipFraction(row, ratios.values, settings),
    probs_corr: correlation(row),
    kl_policy_ref: settings.kl_penalty_coef > 0 ? meanReferenceGap(row) : null,
    kl_div: row.reference ? k3(row) : null,
    entropy: row.entropies ? maskedMean(row, row.entropies) : null,
    preference_accuracy: null,
  };
}

type Row = {
  readonly count: number;
  readonly fresh: Float64Array; // (tokens) new log-probabilities
  readonly old: Float64Array; // (tokens) new ones where unknown
  readonly isOldKnown: Uint8Array; // (tokens)
  readonly reference: Float64Array | null; // (tokens)
  readonly original: Float64Array | null; // (tokens)
  readonly entropies: Float64Array | null; // (tokens)
  readonly advantages: Float64Array; // (tokens)
  readonly weights: Float64Array; // (tokens) 0 where masked
  readonly mask: Uint8Array; // (tokens)
  readonly sequenceOf: Int32Array; // (tokens) dense index of the token's sequence
  readonly sequenceLengths: Float64Array; // (sequences) trained tokens
  readonly trainedCount: number;
  readonly divisor: number;
  /** What the loss and its gradient are divided by. */
  readonly lossDivisor: number;
};

/** Checks columns, fills unknown old log-probabilities, and makes masked tokens weigh nothing. */
function readRow(inputs: PolicyLossInputs, settings: TrainingSettings): Row {
  const fresh = readColumn('new_logprobs', inputs.new_logprobs);
  const count = fresh.length;
  const read = (name: keyof PolicyLossInputs): Float64Array => readColumn(name, inputs[name], count);
  const old = read('old_logprobs');
  const isOldKnown = Uint8Array.from(old, (value) => (Number.isNaN(value) ? 0 : 1));
  const mask = Uint8Array.from(read('mask'), (value) => (value > 0 ? 1 : 0));
  const weights = read('weights');
  const advantages = read('advantages');
  requireKnown({ weights, advantages }, mask);
  const isReferenceUsed = settings.kl_penalty_coef > 0 || settings.kl_loss_coef > 0;
  const reference = inputs.ref_logprobs || isReferenceUsed ? read('ref_logprobs') : null;
  if (reference && isReferenceUsed) requireKnown({ ref_logprobs: reference }, mask);
  const ids = read('sequence_ids');
  const dense = new Map<number, number>();
  const sequenceOf = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    if (!isOldKnown[i]) old[i] = fresh[i]!;
    weights[i] = mask[i] ? (settings.normalize_by_length ? weights[i]! : 1) : 0;
    if (!dense.has(ids[i]!)) dense.set(ids[i]!, dense.size);
    sequenceOf[i] = dense.get(ids[i]!)!;
  }
  const sequenceLengths = new Float64Array(dense.size);
  for (let i = 0; i < count; i++) sequenceLengths[sequenceOf[i]!]! += mask[i]!;
  const trainedCount = mask.reduce((sum, value) => sum + value, 0);
  return {
    count,
    fresh,
    old,
    isOldKnown,
    reference,
    original: inputs.original_logprobs ? read('original_logprobs') : null,
    entropies: inputs.entropies ? read('entropies') : null,
    advantages,
    weights,
    mask,
    sequenceOf,
    sequenceLengths,
    trainedCount,
    divisor: trainedCount + EPSILON,
    lossDivisor:
      settings.loss_length === null
        ? trainedCount + EPSILON
        : Math.max(1, sequenceLengths.filter((length) => length > 0).length) * settings.loss_length,
  };
}

type Ratios = {
  readonly values: Float64Array; // (tokens) the ratio that weighs each token
  readonly token: Float64Array; // (tokens) each token's own
  readonly sequence: Float64Array; // (sequences) exp of the mean log-ratio over trained tokens
};

/** The square root of both ratios' product, also where one of them is too large or too small for a float. */
function geometricMean(r: number, q: number, logR: number, logQ: number): number {
  const mean = Math.sqrt(r) * Math.sqrt(q);
  return mean > 0 && mean < Number.POSITIVE_INFINITY ? mean : Math.exp(logR / 2 + logQ / 2);
}

function importanceRatios(row: Row, level: TrainingSettings['importance_sampling_level']): Ratios {
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

/** The sum of weighted token losses, and its derivatives by each token's ratio and directly by its log-probability. */
function surrogate(row: Row, ratios: Float64Array, settings: TrainingSettings) {
  const low = 1 - settings.epsilon;
  const high = 1 + settings.epsilon_high;
  const cap = settings.max_negative_advantage_importance_sampling_weight ?? Number.POSITIVE_INFINITY;
  const tau = settings.variant_k2_tau ?? 0;
  const { kl_penalty_coef: penalty, kl_loss_coef: divergence } = settings;
  const referenceGap = penalty > 0 ? meanReferenceGap(row) : 0;
  const gradRatio = new Float64Array(row.count);
  const gradDirect = new Float64Array(row.count);
  let loss = 0;
  for (let i = 0; i < row.count; i++) {
    if (!row.mask[i]) continue;
    let ratio = Math.min(ratios[i]!, cap);
    let isConstant = ratios[i]! > cap;
    if (settings.mask_prob_ratio && !(ratio > low && ratio < high)) {
      ratio = 0;
      isConstant = true;
    }
    let advantage = row.advantages[i]!;
    if (tau > 0) advantage -= tau * (row.fresh[i]! - row.old[i]!);
    if (penalty > 0) advantage += penalty * (referenceGap - (row.fresh[i]! - row.reference![i]!));
    const clipped = Math.min(Math.max(ratio, low), high);
    const scale = row.weights[i]! * truncation(row, i, settings);
    // A weight or advantage of 0 counts nothing, however large the ratio: 0 times infinity would be NaN.
    if (scale !== 0 && advantage !== 0) {
      if (settings.ppo) {
        const isClipped = clipped * advantage < ratio * advantage;
        loss -= scale * (isClipped ? clipped : ratio) * advantage;
        if (!isClipped && !isConstant) gradRatio[i] = -scale * advantage;
      } else {
        loss -= scale * clipped * advantage * row.fresh[i]!;
        gradDirect[i] = -scale * clipped * advantage;
      }
    }
    if (divergence > 0 && row.weights[i] !== 0) {
      const gap = row.reference![i]! - row.fresh[i]!;
      loss += divergence * row.weights[i]! * (Math.exp(gap) - gap - 1);
      gradDirect[i]! += divergence * row.weights[i]! * (1 - Math.exp(gap));
    }
  }
  return { loss, gradRatio, gradDirect };
}

/** How far the trainer's own old probabilities may lift the sampler's: a factor of at most the setting, held constant. */
function truncation(row: Row, i: number, settings: TrainingSettings): number {
  const most = settings.truncated_importance_sampling;
  if (most === null || !row.original || Number.isNaN(row.original[i]!)) return 1;
  return Math.min(Math.exp(row.old[i]! - row.original[i]!), most);
}

/** Carries the derivatives by the ratios back to the log-probabilities: a sequence's ratio depends on all its tokens. */
function backpropagate(
  row: Row,
  ratios: Ratios,
  gradRatio: Float64Array,
  gradDirect: Float64Array,
  level: TrainingSettings['importance_sampling_level'],
): Float64Array {
  // d(ratio)/d(its own log-ratio) and d(ratio)/d(the sequence's mean log-ratio)
  const own = { token: 1, sequence: 0, average: 0.5, geometric_average: 0.5 }[level];
  const shared = { token: 0, sequence: 1, average: 0.5, geometric_average: 0.5 }[level];
  /** The derivative through a ratio, which may be infinite, or NaN of a masked token, where it does not count. */
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

function clipFraction(row: Row, ratios: Float64Array, settings: TrainingSettings): number {
  const cap = settings.max_negative_advantage_importance_sampling_weight ?? Number.POSITIVE_INFINITY;
  let outside = 0;
  for (let i = 0; i < row.count; i++) {
    const ratio = Math.min(ratios[i]!, cap);
    if (row.mask[i] && (ratio < 1 - settings.epsilon || ratio > 1 + settings.epsilon_high)) outside++;
  }
  return row.trainedCount === 0 ? 0 : outside / row.trainedCount;
}

/** Pearson correlation of the probabilities, over tokens where both are known. */
function correlation(row: Row): number | null {
  const known = [...row.isOldKnown.keys()].filter((i) => row.isOldKnown[i] && !Number.isNaN(row.fresh[i]));
  const mean = (values: Float64Array) =>
    known.reduce((sum, i) => sum + Math.exp(values[i]!), 0) / known.length;
  const meanOld = mean(row.old);
  const meanNew = mean(row.fresh);
  let [both, squareOld, squareNew] = [0, 0, 0];
  for (const i of known) {
    const a = Math.exp(row.old[i]!) - meanOld;
    const b = Math.exp(row.fresh[i]!) - meanNew;
    both += a * b;
    squareOld += a * a;
    squareNew += b * b;
  }
  const result = both / (Math.sqrt(squareOld) * Math.sqrt(squareNew));
  return Number.isFinite(result) ? result : null;
}

function meanReferenceGap(row: Row): number {
  return maskedMean(
    row,
    row.fresh.map((logprob, i) => logprob - row.reference![i]!),
  );
}

function k3(row: Row): number {
  let sum = 0;
  for (let i = 0; i < row.count; i++) {
    if (row.weights[i] === 0) continue; // masked, too
    const gap = row.reference![i]! - row.fresh[i]!;
    sum += (Math.exp(gap) - gap - 1) * row.weights[i]!;
  }
  return sum / row.divisor;
}

function maskedMean(row: Row, values: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < row.count; i++) if (row.mask[i]) sum += values[i]!;
  return sum / row.divisor;
}
