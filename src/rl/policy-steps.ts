/** Trajectory groups and settings -> gradient steps on an opened trainer, with events and metrics. */
import { setImmediate } from 'node:timers/promises';
import { onAbort } from '../common/index.ts';
import { failIfAborted, OnpolicyError } from '../errors.ts';
import type { PackedRow } from '../protocol/index.ts';
import { makeBatch, observedTokens } from './batch.ts';
import type { LossPool } from './loss-pool.ts';
import type { Metrics } from './metrics.ts';
import { sharedNumbers, type TrainingRow } from './pack.ts';
import { rowGradient, withObservations } from './row-gradient.ts';
import { needsReference, type TrainingSettings } from './settings.ts';
import { countSequences, needsScores, stepTotals } from './step-totals.ts';
import { type ForwardScores, type PlannedStep, type StepTools, takeSteps } from './steps.ts';
import type { TrajectoryGroup } from './trajectory.ts';

/** The work of a job before its checkpoint is written. */
export type WorkDone = {
  /** Metrics that training measured. */
  readonly metrics: Metrics;
  /** Metrics of the trajectories, about the policy that sampled them. */
  readonly sampled: Metrics;
  /** Gradient steps that changed the adapter. */
  readonly updates: number;
  /** A row of the training data; null if there is none. */
  readonly probe: PackedRow | null;
};

/** Runs the gradient steps of one job and returns its metrics. Afterwards the trainer holds the new adapter and optimizer state. */
export async function trainOnGroups(
  groups: readonly TrajectoryGroup[],
  given: TrainingSettings,
  tools: StepTools,
): Promise<WorkDone> {
  const { trainer, signal, usualTemperature } = tools;
  const settings = { ...given, sampling_temperature: given.sampling_temperature ?? usualTemperature ?? null };
  const pause = async () => {
    failIfAborted(signal, 'the training job');
    await setImmediate();
  };
  const batch = await makeBatch(groups, settings, tools.tokenizer, trainer.info.contextSize, pause);
  for (const { row } of batch.rows) await trainer.checkMemory(row);
  const stepCount = Math.ceil(batch.rows.length / settings.gradient_accumulation_steps);
  tools.emit({
    type: 'training_started',
    gradient_steps: stepCount,
    metrics: { ...batch.metrics, ...batch.sampled },
  });
  const rows = await addFixedLogprobs(batch.rows, settings, tools);
  const metrics = await takeSteps(planSteps(rows, settings, tools.lossPool), tools);
  return {
    metrics: { ...batch.metrics, ...metrics },
    sampled: batch.sampled,
    updates: stepCount - metrics['train/skipped_steps']!,
    probe: rows[0]?.row ?? null,
  };
}

/** Runs a job's work on its trainer. The job's signal aborts it. */
export async function onTrainer<Result>(
  { trainer, signal }: Pick<StepTools, 'trainer' | 'signal'>,
  work: () => Promise<Result>,
): Promise<Result> {
  using _stopping = onAbort(signal, () => trainer.abort());
  return await work();
}

/** A row with the log-probabilities that stay fixed during the job. */
type PreparedRow = TrainingRow & {
  readonly originalLogprobs: Float64Array | null; // (targets) the sampler's, when the old ones were recomputed
  readonly referenceLogprobs: Float64Array | null; // (targets)
};

