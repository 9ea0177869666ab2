/** The interface of services: the runtime in this process, the client of a server, a pool of services. */

import type {
  BatchRun,
  BatchSource,
  BatchUrl,
  CallOptions,
  ChatUrl,
  Checkpoint,
  CheckpointDeleteRequest,
  CheckpointDeletion,
  JobListQuery,
  ListQuery,
  LogRequest,
  LogResult,
  Model,
  ModelCreateRequest,
  ModelDeletion,
  Page,
  PrefixCacheQuery,
  SftRequest,
  TrainingJobEvent,
  TrainingJobInfo,
  TrainingJobRequest,
  TrainingJobStatus,
  TrainingResult,
  TrainingRunRequest,
  Transcription,
  TranscriptionRequest,
  TypedBatchOptions,
  TypedBatchRow,
} from '../index.ts';
import type { Completions } from './methods.ts';
import type { TranscriptionStream } from './streams.ts';
import type { TrainingRun, TrainingRunsResource } from './training-run.ts';

export type { CallOptions, TrainingRunsResource };

/** The answer to a reset of prefix caches. */
export type PrefixCacheReset = {
  /** False if a cache was kept, because requests were running. */
  readonly success: boolean;
};

/** A training job started by this process. */
export interface TrainingJob {
  /** A UUID. */
  readonly id: string;
  readonly status: TrainingJobStatus;
  /** All events from the start of the job until it ends. */
  events(): AsyncIterable<TrainingJobEvent>;
  /** The result. Rejects if the job failed, and with `ABORTED` if it was cancelled. */
  readonly done: Promise<TrainingResult>;
  /** Stops the job and discards its training. Resolves when it has stopped. */
  cancel(): Promise<void>;
}

/** Registered models, which can be trained. */
export interface ModelsResource {
  /**
   * Registers a model.
   * @throws OnpolicyError `CONFLICT` if the name is taken, unless `return_existing`; `MODEL_NOT_FOUND` if the base model does not exist
   */
  create(request: ModelCreateRequest, options?: CallOptions): Promise<Model>;
  /** Finds a model by its id. */
  retrieve(id: string, options?: CallOptions): Promise<Model>;
  /** A page of the registered models, newest first by default. */
  list(query?: ListQuery, options?: CallOptions): Promise<Page<Model>>;
  /** Deletes a model with its checkpoints, trajectories and run. */
  delete(id: string, options?: CallOptions): Promise<ModelDeletion>;
  /** Stores trajectories and computes their metrics. */
  log(id: string, request: LogRequest, options?: CallOptions): Promise<LogResult>;
}

/** Checkpoints of trained models. */
export interface CheckpointsResource {
  /** A page of a model's checkpoints, newest first by default. */
  list(modelId: string, query?: ListQuery, options?: CallOptions): Promise<Page<Checkpoint>>;
  /** Deletes the checkpoints of the given steps. Steps without a checkpoint are reported. */
  delete(
    modelId: string,
    request: CheckpointDeleteRequest,
    options?: CallOptions,
  ): Promise<CheckpointDeletion>;
}

/** Training jobs, including those of earlier processes. */
export interface TrainingJobsResource {
  /** A page of the jobs, newest first by default, optionally of one model or status. */
  list(query?: JobListQuery, options?: CallOptions): Promise<Page<TrainingJobInfo>>;
  /** The status of a job. */
  retrieve(id: string, options?: CallOptions): Promise<TrainingJobInfo>;
  /** A page of a job's events in chronological order (`order` is not supported). */
  events(
    id: string,
    query?: Pick<ListQuery, 'after' | 'limit'>,
    options?: CallOptions,
  ): Promise<Page<TrainingJobEvent>>;
  /** @internal Returns the events of a job of this process as they occur, or null if they must be polled. */
  follow?(
    id: string,
    query: { after: string | null; signal: AbortSignal },
  ): AsyncIterator<TrainingJobEvent> | null;
  /** Stops a job if it runs, and returns its status. */
  cancel(id: string, options?: CallOptions): Promise<TrainingJobInfo>;
}

/** The answer to a transcription request. It is a text with `response_format: 'text'`. */
export type TranscriptionAnswer = Transcription | string | TranscriptionStream;

