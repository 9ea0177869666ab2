/** A job request and a model's checkpoint folder -> the next checkpoint: load, train, write, and say what happened. */
import { randomUUID } from 'node:crypto';
import { fromNative } from '../errors.ts';
import { readAdapter } from './checkpoint-files.ts';
import {
  hashOf,
  listSteps,
  removeLeftovers,
  type StepFacts,
  stepFolder,
  writeStep,
} from './checkpoint-step.ts';
import type { Metrics } from './metrics.ts';
import { type StepTools, trainOnGroups } from './policy-steps.ts';
import type { TrainingSettings } from './settings.ts';
import { type SftExample, type SftSettings, trainOnExamples } from './sft.ts';
import type { TrajectoryGroup } from './trajectory.ts';

/** Where a model's checkpoints lie, and what a job on them works with. */
export type TrainTools = Omit<StepTools, 'readReference'> & {
  /** Folder of the model's checkpoints; made when it is missing. One job at a time may write to it. */
  readonly checkpoints: string;
  /** The id of the checkpoint that a job leaves, from its step. Default: a random UUID. */
  readonly checkpointId?: ((step: number) => string) | undefined;
};

/** How a job ended. */
export type TrainResult = StepFacts & { readonly folder: string };

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

/** Restores the last step, or a fresh adapter; trains; writes the next step. A failure leaves folder and trainer as before. */
async function runJob(
  data: () => readonly unknown[],
  tools: TrainTools,
  work: () => Promise<Metrics>,
): Promise<TrainResult> {
  const { checkpoints, trainer, emit } = tools;
  await removeLeftovers(checkpoints);
  const last = (await listSteps(checkpoints)).at(-1);
  const restore = () => (last === undefined ? trainer.reset() : trainer.load(stepFolder(checkpoints, last)));
  try {
    await restore();
    const metrics = await work();
    const step = (last ?? 0) + 1;
    const id = tools.checkpointId?.(step) ?? randomUUID();
    const facts = { id, step, metrics, trajectory_hash: await hashOf(data()) };
    const folder = await writeStep(checkpoints, trainer, facts);
    emit({ type: 'training_ended', step: facts.step, metrics });
    return { ...facts, folder };
  } catch (error) {
    const failure = fromNative(error);
    // The trainer may serve further jobs: undo the steps of this one.
    await restore().catch(() => {}); // the first error is the one to report
    emit({ type: 'training_failed', code: failure.code, message: failure.message });
    throw failure;
  }
}
