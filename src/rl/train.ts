/** A job request and a model's checkpoint folder -> the next checkpoint: load, train, write, and say what happened. */
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { fromNative, OnpolicyError } from '../errors.ts';
import { readAdapter } from './checkpoint-files.ts';
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

/** Where a model's checkpoints lie, and what a job on them works with. */
export type TrainTools = Omit<StepTools, 'readReference'> & {
  /** Folder of the model's checkpoints; made when it is missing. One job at a time may write to it. */
  readonly checkpoints: string;
  /** The id of the checkpoint that a job leaves, from its step. Default: a random UUID. */
  readonly checkpointId?: ((step: number) => string) | undefined;
  /** Scores something with the checkpoint in a folder before it is published, and throws what is wrong with it. */
  readonly probe?: ((folder: string) => Promise<void>) | undefined;
};

/** How a job ended: with a new checkpoint, or without a gradient where it began. */
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
  const readReference = (step: number) =>
    readAdapter(stepFolder(tools.checkpoints, step), tools.trainer.info);
  return runJob(
    () => groups.flatMap(({ trajectories }) => trajectories),
    tools,
    () => trainOnGroups(groups, settings, { ...tools, readReference }),
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
 * Restores the last step, or a fresh adapter; trains; writes the next step. A failure leaves folder and trainer as before. Without a
 * gradient there is nothing to write.
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
    const { metrics } = done;
    const result =
      done.updates > 0 ? await publish(done, data, tools) : await keep(last, metrics, checkpoints);
    emit({ type: 'training_ended', step: result.step, metrics });
    return result;
  } catch (error) {
    const failure = fromNative(error);
    // The trainer may serve further jobs: undo the steps of this one.
    await restore().catch(() => {}); // the first error is the one to report
    emit({ type: 'training_failed', code: failure.code, message: failure.message });
    throw failure;
  }
}

/** Writes the next step, when its numbers are finite and it scores with finite numbers. */
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
  const folder = await writeStep(checkpoints, trainer, facts, probe);
  return { ...facts, folder };
}

/** The result of a job without a gradient: the step that it began with. */
async function keep(last: number | undefined, metrics: Metrics, checkpoints: string): Promise<TrainResult> {
  if (metrics['train/skipped_steps']) throw diverged('no gradient step had a finite loss and gradient');
  if (last === undefined) return { id: null, step: 0, metrics, folder: null };
  const { id } = await readFacts(checkpoints, last);
  return { id, step: last, metrics, folder: stepFolder(checkpoints, last) };
}

/** The error of a checkpoint that must not answer. */
export function diverged(reason: string, cause?: unknown): OnpolicyError {
  return new OnpolicyError(
    'TRAINING_DIVERGED',
    `the checkpoint is not published: ${reason}; a lower learning_rate may help`,
    { cause },
  );
}
