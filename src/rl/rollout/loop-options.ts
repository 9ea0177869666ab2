/** Options of a training loop -> its counts with defaults, or an error that names the wrong option. */
import {
  type Arguments,
  type Complete,
  checkArguments,
  type MetricValues,
  type Trajectory,
  withDefaults,
} from '../../protocol/index.ts';
import type {
  AdapterLoader,
  CheckpointsResource,
  Completions,
  Service,
} from '../../protocol/service/index.ts';
import type { GatherOptions, RolloutContext } from './gather.ts';
import type { Recorder } from './recorder.ts';
import { wrongInput } from './wrong-input.ts';

/**
 * A service on another machine that samples with adapters sent to it: `connect({ baseUrl })` of vLLM or of a server of this library, or a
 * pool.
 */
export type SamplerService = Completions & AdapterLoader;

/** Service that the loop trains with. */
export type TrainableService = Service & {
  readonly checkpoints: CheckpointsResource & {
    /** Returns the folder of a checkpoint. Required with a sampler. */
    folder?(modelId: string, step: number): Promise<string>;
  };
  readonly runs: {
    /** The metrics of training jobs and log calls, oldest first. */
    metrics(
      modelId: string,
    ): AsyncIterable<{ readonly step: number; readonly source: string; readonly metrics: MetricValues }>;
  };
};

/** Context of an attempt of the loop. */
export type LoopContext = RolloutContext & {
  /** The model at the checkpoint to sample from, for the `model` of requests. */
  readonly model: string;
  readonly step: number;
  /** Starts a recording on that model, with the attempt's seed. */
  readonly record: () => Recorder;
};

/** Attempts a task once, for training or for an evaluation. */
export type LoopRollout<Task> = (task: Task, context: LoopContext) => Trajectory | Promise<Trajectory>;

/** An evaluation, by step. */
export type Evaluation = {
  readonly step: number;
  /** Mean over all attempts. */
  readonly reward: number;
  readonly metrics: MetricValues;
};

/** One step of the loop, or an evaluation. */
export type LoopEvent =
  | { readonly type: 'step'; readonly step: number; readonly metrics: MetricValues }
  | ({ readonly type: 'evaluation' } & Evaluation);

/** Held-out tasks, not used for training. */
type LoopEvaluation<Task> = Omit<Arguments['LoopEvaluation'], 'tasks' | 'rollout'> & {
  readonly tasks: readonly Task[];
  /** Default: the rollout of training. */
  readonly rollout?: LoopRollout<Task> | undefined;
};

/** Options whose types depend on the task or on a service. */
type TypedOptions<Task> = {
  /** Samples, trains and stores: a runtime. */
  readonly service: TrainableService;
  /** The training tasks. They are used in a random order determined by the seed, and reused when all have been used. */
  readonly tasks: readonly Task[];
  readonly rollout: LoopRollout<Task>;
  /** Held-out tasks, not used for training. */
  readonly evaluate?: LoopEvaluation<Task> | undefined;
  /**
   * Answers the rollouts' requests in place of `service`. After each step it loads the adapter from the folder of the checkpoint, which it
   * must be able to read.
   */
  readonly sampler?: SamplerService | undefined;
  /** With a sampler: maps a folder of this machine to its path on the sampler's machine. Default: the same path. */
  readonly samplerPath?: ((folder: string) => string) | undefined;
  /** Called after each step and each evaluation. */
  readonly onEvent?: ((event: LoopEvent) => void) | undefined;
} & Pick<GatherOptions, 'onProgress' | 'scoreGroup'>;

/** Options of {@link trainLoop}. */
export type TrainLoopOptions<Task> = Omit<Arguments['TrainLoopOptions'], keyof TypedOptions<Task>> &
  TypedOptions<Task>;

/** Counts of a loop, all filled in. */
export type LoopCounts = Pick<Complete['TrainLoopOptions'], 'groupsPerStep' | 'refill' | 'maxStale'> &
  Pick<Complete['LoopEvaluation'], 'every' | 'split' | 'groupSize'>;

/** Checks the options of a loop. @throws OnpolicyError `INVALID_REQUEST` */
export function checkLoopOptions<Task>(options: TrainLoopOptions<Task>): LoopCounts {
  checkArguments('TrainLoopOptions', options);
  const { evaluate, until, sampler, samplerModel, samplerPath } = options;
  if (!evaluate)
    refuse('without `evaluate`', { 'until.reward': until.reward, 'until.patience': until.patience });
  if (!sampler) refuse('without `sampler`', { samplerModel, samplerPath });
  else if (samplerModel === undefined)
    throw wrongInput(['samplerModel'], "the name of the sampler's base model", samplerModel);
  const { groupsPerStep, refill, maxStale } = withDefaults('TrainLoopOptions', options);
  return { groupsPerStep, refill, maxStale, ...withDefaults('LoopEvaluation', evaluate) };
}

/** Throws if options are given that have no effect. */
function refuse(when: string, options: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options))
    if (value !== undefined) throw wrongInput(name.split('.'), `no value ${when}`, value);
}
