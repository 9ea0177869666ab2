/** Trajectory groups and settings -> gradient steps on an opened trainer, with events and metrics. */
import { setImmediate } from 'node:timers/promises';
import { failIfAborted, OnpolicyError } from '../errors.ts';
import type { AdapterWeights } from '../native/index.ts';
import type { PackedRow } from '../protocol/index.ts';
import { makeBatch } from './batch.ts';
import type { PolicyLoss } from './loss.ts';
import type { LossPool } from './loss-pool.ts';
import type { Metrics } from './metrics.ts';
import type { TrainingRow } from './pack.ts';
import { needsReference, type TrainingSettings } from './settings.ts';
import { type JobEvent, type PlannedStep, type RowLoss, type Scores, takeSteps } from './steps.ts';
import type { ChatTokenizer } from './tokens.ts';
import type { Trainer } from './trainer.ts';
import type { TrajectoryGroup } from './trajectory.ts';

/** Everything a job works with; it owns none of it. */
export type StepTools = {
  /** Opened on the model, with the adapter and optimizer state to go on from. */
  readonly trainer: Trainer;
  readonly tokenizer: ChatTokenizer;
  readonly lossPool: LossPool;
  readonly emit: (event: JobEvent) => void;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds of a steady clock. */
  readonly now: () => number;
  /** The adapter of an earlier step, for `kl_penalty_reference_step`. */
  readonly readReference?: ((step: number) => Promise<AdapterWeights>) | undefined;
};

/** What a job did before its checkpoint. */
export type WorkDone = {
  readonly metrics: Metrics;
  /** Gradient steps that changed the adapter. */
  readonly updates: number;
  /** A row that it trained on; null without one. */
  readonly probe: PackedRow | null;
};

/** Runs the gradient steps of one job and returns its metrics. The trainer's adapter and optimizer state are then new. */
export function trainOnGroups(
  groups: readonly TrajectoryGroup[],
  settings: TrainingSettings,
  tools: StepTools,
): Promise<WorkDone> {
  const { trainer, signal } = tools;
  return onTrainer(tools, async () => {
    const start = tools.now();
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
    const seconds = (tools.now() - start) / 1000;
    const tokens = batch.metrics['data/step_packed_tokens']!;
    return {
      metrics: {
        ...batch.metrics,
        ...metrics,
        'time/step_trainer_s': seconds,
        'throughput/train_tok_per_s': seconds > 0 ? tokens / seconds : 0,
      },
      updates: stepCount - metrics['train/skipped_steps']!,
      probe: rows[0]?.row ?? null,
    };
  });
}

/** Does a job's work on its trainer, which its signal stops. */
export async function onTrainer<Result>(
  { trainer, signal }: Pick<StepTools, 'trainer' | 'signal'>,
  work: () => Promise<Result>,
): Promise<Result> {
  const abort = () => trainer.abort();
  signal?.addEventListener('abort', abort);
  try {
    return await work();
  } finally {
    signal?.removeEventListener('abort', abort);
  }
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
      lossOf: (scores, i) => policyGradient(members[i]!, scores, members.length, settings, lossPool),
      options: { learningRate: settings.learning_rate },
    };
  }
}

/** The loss of one row of a step, and its gradient over the rows of the step. */
async function policyGradient(
  prepared: PreparedRow,
  { logprobs, entropies }: Scores,
  rowCount: number,
  settings: TrainingSettings,
  lossPool: LossPool,
): Promise<RowLoss> {
  const loss = await lossPool.compute(
    {
      new_logprobs: logprobs,
      old_logprobs: prepared.oldLogprobs,
      original_logprobs: prepared.originalLogprobs,
      ref_logprobs: prepared.referenceLogprobs,
      advantages: prepared.advantages,
      weights: prepared.weights,
      mask: new Uint8Array(logprobs.length).fill(1), // a row's targets are the trained tokens
      sequence_ids: prepared.sequenceIds,
      entropies,
    },
    settings,
  );
  const gradient = Float32Array.from(loss.grad_new_logprobs, (value) => value / rowCount);
  return { loss: loss.loss, gradient, metrics: lossMetrics(loss) };
}

/** The metrics of a row's loss. */
export function lossMetrics(loss: PolicyLoss): Record<string, number | null> {
  return {
    'loss/train': loss.loss,
    'loss/entropy': loss.entropy,
    'loss/kl_div': loss.kl_div,
    'loss/kl_policy_ref': loss.kl_policy_ref,
    'train/clip_fraction': loss.clip_fraction,
    'train/probs_corr': loss.probs_corr,
    'train/preference_accuracy': loss.preference_accuracy,
  };
}
