/** What the service says of models, checkpoints, logs and training jobs: the wire's response bodies. */

/** Numbers by name, for example `train/reward`. */
export type MetricValues = { readonly [name: string]: number };

/** A model that can be trained. */
export interface Model {
  /** A UUID. */
  readonly id: string;
  readonly object: 'model';
  /** A name to ask for it by; null: only its id. */
  readonly name: string | null;
  /** What it started from: a path, an `hf:` URI or an alias. */
  readonly base_model: string;
  /** When it was registered, in seconds since 1970. */
  readonly created: number;
  /** Its newest checkpoint, which answers; 0: the base model itself. */
  readonly step: number;
}

/** A state of a model that was reached by training. */
export interface Checkpoint {
  /** A UUID. */
  readonly id: string;
  /** From 1. */
  readonly step: number;
  readonly metrics: MetricValues;
}

/** One page of a list. */
export interface Page<Item> {
  readonly object: 'list';
  readonly data: readonly Item[];
  /** Whether there are items after this page. */
  readonly has_more: boolean;
  /** Id of the first and of the last item of this page; null when it is empty. */
  readonly first_id: string | null;
  readonly last_id: string | null;
}

/** What a deletion of checkpoints did. */
export interface CheckpointDeletion {
  readonly deleted_count: number;
  /** Steps that have no checkpoint. */
  readonly not_found_steps: readonly number[];
}

/** What the deletion of a model did. */
export interface ModelDeletion {
  readonly model_id: string;
  readonly deleted_checkpoints: number;
  /** Whether its run (metric history and trajectories) was deleted with it. */
  readonly deleted_run: boolean;
}

/** What a log call did: how much it kept, and the metrics it computed. */
export interface LogResult {
  readonly logged_trajectories: number;
  readonly metrics: MetricValues;
}

/** The state of a training job. */
export type TrainingJobStatus = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled';

/** Something that happened in a training job. */
export type TrainingJobEvent = {
  /** A UUID; the cursor of `trainingJobs.events`. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
} & (
  | {
      readonly type: 'training_started';
      /** Optimizer steps to come. */
      readonly gradient_steps: number;
      readonly metrics: MetricValues;
    }
  | {
      readonly type: 'gradient_step';
      /** From 1. */
      readonly gradient_step: number;
      readonly metrics: MetricValues;
    }
  | {
      readonly type: 'training_ended';
      /** The checkpoint's step. */
      readonly step: number;
      readonly metrics: MetricValues;
    }
  | { readonly type: 'training_failed'; readonly code: string; readonly message: string }
);

/** What is known of a training job. */
export interface TrainingJobInfo {
  /** A UUID. */
  readonly id: string;
  readonly object: 'training.job';
  readonly model_id: string;
  readonly status: TrainingJobStatus;
  /** Seconds since 1970. */
  readonly created: number;
  /** The checkpoint it left; null until it is completed. */
  readonly step: number | null;
  readonly metrics: MetricValues;
  /** Why it failed; null when it did not. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** How a training job ended well. */
export interface TrainingResult {
  readonly job_id: string;
  readonly model_id: string;
  /** The checkpoint it left. Without a gradient, for example with equal rewards, it is the one that it began with. */
  readonly step: number;
  /** Null for step 0, the model without an adapter. */
  readonly checkpoint_id: string | null;
  readonly metrics: MetricValues;
}

/** A training run whose steps a client sends one by one. */
export interface TrainingRunInfo {
  /** A UUID. */
  readonly id: string;
  readonly object: 'training_run';
  /** The registered model that it trains. */
  readonly model_id: string;
  readonly base_model: string;
  readonly rank: number;
  readonly alpha: number;
  readonly seed: number;
  /** When it was opened, in seconds since 1970. */
  readonly created: number;
  /** Steps of the client that its weights have. The next one is this + 1. */
  readonly sequence: number;
  /** Names of its saved states, oldest first. */
  readonly states: readonly string[];
}

/** What a step of a training run did. Fields that its operation does not have are absent. */
export interface TrainingRunResult {
  /** Outputs of `forward` and `forward_backward`, one per datum, with a number for each position; 0 where a target counts nothing. */
  readonly loss_fn_outputs?: readonly {
    readonly logprobs: {
      readonly data: readonly number[];
      readonly dtype: 'float32';
      readonly shape: readonly number[];
    };
  }[];
  readonly metrics?: MetricValues;
  /** Name of a saved state, or what requests call the published weights. */
  readonly path?: string;
  /** Answers of `sample`. */
  readonly sequences?: readonly {
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
    readonly stop_reason: string;
  }[];
  /** Log-probabilities of the prompt's tokens, the first without one. */
  readonly prompt_logprobs?: readonly (number | null)[];
}

/** The answer to a step: its result, or where it is asked for. */
export type TrainingRunReply = {
  /** Asks for the result again. */
  readonly request_id: string;
  readonly sequence: number;
} & ({ readonly status: 'pending' } | { readonly status: 'completed'; readonly result: TrainingRunResult });
