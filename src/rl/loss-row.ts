/** Columns of a packed row in a caller's form -> checked columns without gaps, and its lengths. */
import type { PolicyLossInputs } from '../protocol/index.ts';
import { readColumn, requireKnown, viewColumn } from './columns.ts';
import type { TrainingSettings } from './settings.ts';
import { divisorOf, EPSILON, type StepTotals } from './step-totals.ts';

/** One packed row, checked and complete. */
export type LossRow = {
  readonly count: number;
  readonly fresh: Float64Array; // (tokens) new log-probabilities
  readonly old: Float64Array; // (tokens) new ones where unknown
  readonly isOldKnown: Uint8Array; // (tokens)
  readonly reference: Float64Array | null; // (tokens)
  readonly original: Float64Array | null; // (tokens) the sampler's, NaN where unknown
  readonly sampled: Float64Array; // (tokens) the sampler's, else the old ones
  readonly isSampledKnown: Uint8Array; // (tokens) whether the sampler reported it
  readonly entropies: Float64Array | null; // (tokens)
  readonly advantages: Float64Array; // (tokens)
  readonly weights: Float64Array; // (tokens) 0 where masked
  readonly mask: Uint8Array; // (tokens)
  readonly sequenceOf: Int32Array; // (tokens) dense index of the token's sequence
  readonly sequenceLengths: Float64Array; // (sequences) trained tokens
  readonly trainedCount: number;
  readonly divisor: number;
  /** Sequences with trained tokens. */
  readonly sequenceCount: number;
  /** Divisor of the loss and its gradient. */
  readonly lossDivisor: number;
  /** Totals of a step with several rows. Null if the row is the whole step. */
  readonly totals: StepTotals | null;
};

/** Checks columns, fills unknown old log-probabilities, and sets the weights of masked tokens to 0. */
export function readRow(
  inputs: PolicyLossInputs,
  settings: TrainingSettings,
  totals: StepTotals | null = null,
): LossRow {
  const fresh = viewColumn('new_logprobs', inputs.new_logprobs);
  const count = fresh.length;
  const read = (name: keyof PolicyLossInputs): Float64Array => viewColumn(name, inputs[name], count);
  const copy = (name: keyof PolicyLossInputs): Float64Array => readColumn(name, inputs[name], count);
  const old = copy('old_logprobs');
  const isOldKnown = Uint8Array.from(old, (value) => (Number.isNaN(value) ? 0 : 1));
  const mask = Uint8Array.from(read('mask'), (value) => (value > 0 ? 1 : 0));
  const weights = copy('weights');
  const advantages = read('advantages');
  requireKnown({ weights, advantages }, mask);
  const isReferenceUsed = settings.kl_penalty_coef > 0 || settings.kl_loss_coef > 0;
  const reference = inputs.ref_logprobs || isReferenceUsed ? read('ref_logprobs') : null;
  if (reference && isReferenceUsed) requireKnown({ ref_logprobs: reference }, mask);
  const needsEntropy = settings.top_entropy_quantile < 1 || settings.entropy_advantage_coef > 0;
  const entropies = inputs.entropies || needsEntropy ? read('entropies') : null;
  if (entropies && needsEntropy) requireKnown({ entropies }, mask);
  const needsOriginal = inputs.original_logprobs || settings.sampler_correction;
  const original = needsOriginal ? read('original_logprobs') : null;
  const ids = read('sequence_ids');
  const dense = new Map<number, number>();
  const sequenceOf = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    if (!isOldKnown[i]) old[i] = fresh[i]!;
    weights[i] = mask[i] ? (settings.normalize_by_length ? weights[i]! : 1) : 0;
    if (i > 0 && ids[i] === ids[i - 1]) sequenceOf[i] = sequenceOf[i - 1]!;
    else {
      if (!dense.has(ids[i]!)) dense.set(ids[i]!, dense.size);
      sequenceOf[i] = dense.get(ids[i]!)!;
    }
  }
  const sequenceLengths = new Float64Array(dense.size);
  for (let i = 0; i < count; i++) sequenceLengths[sequenceOf[i]!]! += mask[i]!;
  const trainedCount = mask.reduce((sum, value) => sum + value, 0);
  const sequenceCount = sequenceLengths.filter((length) => length > 0).length;
  return {
    count,
    fresh,
    old,
    isOldKnown,
    reference,
    original,
    sampled: original ? old.map((logprob, i) => (Number.isNaN(original[i]) ? logprob : original[i]!)) : old,
    isSampledKnown: original
      ? Uint8Array.from(original, (value) => (Number.isNaN(value) ? 0 : 1))
      : isOldKnown,
    entropies,
    advantages,
    weights,
    mask,
    sequenceOf,
    sequenceLengths,
    trainedCount,
    divisor: trainedCount + EPSILON,
    sequenceCount,
    lossDivisor: totals?.divisor ?? divisorOf(trainedCount, sequenceCount, settings),
    totals,
  };
}

/** Returns the sum over trained tokens. */
export function maskedSum(row: LossRow, numberOf: (i: number) => number): number {
  let sum = 0;
  for (let i = 0; i < row.count; i++) if (row.mask[i]) sum += numberOf(i);
  return sum;
}
