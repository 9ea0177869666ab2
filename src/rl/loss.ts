/** Log-probabilities, advantages and weights of one packed row -> the policy loss and its gradient per token. Pure, float64. */
import { OnpolicyError } from '../errors.ts';
import { type ExperimentalConfig, resolveSettings, type TrainingSettings } from './settings.ts';

/** Numbers per token; `null` or NaN where unknown. */
export type Column = ArrayLike<number | null>;

/** One packed row, aligned per token; every column has the same length. */
export type PolicyLossInputs = {
  /** Under the weights being trained. */
  readonly new_logprobs: Column;
  /** Under the weights that sampled. Unknown: taken as equal to the new one. */
  readonly old_logprobs: Column;
  /** Under the reference weights. */
  readonly ref_logprobs?: Column | null | undefined;
  /** What the sampler reported, when `old_logprobs` were recomputed by the trainer. */
  readonly original_logprobs?: Column | null | undefined;
  readonly advantages: Column;
  readonly weights: Column;
  /** 1 = trained on. */
  readonly mask: Column;
  /** Which sequence a token belongs to. */
  readonly sequence_ids: Column;
  /** Entropy of each token's distribution, for the metric. */
  readonly entropies?: Column | null | undefined;
};

/** The loss, its gradient and what it says about the step. A metric that has no inputs is null. */
export type PolicyLoss = {
  readonly loss: number;
  /** (tokens) d(loss) / d(new_logprobs) */
  readonly grad_new_logprobs: Float64Array;
  /** Share of trained tokens whose ratio lies outside the clip bounds. */
  readonly clip_fraction: number;
  /** Correlation of old and new probabilities where the old ones are known; null when it is undefined. */
  readonly probs_corr: number | null;
  /** Mean log-ratio to the reference, when it is penalised. */
  readonly kl_policy_ref: number | null;
  /** Weighted mean k3 estimate of the divergence from the reference. */
  readonly kl_div: number | null;
  /** Mean entropy of trained tokens. */
  readonly entropy: number | null;
  /** Of a preference loss: share of preferences that the policy holds, compared with the reference. */
  readonly preference_accuracy: number | null;
};

const EPSILON = 1e-6;

/** Computes the loss of one packed row under `experimental_config`. */
export function policyLoss(
  inputs: PolicyLossInputs,
  experimentalConfig: ExperimentalConfig = {},
): PolicyLoss {
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
    kl_policy_ref: row.reference && settings.kl_penalty_coef > 0 ? meanReferenceGap(row) : null,
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

/** Checks lengths, fills unknown old log-probabilities, and makes masked tokens weigh nothing. */
function readRow(inputs: PolicyLossInputs, settings: TrainingSettings): Row {
  const count = inputs.new_logprobs.length;
  const read = (name: keyof PolicyLossInputs): Float64Array => {
    const column = inputs[name]!;
    if (column.length !== count)
      throw new OnpolicyError('INVALID_REQUEST', `${name}: expected ${count} entries, got ${column.length}`, {
        param: name,
      });
    return Float64Array.from(column, (value) => value ?? Number.NaN);
  };
  const fresh = read('new_logprobs');
  const old = read('old_logprobs');
  const isOldKnown = Uint8Array.from(old, (value) => (Number.isNaN(value) ? 0 : 1));
  const mask = Uint8Array.from(read('mask'), (value) => (value > 0 ? 1 : 0));
  const weights = read('weights');
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
    reference: inputs.ref_logprobs ? read('ref_logprobs') : null,
    original: inputs.original_logprobs ? read('original_logprobs') : null,
    entropies: inputs.entropies ? read('entropies') : null,
    advantages: read('advantages'),
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

function importanceRatios(row: Row, level: TrainingSettings['importance_sampling_level']): Ratios {
  const token = new Float64Array(row.count);
  const sums = new Float64Array(row.sequenceLengths.length);
  for (let i = 0; i < row.count; i++) {
    const difference = row.fresh[i]! - row.old[i]!;
    token[i] = Math.exp(difference);
    if (row.mask[i]) sums[row.sequenceOf[i]!]! += difference;
  }
  const sequence = sums.map((sum, s) => Math.exp(sum / Math.max(1, row.sequenceLengths[s]!)));
  const values = token.map((r, i) => {
    const q = sequence[row.sequenceOf[i]!]!;
    switch (level) {
      case 'token':
        return r;
      case 'sequence':
        return q;
      case 'average':
        return (r + q) / 2;
      case 'geometric_average':
        return Math.sqrt(r) * Math.sqrt(q);
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
  const penalty = row.reference ? settings.kl_penalty_coef : 0;
  const divergence = row.reference ? settings.kl_loss_coef : 0;
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
    let advantage = row.advantages[i]! - tau * (row.fresh[i]! - row.old[i]!);
    if (penalty > 0) advantage += penalty * (referenceGap - (row.fresh[i]! - row.reference![i]!));
    const clipped = Math.min(Math.max(ratio, low), high);
    const scale = row.weights[i]! * truncation(row, i, settings);
    if (settings.ppo) {
      const isClipped = clipped * advantage < ratio * advantage;
      loss -= scale * (isClipped ? clipped : ratio) * advantage;
      if (!isClipped && !isConstant) gradRatio[i] = -scale * advantage;
    } else {
      loss -= scale * clipped * advantage * row.fresh[i]!;
      gradDirect[i] = -scale * clipped * advantage;
    }
    if (divergence > 0) {
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
  const partOf = (i: number, part: number) => (level === 'geometric_average' ? ratios.values[i]! : part);
  const sequenceSums = new Float64Array(ratios.sequence.length);
  for (let i = 0; i < row.count; i++) {
    const s = row.sequenceOf[i]!;
    sequenceSums[s]! += gradRatio[i]! * shared * partOf(i, ratios.sequence[s]!);
  }
  return gradRatio.map((grad, i) => {
    if (!row.mask[i]) return 0;
    const s = row.sequenceOf[i]!;
    const throughOwn = grad * own * partOf(i, ratios.token[i]!);
    return (gradDirect[i]! + throughOwn + sequenceSums[s]! / row.sequenceLengths[s]!) / row.lossDivisor;
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

/** Pearson correlation of the probabilities, over tokens whose old one is known. */
function correlation(row: Row): number | null {
  const known = [...row.isOldKnown.keys()].filter((i) => row.isOldKnown[i] === 1);
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
  const product = Math.sqrt(squareOld) * Math.sqrt(squareNew);
  return product > 0 ? both / product : null;
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
    if (!row.mask[i]) continue;
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
