/** A job request and a model's checkpoint folder -> the next checkpoint: loads, trains, writes, and emits events. */
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { fromNative, OnpolicyError } from '../errors.ts';
import {
  hashOf,
  listSteps,
  nextStep,
  readFacts,
  removeLeftovers,
  type StepFacts,
  stepFolder,
  writeStep,
} from './checkpoint-step.ts';
import type { Metrics } from './metrics.ts';
import { onTrainer, trainOnGroups, type WorkDone } from './policy-steps.ts';
import type { TrainingSettings } from './settings.ts';
import { type SftExample, type SftSettings, trainOnExamples } from './sft.ts';
import type { StepTools } from './steps.ts';
import type { TrajectoryGroup } from './trajectory.ts';

/** The checkpoints of a model, and the dependencies of a job on them. */
export type TrainTools = Omit<StepTools, 'referenceFolder'> & {
  /** Folder of the model's checkpoints; created if missing. Only one job at a time may write to it. */
  readonly checkpoints: string;
  /** Returns the id of the checkpoint that a job writes, from its step. Default: a random UUID. */
  readonly checkpointId?: ((step: number) => string) | undefined;
  /** Tests the checkpoint in a folder before it is published. Throws if it must not be used. */
  readonly probe?: ((folder: string) => Promise<void>) | undefined;
};

/** Result of a job: a new checkpoint, or the initial step if there was no gradient. */
export type TrainResult = Pick<StepFacts, 'step' | 'metrics'> & {
  /** Null for step 0, the model itself. */
  readonly id: string | null;
  readonly folder: string | null;
};

/** Reinforcement learning: trains on groups of scored trajectories and leaves a checkpoint at the next step. */
export function train(
  { groups, settings }: { groups: readonly TrajectoryGroup[]; settings: TrainingSettings },
  tools: TrainTools,
): Promise<TrainResult> {
  const referenceFolder = (step: number) => stepFolder(tools.checkpoints, step);
  return runJob(
    () => groups.flatMap(({ trajectories }) => trajectories),
    tools,
    () => trainOnGroups(groups, settings, { ...tools, referenceFolder }),
  );
}

/** Supervised: trains on given answers and leaves a checkpoint at the next step. */
export function sft(
  { data, settings }: { data: readonly SftExample[]; settings: SftSettings },
  tools: TrainTools,
): Promise<TrainResult> {
  return runJob(
    () => data,
    tools,
    () => trainOnExamples(data, settings, tools),
  );
}

/**
 * Restores the last step, or creates a new adapter; trains; writes the next step. A failure leaves folder and trainer unchanged. Without a
 * gradient nothing is written.
 */
async function runJob(
  data: () => readonly unknown[],
  tools: TrainTools,
  work: () => Promise<WorkDone>,
): Promise<TrainResult> {
  const { checkpoints, trainer, emit, now } = tools;
  await removeLeftovers(checkpoints);
  const last = (await listSteps(checkpoints)).at(-1);
  const restore = () => (last === undefined ? trainer.reset() : trainer.load(stepFolder(checkpoints, last)));
  try {
    await restore();
    const start = now();
    const { metrics: counted, ...rest } = await onTrainer(tools, work);
    const seconds = (now() - start) / 1000;
    const done = {
      ...rest,
      metrics: {
        ...counted,
        'time/step_trainer_s': seconds,
        'throughput/train_tok_per_s': seconds > 0 ? counted['data/step_packed_tokens']! / seconds : 0,
      },
    };
    const metrics = { ...done.metrics, ...done.sampled };
    // The checkpoint only stores metrics of training: the trajectories were sampled by other weights.
    const made = Object.entries(done.metrics).filter(([name]) => !Object.hasOwn(done.sampled, name));
    const result = {
      ...(done.updates > 0
        ? await publish({ ...done, metrics: Object.fromEntries(made) }, data, tools)
        : await keep(last, metrics, checkpoints)),
      metrics,
    };
    emit({ type: 'training_ended', step: result.step, metrics });
    return result;
  } catch (error) {
    const failure = fromNative(error);
    // Undoes the steps of this job, because the trainer may run further jobs.
    await restore().catch(() => {}); // the first error is the one to report
    emit({ type: 'training_failed', code: failure.code, message: failure.message });
    throw failure;
  }
}

/** Writes the next step if its numbers are finite and the probe succeeds. */
async function publish(
  { metrics, probe: row }: WorkDone,
  data: () => readonly unknown[],
  { checkpoints, trainer, checkpointId, probe }: TrainTools,
): Promise<TrainResult> {
  for (const [name, { a, b }] of Object.entries(trainer.adapter())) {
    if (!a.every(Number.isFinite) || !b.every(Number.isFinite))
      throw diverged(`the adapter of ${name} is not finite`);
    await setImmediate();
  }
  const scored = row && (await trainer.forward(row, { gradients: false }));
  if (scored && !scored.logprobs.every(Number.isFinite)) throw diverged('it scores with no finite numbers');
  const step = await nextStep(checkpoints);
  const id = checkpointId?.(step) ?? randomUUID();
  const facts = { id, step, metrics, trajectory_hash: await hashOf(data()) };
  const folder = await writeStep(checkpoints, trainer, facts, { probe });
  return { ...facts, folder };
}

/** Returns the result of a job without a gradient: the step that it began with. */
async function keep(last: number | undefined, metrics: Metrics, checkpoints: string): Promise<TrainResult> {
  if (metrics['train/skipped_steps']) throw diverged('no gradient step had a finite loss and gradient');
  if (last === undefined) return { id: null, step: 0, metrics, folder: null };
  const { id } = await readFacts(checkpoints, last);
  return { id, step: last, metrics, folder: stepFolder(checkpoints, last) };
}

/** Returns the error of a checkpoint that must not be used. */
export function diverged(reason: string, cause?: unknown): OnpolicyError {
  return new OnpolicyError(
    'TRAINING_DIVERGED',
    `the checkpoint is not published: ${reason}; a lower learning_rate may help`,
    { cause },
  );
}
