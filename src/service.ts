/** The contract of services: the runtime in this process, the client of a server, a pool of services. */

import type { ChatCompletionStream, TextCompletionStream } from './answer/index.ts';
import type {
  CallOptions,
  ChatCompletion,
  ChatCompletionRequest,
  Checkpoint,
  CheckpointDeleteRequest,
  CheckpointDeletion,
  EmbeddingRequest,
  EmbeddingResponse,
  JobListQuery,
  ListQuery,
  LogRequest,
  LogResult,
  Model,
  ModelCreateRequest,
  ModelDeletion,
  Page,
  TextCompletion,
  TextCompletionRequest,
  TrainingJobEvent,
  TrainingJobInfo,
  TrainingJobRequest,
  TrainingJobStatus,
  TrainingResult,
} from './protocol/index.ts';

export type { CallOptions };

/** A training job that was started here. */
export interface TrainingJob {
  /** A UUID. */
  readonly id: string;
  readonly status: TrainingJobStatus;
  /** What happens, from the job's beginning on, until it has ended. */
  events(): AsyncIterable<TrainingJobEvent>;
  /** Rejects when the job failed, and with `ABORTED` when it was cancelled. */
  readonly done: Promise<TrainingResult>;
  /** Stops the job; what it has trained so far is dropped. Resolves when it has stopped. */
  cancel(): Promise<void>;
}

/** Models that can be trained. */
export interface ModelsResource {
  /**
   * Registers a model.
   * @throws OnpolicyError `CONFLICT` when the name is taken, unless `return_existing`; `MODEL_NOT_FOUND` for a base that is not there
   */
  create(request: ModelCreateRequest, options?: CallOptions): Promise<Model>;
  /** Finds a model by its id. */
  retrieve(id: string, options?: CallOptions): Promise<Model>;
  /** A page of the registered models, newest first unless asked otherwise. */
  list(query?: ListQuery, options?: CallOptions): Promise<Page<Model>>;
  /** Deletes a model with its checkpoints, trajectories and run. */
  delete(id: string, options?: CallOptions): Promise<ModelDeletion>;
  /** Stores trajectories and computes their metrics. */
  log(id: string, request: LogRequest, options?: CallOptions): Promise<LogResult>;
}

/** Checkpoints of trained models. */
export interface CheckpointsResource {
  /** A page of a model's checkpoints, newest first unless asked otherwise. */
  list(modelId: string, query?: ListQuery, options?: CallOptions): Promise<Page<Checkpoint>>;
  /** Deletes the checkpoints of some steps; steps without one are reported. */
  delete(
    modelId: string,
    request: CheckpointDeleteRequest,
    options?: CallOptions,
  ): Promise<CheckpointDeletion>;
}

/** Training jobs, also those of earlier processes. */
export interface TrainingJobsResource {
  /** A page of the jobs, newest first unless asked otherwise; of one model or status if asked. */
  list(query?: JobListQuery, options?: CallOptions): Promise<Page<TrainingJobInfo>>;
  /** The state of a job. */
  retrieve(id: string, options?: CallOptions): Promise<TrainingJobInfo>;
  /** Its events in the order they happened (`order` is not for them). */
  events(
    id: string,
    query?: Pick<ListQuery, 'after' | 'limit'>,
    options?: CallOptions,
  ): Promise<Page<TrainingJobEvent>>;
  /** Stops a job if it runs, and returns its state. */
  cancel(id: string, options?: CallOptions): Promise<TrainingJobInfo>;
}

/** Answers requests. */
export interface Completions {
  /**
   * Answers a chat completion request as a stream of chunks.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createCompletion(
    request: ChatCompletionRequest & { stream: true },
    options?: CallOptions,
  ): Promise<ChatCompletionStream>;
  /** Answers a chat completion request as a whole. */
  createCompletion(
    request: ChatCompletionRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<ChatCompletion>;
  /** Answers a chat completion request, as the request's `stream` says. */
  createCompletion(
    request: ChatCompletionRequest,
    options?: CallOptions,
  ): Promise<ChatCompletion | ChatCompletionStream>;
  /**
   * Continues prompts as they are, without a chat template, as a stream of chunks. Absent where the service has none.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createTextCompletion?(
    request: TextCompletionRequest & { stream: true },
    options?: CallOptions,
  ): Promise<TextCompletionStream>;
  /** Continues prompts as they are, as a whole. */
  createTextCompletion?(
    request: TextCompletionRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<TextCompletion>;
  /** Continues prompts as they are, as the request's `stream` says. */
  createTextCompletion?(
    request: TextCompletionRequest,
    options?: CallOptions,
  ): Promise<TextCompletion | TextCompletionStream>;
  /**
   * The vectors of texts. Absent where the service has none.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createEmbeddings?(request: EmbeddingRequest, options?: CallOptions): Promise<EmbeddingResponse>;
  /** Ends what runs, frees everything. Closing twice is fine. */
  close(): Promise<void>;
  /** The same as {@link close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The service of a server, which also takes LoRA adapters. */
export interface ConnectedService extends Service {
  /**
   * Loads an adapter, a folder of PEFT that the server sees, by the name that requests then use as their `model`: vLLM's
   * `POST /v1/load_lora_adapter`.
   * @throws OnpolicyError `INVALID_REQUEST` when the name is taken or the adapter does not fit
   */
  loadAdapter(
    adapter: { readonly name: string; readonly path: string },
    options?: CallOptions,
  ): Promise<void>;
  /** Takes it back: `POST /v1/unload_lora_adapter`. @throws OnpolicyError `NOT_FOUND` for a name that it does not have */
  unloadAdapter(name: string, options?: CallOptions): Promise<void>;
}

/** Answers requests, and trains. */
export interface Service extends Completions {
  /**
   * Starts a training job on a registered model; resolves when it is queued.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
   */
  train(request: TrainingJobRequest, options?: CallOptions): Promise<TrainingJob>;
  readonly models: ModelsResource;
  readonly checkpoints: CheckpointsResource;
  readonly trainingJobs: TrainingJobsResource;
}