/** Answers requests of OpenAI's transcription API. */
export interface Transcribe {
  /**
   * Returns a stream of events.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, `UNSUPPORTED` for a model without audio input, before anything runs
   */
  (request: TranscriptionRequest & { stream: true }, options?: CallOptions): Promise<TranscriptionStream>;
  /** Returns a text. */
  (
    request: TranscriptionRequest & { response_format: 'text'; stream?: false | null },
    options?: CallOptions,
  ): Promise<string>;
  /** Returns the whole transcript. */
  (
    request: TranscriptionRequest & { response_format?: 'json' | null; stream?: false | null },
    options?: CallOptions,
  ): Promise<Transcription>;
  /** Returns the form that the request asks for. */
  (request: TranscriptionRequest, options?: CallOptions): Promise<TranscriptionAnswer>;
}

/** Loads LoRA adapters, such as the checkpoints of another process. */
export interface AdapterLoader {
  /**
   * Loads an adapter from a PEFT folder that the server can read. Requests then use its name as their `model`. Calls vLLM's `POST
   * /v1/load_lora_adapter`.
   * @throws OnpolicyError `INVALID_REQUEST` if the name is taken or the adapter does not fit
   */
  loadAdapter(
    adapter: { readonly name: string; readonly path: string },
    options?: CallOptions,
  ): Promise<void>;
  /** Unloads an adapter: `POST /v1/unload_lora_adapter`. @throws OnpolicyError `NOT_FOUND` if the server has no adapter of this name */
  unloadAdapter(name: string, options?: CallOptions): Promise<void>;
}

/** The service of a server, which can also load LoRA adapters. */
export interface ConnectedService extends Service, AdapterLoader {
  /** Starts a supervised training job on a registered model. Calls `POST /v1/preview/sft-training-jobs`. */
  sft(request: SftRequest, options?: CallOptions): Promise<TrainingJob>;
  /** Opens a training run whose steps the caller makes: on a model, or again by its id. */
  openTraining: NonNullable<Service['openTraining']>;
}

/**
 * Several services as one. Adapters are loaded at every member that can load them; requests for one go to the members that have it, so an
 * unreachable member does not matter if another one has loaded it.
 */
export interface PooledService extends Service, AdapterLoader {
  /** Adds a member, which gets requests from now on. Closing the pool also closes the member. */
  add(service: Service | Completions): void;
}

/** Answers requests and trains models. */
export interface Service extends Completions {
  /**
   * Answers many requests from a file, a stream or rows, and writes the answers to a file or yields them.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options
   */
  batch<Row = unknown, Url extends BatchUrl = ChatUrl, Parsed = undefined>(
    source: BatchSource<Row>,
    options?: TypedBatchOptions<Row, Url, Parsed>,
  ): BatchRun<TypedBatchRow<Url, Parsed>>;
  /** Transcribes the speech in a sound. */
  readonly transcribe: Transcribe;
  /**
   * Starts a training job on a registered model; resolves when it is queued.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
   */
  train(request: TrainingJobRequest, options?: CallOptions): Promise<TrainingJob>;
  /**
   * Empties the prefix caches of all loaded models, so that the next prompts are computed from their first token on. `success` is false,
   * and the cache of a model is kept, while requests run on it; with `reset_running_requests` they are computed again. Absent if the
   * service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, `UNSUPPORTED` for `reset_external`
   */
  resetPrefixCache?(query?: PrefixCacheQuery, options?: CallOptions): Promise<PrefixCacheReset>;
  readonly models: ModelsResource;
  readonly checkpoints: CheckpointsResource;
  readonly trainingJobs: TrainingJobsResource;
  /** Absent if the service does not support it. */
  readonly trainingRuns?: TrainingRunsResource | undefined;
  /**
   * Opens a training run whose steps the caller makes: on a model, or again by its id. Absent if the service does not support it.
   * @throws OnpolicyError `UNSUPPORTED` if the model cannot be trained, `NOT_FOUND` for an unknown run
   */
  openTraining?(
    target: TrainingRunRequest | { readonly run: string },
    options?: CallOptions,
  ): Promise<TrainingRun>;
}
