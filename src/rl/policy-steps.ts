/** Trajectory groups and settings -> gradient steps on an opened trainer, with events and metrics. */
import { setImmediate } from 'node:timers/promises';
import { OnpolicyError } from '../errors.ts';
import type { AdapterWeights } from '../native/index.ts';
import type { PackedRow, TrainingJobEvent } from '../protocol/index.ts';
import { makeBatch } from './batch.ts';
import type { PolicyLoss } from './loss.ts';
import type { LossPool } from './loss-pool.ts';
import { Averages, type Metrics } from './metrics.ts';
import type { TrainingRow } from './pack.ts';
import { needsReference, type TrainingSettings } from './settings.ts';
import type { ChatTokenizer } from './tokens.ts';
import type { Trainer } from './trainer.ts';
import type { TrajectoryGroup } from './trajectory.ts';

/** What happens while a job runs: the wire's events before they get their id and time. */
export type JobEvent = WithoutStamp<TrainingJobEvent>;

type WithoutStamp<Event> = Event extends unknown ? Omit<Event, 'id' | 'created'> : never;

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

/** Failed steps in a row after which a job gives up. */
const MAX_SKIPPED_IN_A_ROW = 3;

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
      failIfAborted(signal);
      await setImmediate();
    };
    const batch = await makeBatch(groups, settings, tools.tokenizer, trainer.info.contextSize, pause);
    for (const { row } of batch.rows) await trainer.checkMemory(row);
    const stepCount = Math.ceil(batch.rows.length / settings.gradient_accumulation_steps);
    tools.emit({ type: 'training_started', gradient_steps: stepCount, metrics: batch.metrics });
    const rows = await addFixedLogprobs(batch.rows, settings, tools);
    const metrics = await takeSteps(rows, settings, tools);
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
  { trainer, signal }: StepTools,
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

/** Throws when the job was cancelled. */
export function failIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new OnpolicyError('ABORTED', 'the training job was aborted', { cause: signal.reason });
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
      failIfAborted(signal);
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

async function takeSteps(
  rows: readonly PreparedRow[],
  settings: TrainingSettings,
  tools: StepTools,
): Promise<Metrics> {
  const { trainer, signal } = tools;
  const overall = new Averages();
  const perStep = settings.gradient_accumulation_steps;
  let skippedCount = 0;
  let skippedInARow = 0;
  for (let start = 0; start < rows.length; start += perStep) {
    const members = rows.slice(start, start + perStep);
    const averages = new Averages();
    let isStepFinite = true;
    for (const row of members) {
      failIfAborted(signal);
      isStepFinite = (await addGradient(row, members.length, settings, tools, averages)) && isStepFinite;
    }
    failIfAborted(signal);
    if (!isStepFinite) await trainer.zeroGradients();
    const step = isStepFinite ? await trainer.step({ learningRate: settings.learning_rate }) : null;
    const isSkipped = !step?.isApplied;
    if (isSkipped) skippedCount++;
    skippedInARow = isSkipped ? skippedInARow + 1 : 0;
    averages.add({ 'loss/grad_norm': step?.gradNorm, 'loss/learning_rate': settings.learning_rate });
    const metrics = { ...averages.read(), 'train/skipped_steps': skippedCount };
    overall.add(averages.read());
    tools.emit({ type: 'gradient_step', gradient_step: start / perStep + 1, metrics });
    if (skippedInARow >= MAX_SKIPPED_IN_A_ROW)
      throw new OnpolicyError(
        'TRAINING_DIVERGED',
        `${skippedInARow} gradient steps in a row had a loss or gradient that is not finite; a lower learning_rate may help`,
      );
  }
  return { ...overall.read(), 'train/skipped_steps': skippedCount };
}

/** Adds one row's gradient, over the rows of its step. False: its loss or gradient is not finite, and nothing was added. */
async function addGradient(
  prepared: PreparedRow,
  rowCount: number,
  settings: TrainingSettings,
  tools: StepTools,
  averages: Averages,
): Promise<boolean> {
  const { logprobs, entropies } = await tools.trainer.forward(prepared.row);
  const loss = await tools.lossPool.compute(
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
  averages.add(lossMetrics(loss));
  const gradient = Float32Array.from(loss.grad_new_logprobs, (value) => value / rowCount);
  if (!Number.isFinite(loss.loss) || !gradient.every(Number.isFinite)) return false;
  await tools.trainer.backward(gradient);
  return true;
}

function lossMetrics(loss: PolicyLoss): Record<string, number | null> {
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
