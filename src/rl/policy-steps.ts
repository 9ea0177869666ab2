/** Trajectory groups and settings -> gradient steps on an opened trainer, with events and metrics. */
import { setImmediate } from 'node:timers/promises';
import { onAbort } from '../common/index.ts';
import { failIfAborted, OnpolicyError } from '../errors.ts';
import type { PackedRow } from '../protocol/index.ts';
import { makeBatch } from './batch.ts';
import type { LossPool } from './loss-pool.ts';
import type { Metrics } from './metrics.ts';
import type { TrainingRow } from './pack.ts';
import { rowGradient } from './row-gradient.ts';
import { needsReference, type TrainingSettings } from './settings.ts';
import { type PlannedStep, type StepTools, takeSteps } from './steps.ts';
import type { TrajectoryGroup } from './trajectory.ts';

/** What a job did before its checkpoint. */
export type WorkDone = {
  readonly metrics: Metrics;
  /** Gradient steps that changed the adapter. */
  readonly updates: number;
  /** A row that it trained on; null without one. */
  readonly probe: PackedRow | null;
};

/** Runs the gradient steps of one job and returns its metrics. The trainer's adapter and optimizer state are then new. */
export async function trainOnGroups(
  groups: readonly TrajectoryGroup[],
  settings: TrainingSettings,
  tools: StepTools,
): Promise<WorkDone> {
  const { trainer, signal } = tools;
  const pause = async () => {
    failIfAborted(signal, 'the training job');
    await setImmediate();
  };
  const batch = await makeBatch(groups, settings, tools.tokenizer, trainer.info.contextSize, pause);
  for (const { row } of batch.rows) await trainer.checkMemory(row);
  const stepCount = Math.ceil(batch.rows.length / settings.gradient_accumulation_steps);
  tools.emit({ type: 'training_started', gradient_steps: stepCount, metrics: batch.metrics });
  const rows = await addFixedLogprobs(batch.rows, settings, tools);
  const metrics = await takeSteps(planSteps(rows, settings, tools.lossPool), tools);
  return {
    metrics: { ...batch.metrics, ...metrics },
    updates: stepCount - metrics['train/skipped_steps']!,
    probe: rows[0]?.row ?? null,
  };
}

/** Does a job's work on its trainer, which its signal stops. */
export async function onTrainer<Result>(
  { trainer, signal }: Pick<StepTools, 'trainer' | 'signal'>,
  work: () => Promise<Result>,
): Promise<Result> {
  using _stopping = onAbort(signal, () => trainer.abort());
  return await work();
}

/** A row with the log-probabilities that no step of the job changes. */
type PreparedRow = TrainingRow & {
  readonly originalLogprobs: Float64Array | null; // (targets) the sampler's, when the old ones were recomputed
  readonly referenceLogprobs: Float64Array | null; // (targets)
};

/** Computes what needs the weights of the job's start: old log-probabilities, and those of the reference. */
async function addFixedLogprobs(
  rows: readonly TrainingRow[],
  settings: TrainingSettings,
  { trainer, readReference, signal }: StepTools,
): Promise<PreparedRow[]> {
  const score = async (adapterOff: boolean) => {
    const scores: Float64Array[] = [];
    for (const { row } of rows) {
      failIfAborted(signal, 'the training job');
      const { logprobs } = await trainer.forward(row, { gradients: false, adapterOff });
      scores.push(Float64Array.from(logprobs));
    }
    return scores;
  };
  const recomputed = settings.precalculate_logprobs ? await score(false) : null;
  let references: Float64Array[] | null = null;
  if (needsReference(settings)) {
    const step = settings.kl_penalty_reference_step;
    if (step === null || step === 0) references = await score(true);
    else if (!readReference)
      throw new OnpolicyError('INVALID_REQUEST', `kl_penalty_reference_step: there is no step ${step}`);
    else {
      const current = trainer.adapter();
      await trainer.loadAdapter(await readReference(step));
      references = await score(false).finally(() => trainer.loadAdapter(current));
    }
  }
  return rows.map((row, i) => ({
    ...row,
    oldLogprobs: recomputed?.[i] ?? row.oldLogprobs,
    originalLogprobs: recomputed ? row.oldLogprobs : null,
    referenceLogprobs: references?.[i] ?? null,
  }));
}

/** Rows by optimizer step, with the policy loss of each. */
function* planSteps(
  rows: readonly PreparedRow[],
  settings: TrainingSettings,
  lossPool: LossPool,
): Generator<PlannedStep> {
  const perStep = settings.gradient_accumulation_steps;
  for (let start = 0; start < rows.length; start += perStep) {
    const members = rows.slice(start, start + perStep);
    yield {
      rows: members.map(({ row }) => row),
      lossOf: ({ logprobs, entropies }, i) => {
        const row = members[i]!;
        const columns = {
          new_logprobs: logprobs,
          old_logprobs: row.oldLogprobs,
          original_logprobs: row.originalLogprobs,
          ref_logprobs: row.referenceLogprobs,
          advantages: row.advantages,
          weights: row.weights,
          sequence_ids: row.sequenceIds,
          entropies,
        };
        return rowGradient(columns, settings, 1 / members.length, lossPool);
      },
      options: { learningRate: settings.learning_rate },
    };
  }
}