/** Computes the values that need the weights at the job's start: old log-probabilities, and those of the reference. */
async function addFixedLogprobs(
  rows: readonly TrainingRow[],
  settings: TrainingSettings,
  { trainer, referenceFolder, signal }: StepTools,
): Promise<PreparedRow[]> {
  const score = async (adapterOff: boolean, scored = rows) => {
    const scores: Float64Array[] = [];
    for (const { row, weights } of scored) {
      failIfAborted(signal, 'the training job');
      const { logprobs } = await trainer.forward(row, { gradients: false, adapterOff });
      const kept = sharedNumbers(weights.length);
      kept.set(logprobs.subarray(0, weights.length));
      scores.push(kept);
    }
    return scores;
  };
  const isTempered = settings.sampler_logprobs === 'raw' && rows.some(({ row }) => row.temperatures);
  const recomputed = settings.precalculate_logprobs || isTempered ? await score(false) : null;
  const untempered = isTempered ? await score(false, rows.map(withoutTemperatures)) : null;
  let references: Float64Array[] | null = null;
  if (needsReference(settings)) {
    const step = settings.kl_penalty_reference_step;
    if (step === null || step === 0) references = await score(true);
    else if (!referenceFolder)
      throw new OnpolicyError('INVALID_REQUEST', `kl_penalty_reference_step: there is no step ${step}`);
    else {
      const current = trainer.adapter();
      await trainer.loadAdapter(referenceFolder(step));
      references = await score(false).finally(() => trainer.loadAdapter(current));
    }
  }
  return rows.map((row, i) => {
    const referenceLogprobs = references?.[i] ?? null;
    if (!recomputed) return { ...row, originalLogprobs: null, referenceLogprobs };
    const originalLogprobs = untempered
      ? atTemperature(row, recomputed[i]!, untempered[i]!)
      : row.oldLogprobs;
    const oldLogprobs = settings.precalculate_logprobs
      ? recomputed[i]!
      : row.oldLogprobs.map((known, t) => (temperatureOf(row, t) === 1 ? known : recomputed[i]![t]!));
    return { ...row, oldLogprobs, originalLogprobs, referenceLogprobs };
  });
}

/** Returns the sequence of each target, observations included. */
function allSequences({ sequenceIds, observations }: TrainingRow): ArrayLike<number> {
  return observations ? [...sequenceIds, ...observations.sequenceIds] : sequenceIds;
}

function temperatureOf({ row }: TrainingRow, target: number): number {
  return row.temperatures?.[target] ?? 1;
}

function withoutTemperatures({ row: { temperatures: _, ...row }, ...rest }: TrainingRow): TrainingRow {
  return { ...rest, row };
}

/**
 * Converts the sampler's log-probabilities to the temperatures of the sampling if it reported those of the model itself: their distance
 * from the trainer's is kept.
 */
function atTemperature(
  { row, oldLogprobs }: TrainingRow,
  recomputed: Float64Array,
  untempered: Float64Array,
): Float64Array {
  if (!row.temperatures) return oldLogprobs;
  return oldLogprobs.map((reported, t) => reported + recomputed[t]! - untempered[t]!);
}

/** Yields the rows of each optimizer step, with the policy loss of each. */
function* planSteps(
  rows: readonly PreparedRow[],
  settings: TrainingSettings,
  lossPool: LossPool,
): Generator<PlannedStep> {
  const perStep = settings.gradient_accumulation_steps;
  const power = settings.num_trajectories_learning_rate_multiplier_power;
  for (let start = 0; start < rows.length; start += perStep) {
    const members = rows.slice(start, start + perStep);
    const ids = members.map(({ sequenceIds }) => sequenceIds);
    let totals = members.length > 1 ? stepTotals(ids, settings) : null;
    const observedCount = observedTokens(members);
    const columnsOf = (row: PreparedRow, { logprobs, entropies }: ForwardScores) => ({
      new_logprobs: logprobs.subarray(0, row.weights.length),
      old_logprobs: row.oldLogprobs,
      original_logprobs: row.originalLogprobs,
      ref_logprobs: row.referenceLogprobs,
      advantages: row.advantages,
      weights: row.weights,
      sequence_ids: row.sequenceIds,
      entropies: entropies.subarray(0, row.weights.length),
    });
    yield {
      rows: members.map(({ row }) => row),
      begin: async (score) => {
        if (!totals || !needsScores(settings)) return;
        const scores = await score();
        totals = stepTotals(
          ids,
          settings,
          members.map((row, i) => columnsOf(row, scores[i]!)),
        );
      },
      lossOf: async (scores, i) => {
        const row = members[i]!;
        const policy = await rowGradient(columnsOf(row, scores), settings, totals, lossPool);
        if (!row.observations) return policy;
        const observed = scores.logprobs.subarray(row.weights.length);
        return withObservations(policy, observed, row.observations.weights, observedCount);
      },
      options: { learningRate: settings.learning_rate * countSequences(members.map(allSequences)) ** power },
    };
  }
}
