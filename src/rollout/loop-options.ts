/** Options of a training loop -> its counts with defaults, or an error that names what is wrong. */
import type { ExperimentalConfig, MetricValues, Trajectory } from '../protocol/index.ts';
import type { CallOptions, CheckpointsResource, Completions, Service } from '../service.ts';
import type { GatherOptions, RolloutContext } from './gather.ts';
import type { Recorder } from './recorder.ts';
import { wrongInput } from './wrong-input.ts';

/** Samples elsewhere, with adapters that it gets: `connect({ baseUrl })` of vLLM, or of a server of this library. */
export type SamplerService = Completions & {
  /** Loads the adapter of a folder and serves it under a name. */
  loadAdapter(
    adapter: { readonly name: string; readonly path: string },
    options?: CallOptions,
  ): Promise<void>;
  /** No longer serves an adapter. */
  unloadAdapter(name: string, options?: CallOptions): Promise<void>;
};

/** What the loop needs of a runtime. */
export type TrainableService = Service & {
  readonly checkpoints: CheckpointsResource & {
    /** The folder of a checkpoint; needed for a sampler. */
    folder?(modelId: string, step: number): Promise<string>;
  };
  readonly runs: {
    /** The metrics of training jobs and log calls, oldest first. */
    metrics(
      modelId: string,
    ): AsyncIterable<{ readonly step: number; readonly source: string; readonly metrics: MetricValues }>;
  };
};

/** What an attempt of the loop is told. */
export type LoopContext = RolloutContext & {
  /** The model at the step that samples, for the `model` of requests. */
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

/** Options of {@link trainLoop}. */
export type TrainLoopOptions<Task> = {
  /** Samples, trains and keeps: a runtime. */
  readonly service: TrainableService;
  /** Id of the registered model. */
  readonly model: string;
  /** What is trained on, in a random order that the seed fixes; again from the beginning when all were used. */
  readonly tasks: readonly Task[];
  readonly rollout: LoopRollout<Task>;
  /** Tasks that are not trained on. */
  readonly evaluate?:
    | {
        readonly tasks: readonly Task[];
        /** Steps between evaluations. One comes before the first step, and one after the last. Default 5. */
        readonly every?: number | undefined;
        /** Attempts at each task. Default 1. */
        readonly groupSize?: number | undefined;
        /** Default: the one of training. */
        readonly rollout?: LoopRollout<Task> | undefined;
        /** Split of the log that keeps its trajectories and metrics. Default `val`. */
        readonly split?: string | undefined;
      }
    | undefined;
  /** When to end; the first that holds. */
  readonly until: {
    /** The model's step. */
    readonly steps: number;
    /** Mean reward of an evaluation. */
    readonly reward?: number | undefined;
    /** Evaluations in a row without a new best one. */
    readonly patience?: number | undefined;
  };
  /** Tasks of a step. Default 8. */
  readonly groupsPerStep?: number | undefined;
  /**
   * Further tasks that a step may try when all attempts of a task got the same reward, which teaches nothing: the dynamic
   * sampling of DAPO. Default 0.
   */
  readonly refill?: number | undefined;
  /**
   * Answers the rollouts' requests in place of `service`. After each step it gets the adapter, from the folder of the checkpoint, which it
   * must see.
   */
  readonly sampler?: SamplerService | undefined;
  /** With a sampler: the name of the base model there. */
  readonly samplerModel?: string | undefined;
  /** With a sampler: where it sees a folder of this machine. Default: at the same path. */
  readonly samplerPath?: ((folder: string) => string) | undefined;
  /**
   * Steps that may be trained between the beginning of a rollout and its use: so many steps' rollouts are sampled while others train.
   * Default 0: sampling and training take turns.
   */
  readonly maxStale?: number | undefined;
  /**
   * Settings of the algorithm. With `sampler` or `maxStale`, `precalculate_logprobs` is on and `truncated_importance_sampling` 2 by
   * default: what was sampled by an older step or another engine is weighed by its probability here.
   */
  readonly config?: ExperimentalConfig | undefined;
  /** Newest checkpoints that are kept, beside the best one, the `kl_penalty_reference_step` and those that rollouts use. Default: all. */
  readonly keepCheckpoints?: number | undefined;
  /** Fixes the order of tasks and the seeds of attempts. Default 0. */
  readonly seed?: number | string | undefined;
  /** Called after each step and each evaluation. */
  readonly onEvent?: ((event: LoopEvent) => void) | undefined;
} & Omit<GatherOptions, 'seed'>;

/** Counts of a loop, all filled in. */
export type LoopCounts = {
  readonly groupsPerStep: number;
  readonly refill: number;
  readonly every: number;
  readonly split: string;
  readonly maxStale: number;
};

/** @throws OnpolicyError `INVALID_REQUEST` */
export function checkLoopOptions<Task>(options: TrainLoopOptions<Task>): LoopCounts {
  const { service, model, tasks, rollout, evaluate, until } = options;
  if (typeof service?.train !== 'function') throw wrongInput(['service'], 'a runtime', service);
  if (typeof model !== 'string') throw wrongInput(['model'], 'the id of a registered model', model);
  if (!Array.isArray(tasks) || tasks.length === 0)
    throw wrongInput(['tasks'], 'a list of at least one task', tasks);
  if (typeof rollout !== 'function') throw wrongInput(['rollout'], 'a function', rollout);
  count(['until', 'steps'], until?.steps, 0);
  if (evaluate && (!Array.isArray(evaluate.tasks) || evaluate.tasks.length === 0))
    throw wrongInput(['evaluate', 'tasks'], 'a list of at least one task', evaluate.tasks);
  for (const name of ['reward', 'patience'] as const) {
    if (until[name] === undefined) continue;
    if (!evaluate) throw wrongInput(['until', name], 'nothing without `evaluate`', until[name]);
    if (name === 'patience') count(['until', name], until[name], 1);
    else if (!Number.isFinite(until[name])) throw wrongInput(['until', name], 'a finite number', until[name]);
  }
  count(['keepCheckpoints'], options.keepCheckpoints ?? 1, 1);
  checkSampler(options);
  const { split = 'val' } = evaluate ?? {};
  if (typeof split !== 'string' || split === '') throw wrongInput(['evaluate', 'split'], 'a name', split);
  return {
    groupsPerStep: count(['groupsPerStep'], options.groupsPerStep ?? 8, 1),
    refill: count(['refill'], options.refill ?? 0, 0),
    every: count(['evaluate', 'every'], evaluate?.every ?? 5, 1),
    split,
    maxStale: count(['maxStale'], options.maxStale ?? 0, 0),
  };
}

function checkSampler<Task>({ sampler, samplerModel, samplerPath }: TrainLoopOptions<Task>): void {
  if (sampler === undefined) {
    for (const [name, value] of Object.entries({ samplerModel, samplerPath }))
      if (value !== undefined) throw wrongInput([name], 'nothing without `sampler`', value);
    return;
  }
  if (typeof sampler?.loadAdapter !== 'function' || typeof sampler.createCompletion !== 'function')
    throw wrongInput(['sampler'], 'a connected server', sampler);
  if (typeof samplerModel !== 'string' || samplerModel === '')
    throw wrongInput(['samplerModel'], "the name of the sampler's base model", samplerModel);
  if (samplerPath !== undefined && typeof samplerPath !== 'function')
    throw wrongInput(['samplerPath'], 'a function', samplerPath);
}

function count(loc: readonly string[], value: unknown, least: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least) return value as number;
  throw wrongInput(loc, `an integer from ${least} up`, value);
}
