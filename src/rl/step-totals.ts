/** All rows of an optimizer step -> the numbers of the step that the loss of each row depends on. Pure, float64. */
import type { TrainingSettings } from './settings.ts';

/** Added to a token count before it is used as a divisor. */
export const EPSILON = 1e-6;

/** Numbers of a step. A number is null if the settings do not need it, or if each row computes it alone. */
export type StepTotals = {
  /** The sum of the losses of all rows is divided by this. */
  readonly divisor: number;
  /** Mean log-ratio to the reference, for `kl_penalty_coef`. */
  readonly referenceGap: number | null;
  /** Lowest entropy of a token that counts, for `top_entropy_quantile`. */
  readonly entropyLimit: number | null;
  /** Mean log-ratio of an answer to the reference, for KTO. */
  readonly center: number | null;
};

/** Columns of a row whose targets are all trained. */
export type ScoredRow = {
  readonly new_logprobs: ArrayLike<number>;
  readonly old_logprobs: ArrayLike<number | null>;
  readonly entropies: ArrayLike<number>;
  readonly ref_logprobs: ArrayLike<number | null> | null;
};

/** Returns true if the loss of a row depends on the log-probabilities or entropies of the step's other rows. */
export function needsScores(settings: TrainingSettings): boolean {
  return (
    settings.preference_loss === 'kto' || settings.kl_penalty_coef > 0 || settings.top_entropy_quantile < 1
  );
}

/**
 * Totals of a step of several rows.
 * @param rows sequence ids of each row's targets
 * @param scored the rows' columns under the weights of the step, if {@link needsScores}
 */
export function stepTotals(
  rows: readonly ArrayLike<number>[],
  settings: TrainingSettings,
  scored: readonly ScoredRow[] = [],
): StepTotals {
  const tokens = rows.reduce((sum, ids) => sum + ids.length, 0);
  const sequences = countSequences(rows);
  const { preference_loss, top_entropy_quantile: share } = settings;
  const needsGap = settings.kl_penalty_coef > 0 || preference_loss === 'kto';
  const gap = scored.length > 0 && needsGap ? gapSum(scored, settings) : null;
  const isEntropyUsed = scored.length > 0 && share < 1;
  return {
    divisor: divisorOf(tokens, sequences, settings),
    referenceGap: gap === null ? null : gap / (tokens + EPSILON),
    entropyLimit: isEntropyUsed
      ? upperQuantile(
          scored.flatMap(({ entropies }) => Array.from(entropies)),
          share,
        )
      : null,
    center: gap === null ? null : Math.max(0, gap / Math.max(1, sequences)),
  };
}

/** Returns the number of sequences with trained tokens in some rows. `rows`: sequence ids of each row's targets. */
export function countSequences(rows: readonly ArrayLike<number>[]): number {
  return rows.reduce((sum, ids) => sum + new Set(Array.from(ids)).size, 0);
}

/** Returns the divisor of a loss over this many trained tokens and sequences (pairs or answers of a preference loss). */
export function divisorOf(tokens: number, sequences: number, settings: TrainingSettings): number {
  if (settings.preference_loss !== null) return Math.max(1, sequences);
  return settings.loss_length === null ? tokens + EPSILON : Math.max(1, sequences) * settings.loss_length;
}

/** Returns the lowest of the `share` largest values, interpolated as in TRL. Returns -Infinity for no values. */
export function upperQuantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return Number.NEGATIVE_INFINITY;
  const place = (1 - share) * (sorted.length - 1);
  const below = sorted[Math.floor(place)]!;
  const above = sorted[Math.ceil(place)]!;
  return below + (above - below) * (place - Math.floor(place));
}

/** Returns the sum over tokens of the log-ratio to the reference. */
function gapSum(
  rows: readonly ScoredRow[],
  { preference_loss, kl_penalty_source }: TrainingSettings,
): number {
  const isSample = preference_loss === null && kl_penalty_source === 'sample';
  let sum = 0;
  for (const { new_logprobs, old_logprobs, ref_logprobs } of rows)
    for (let i = 0; i < new_logprobs.length; i++) {
      const known = isSample ? (old_logprobs[i] ?? Number.NaN) : Number.NaN;
      sum += (Number.isNaN(known) ? new_logprobs[i]! : known) - (ref_logprobs?.[i] ?? Number.NaN);
    }
  return sum;
}
