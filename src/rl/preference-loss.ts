/** Log-probabilities of answers, preferred or not, and of a reference -> the loss of DPO or KTO and its gradient per token. Pure, float64. */
import { OnpolicyError } from '../errors.ts';
import type { PreferenceLossInputs } from '../protocol/index.ts';
import { readColumn, requireKnown } from './columns.ts';
import type { RowLossParts } from './loss.ts';
import type { TrainingSettings } from './settings.ts';
import type { StepTotals } from './step-totals.ts';

/** Unit of comparison: a pair of `dpo`, an answer of `kto`. */
type Unit = {
  /** Log-ratio to the reference, summed over the preferred answer's tokens and over the rejected one's. */
  preferred: number;
  rejected: number;
  hasPreferred: boolean;
  hasRejected: boolean;
};

/**
 * The loss selected by `preference_loss` of the settings, averaged over pairs or answers.
 * DPO (arXiv:2305.18290): -log s(b (w - l)), with w and l the log-ratios of the preferred and the rejected answer.
 * KTO (arXiv:2402.01306): 1 - s(b (w - z)) for a preferred answer, 1 - s(b (z - l)) for a rejected one. z is the mean log-ratio of the
 * step's answers, at least 0, held constant.
 * @param totals totals of the step, if it has several rows
 */
export function rowPreferenceLoss(
  inputs: PreferenceLossInputs,
  settings: TrainingSettings,
  totals: StepTotals | null = null,
): RowLossParts {
  const new_logprobs = readColumn('new_logprobs', inputs.new_logprobs);
  const read = (name: keyof PreferenceLossInputs) => readColumn(name, inputs[name], new_logprobs.length);
  const mask = Uint8Array.from(read('mask'), (value) => Number(value > 0));
  const ref_logprobs = read('ref_logprobs');
  const advantages = read('advantages');
  const sequence_ids = read('sequence_ids');
  const entropies = inputs.entropies ? read('entropies') : null;
  requireKnown({ ref_logprobs, advantages }, mask);
  const beta = settings.preference_beta;
  const units = new Map<number, Unit>();
  let trainedCount = 0;
  let entropySum = 0;
  for (let i = 0; i < new_logprobs.length; i++) {
    if (!mask[i]) continue;
    trainedCount++;
    entropySum += entropies?.[i] ?? 0;
    const id = sequence_ids[i]!;
    const unit = units.get(id) ?? { preferred: 0, rejected: 0, hasPreferred: false, hasRejected: false };
    units.set(id, unit);
    const ratio = new_logprobs[i]! - ref_logprobs[i]!;
    if (advantages[i]! > 0) {
      unit.preferred += ratio;
      unit.hasPreferred = true;
    } else {
      unit.rejected += ratio;
      unit.hasRejected = true;
    }
  }
  const center = settings.preference_loss === 'kto' ? (totals?.center ?? meanRatio(units)) : null;
  const slopes = new Map<number, number>(); // by unit: d(loss) / d(log-ratio) of its preferred answer, before the mean
  let loss = 0;
  let heldCount = 0;
  for (const [id, unit] of units) {
    const margin = center === null ? pairMargin(unit) : answerMargin(unit, center);
    const held = sigmoid(beta * margin);
    loss += center === null ? softplus(-beta * margin) : 1 - held;
    slopes.set(id, center === null ? -beta * (1 - held) : -beta * held * (1 - held));
    heldCount += Number(margin > 0);
  }
  const divisor = totals?.divisor ?? Math.max(1, units.size);
  return {
    loss: loss / divisor,
    gradient: new_logprobs.map((_, i) => {
      if (!mask[i]) return 0;
      return ((advantages[i]! > 0 ? 1 : -1) * slopes.get(sequence_ids[i]!)!) / divisor;
    }),
    sums: {
      tokens: trainedCount,
      loss,
      lossCount: units.size,
      clipped: 0,
      referenceGap: null,
      divergence: null,
      entropy: entropies && trainedCount > 0 ? entropySum : null,
      preferences: { units: units.size, held: heldCount },
      probabilities: null,
    },
  };
}

function pairMargin({ preferred, rejected, hasPreferred, hasRejected }: Unit): number {
  if (!hasPreferred || !hasRejected)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'sequence_ids: expected tokens of a preferred and of a rejected answer for each pair',
    );
  return preferred - rejected;
}

function answerMargin({ preferred, rejected, hasPreferred }: Unit, center: number): number {
  return hasPreferred ? preferred - center : center - rejected;
}

function meanRatio(units: ReadonlyMap<number, Unit>): number {
  let sum = 0;
  for (const { preferred, rejected } of units.values()) sum += preferred + rejected;
  return Math.max(0, sum / Math.max(1, units.size));
}

function sigmoid(x: number): number {
  return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
}

/** log(1 + exp(x)), also for large x. */
function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}
