/** Response bodies about models, checkpoints, logs and training jobs. */

/** Numbers by name, for example `train/reward`. */
export type MetricValues = { readonly [name: string]: number };

/** A model that can be trained. */
export interface Model {
  /** A UUID. */
  readonly id: string;
  readonly object: 'model';
  /** The name that requests may use. Null means that they must use its id. */
  readonly name: string | null;
  /** The model that training started from: a path, an `hf:` URI or an alias. */
  readonly base_model: string;
  /** Time of registration, in seconds since 1970. */
  readonly created: number;
  /** Step of its newest checkpoint, which answers requests. 0 means the base model itself. */
  readonly step: number;
}

/** A state of a model after a training step. */
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
  /** True if there are items after this page. */
  readonly has_more: boolean;
  /** Ids of the first and the last item of this page. Null if the page is empty. */
  readonly first_id: string | null;
  readonly last_id: string | null;
}

/** Result of deleting checkpoints. */
export interface CheckpointDeletion {
  readonly deleted_count: number;
  /** Requested steps that have no checkpoint. */
  readonly not_found_steps: readonly number[];
}

/** Result of deleting a model. */
export interface ModelDeletion {
  readonly model_id: string;
  readonly deleted_checkpoints: number;
  /** True if the model had a run (metric history and trajectories), which was deleted too. */
  readonly deleted_run: boolean;
}

/** Result of a log call: the number of trajectories kept, and the metrics computed from them. */
export interface LogResult {
  readonly logged_trajectories: number;
  readonly metrics: MetricValues;
}

/** The state of a training job. */
export type TrainingJobStatus = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled';

/** An event of a training job. */
export type TrainingJobEvent = {
  /** A UUID; the cursor of `trainingJobs.events`. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
} & (
  | {
      readonly type: 'training_started';
      /** Number of optimizer steps that the job will run. */
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

/** State, times and result of a training job. */
export interface TrainingJobInfo {
  /** A UUID. */
  readonly id: string;
  readonly object: 'training.job';
  readonly model_id: string;
  readonly status: TrainingJobStatus;
  /** Seconds since 1970. */
  readonly created: number;
  /** Step of the checkpoint that it wrote. Null until the job is completed. */
  readonly step: number | null;
  readonly metrics: MetricValues;
  /** The error that ended the job. Null if it did not fail. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Result of a completed training job. */
export interface TrainingResult {
  readonly job_id: string;
  readonly model_id: string;
  /** Step of the checkpoint that the job wrote. Without a gradient, for example with equal rewards, the step that it started from. */
  readonly step: number;
  /** Id of that checkpoint. Null for step 0, the model without an adapter. */
  readonly checkpoint_id: string | null;
  readonly metrics: MetricValues;
}

/** A training run whose steps a client sends one by one. */
export interface TrainingRunInfo {
  /** A UUID. */
  readonly id: string;
  readonly object: 'training_run';
  /** Id of the registered model that the run trains. */
  readonly model_id: string;
  readonly base_model: string;
  readonly rank: number;
  readonly alpha: number;
  readonly seed: number;
  /** Time of opening, in seconds since 1970. */
  readonly created: number;
  /** Number of the client's steps that were applied to the weights. The next step has this number + 1. */
  readonly sequence: number;
  /** Names of its saved states, oldest first. */
  readonly states: readonly string[];
}

/** Result of a step of a training run. Fields that do not belong to the operation are absent. */
export interface TrainingRunResult {
  /** Outputs of `forward` and `forward_backward`, one per datum, with a number for each position, 0 if its target has weight 0. */
  readonly loss_fn_outputs?: readonly {
    readonly logprobs: {
      readonly data: readonly number[];
      readonly dtype: 'float32';
      readonly shape: readonly number[];
    };
  }[];
  readonly metrics?: MetricValues;
  /** Name of a saved state, or the name by which requests use the published weights. */
  readonly path?: string;
  /** Answers of `sample`. */
  readonly sequences?: readonly {
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
    readonly stop_reason: string;
  }[];
  /** Log-probabilities of the prompt's tokens. The first is null. */
  readonly prompt_logprobs?: readonly (number | null)[];
}

/** The answer to a step: its result, or the id with which to ask for it. */
export type TrainingRunReply = {
  /** Id with which the client asks for the result again. */
  readonly request_id: string;
  readonly sequence: number;
} & ({ readonly status: 'pending' } | { readonly status: 'completed'; readonly result: TrainingRunResult });
