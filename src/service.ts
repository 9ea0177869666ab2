/** The interface of services: the runtime in this process, the client of a server, a pool of services. */

import { ChatCompletionStream, TextCompletionStream, type TranscriptionStream } from './answer/index.ts';
import {
  type BatchOptions,
  type BatchRun,
  type BatchSource,
  type CallOptions,
  type ChatCompletion,
  type ChatCompletionRequest,
  type ChatRequestOptions,
  type Checked,
  type CheckedLogRequest,
  type Checkpoint,
  type CheckpointDeleteRequest,
  type CheckpointDeletion,
  type ClassifyRequest,
  type ClassifyResponse,
  checkChatRequest,
  checkEmbeddingRequest,
  checkOf,
  checkScoreRequest,
  checkTextCompletionRequest,
  type EmbeddingRequest,
  type EmbeddingResponse,
  type JobListQuery,
  type ListQuery,
  type LogRequest,
  type LogResult,
  type Model,
  type ModelCreateRequest,
  type ModelDeletion,
  type Page,
  type RenderedPrompt,
  type RerankRequest,
  type RerankResponse,
  type ScoreRequest,
  type ScoreResponse,
  type SftRequest,
  type TextCompletion,
  type TextCompletionRequest,
  type TrainingJobEvent,
  type TrainingJobInfo,
  type TrainingJobRequest,
  type TrainingJobStatus,
  type TrainingResult,
  type TrainingRunRequest,
  type Transcription,
  type TranscriptionRequest,
  validateTrainingJobRequest,
} from './protocol/index.ts';
import type { TrainingRun, TrainingRunsResource } from './training-run.ts';

export type { CallOptions, TrainingRunsResource };

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
  /** @internal Events of a job of this process as they come; null: polling must find them. */
  follow?(
    id: string,
    query: { after: string | null; signal: AbortSignal },
  ): AsyncIterator<TrainingJobEvent> | null;
  /** Stops a job if it runs, and returns its status. */
  cancel(id: string, options?: CallOptions): Promise<TrainingJobInfo>;
}

/** `stream` of a request. */
export type StreamFlag = boolean | null | undefined;

/** An answer: a stream if `stream` of its request is true, else the whole. One signature with it has one error, overloads one each. */
export type Answer<Flag extends StreamFlag, Stream, Whole> = Flag extends true ? Stream : Whole;

/** Answers requests. */
export interface Completions {
  /**
   * Answers a chat completion request: with `stream: true` as a stream of chunks, else as a whole.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createCompletion<Flag extends StreamFlag = undefined>(
    request: ChatCompletionRequest & { stream?: Flag },
    options?: CallOptions,
  ): Promise<Answer<Flag, ChatCompletionStream, ChatCompletion>>;
  /**
   * Continues prompts without a chat template, as a stream of chunks or as a whole. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createTextCompletion?<Flag extends StreamFlag = undefined>(
    request: TextCompletionRequest & { stream?: Flag },
    options?: CallOptions,
  ): Promise<Answer<Flag, TextCompletionStream, TextCompletion>>;
  /**
   * Computes the vectors of texts with an embedding model. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model without embeddings, `CONTEXT_OVERFLOW` for long texts
   */
  createEmbeddings?(request: EmbeddingRequest, options?: CallOptions): Promise<EmbeddingResponse>;
  /**
   * Orders documents by how well they fit a query. See docs/ranking.md for the models that do. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model that cannot rank, `CONTEXT_OVERFLOW` for long texts
   */
  rerank?(request: RerankRequest, options?: CallOptions): Promise<RerankResponse>;
  /**
   * Compares pairs of texts. Absent if the service does not support it.
   * @throws OnpolicyError as `rerank` does
   */
  score?(request: ScoreRequest, options?: CallOptions): Promise<ScoreResponse>;
  /**
   * Labels texts with a model that has labels. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model without labels, `CONTEXT_OVERFLOW` for long texts
   */
  classify?(request: ClassifyRequest, options?: CallOptions): Promise<ClassifyResponse>;
  /**
   * Returns the prompt of a chat completion request. Nothing is generated. Absent if the service does not support it.
   * @throws OnpolicyError as `createCompletion` does for the same request, `UNSUPPORTED` if the service does not support it
   */
  renderPrompt?(request: ChatCompletionRequest, options?: CallOptions): Promise<RenderedPrompt>;
  /** Ends running requests and frees all resources. Can be called twice. */
  close(): Promise<void>;
  /** The same as {@link close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a request is answered with: with `response_format: 'text'` a text. */
export type TranscriptionAnswer = Transcription | string | TranscriptionStream;

/** Answers requests of OpenAI's transcription API. */
export interface Transcribe {
  /**
   * As a stream of events.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, `UNSUPPORTED` for a model that does not hear, before anything runs
   */
  (request: TranscriptionRequest & { stream: true }, options?: CallOptions): Promise<TranscriptionStream>;
  /** As a text. */
  (
    request: TranscriptionRequest & { response_format: 'text'; stream?: false | null },
    options?: CallOptions,
  ): Promise<string>;
  /** As a whole. */
  (
    request: TranscriptionRequest & { response_format?: 'json' | null; stream?: false | null },
    options?: CallOptions,
  ): Promise<Transcription>;
  /** As the request says. */
  (request: TranscriptionRequest, options?: CallOptions): Promise<TranscriptionAnswer>;
}

/** Loads LoRA adapters that checkpoints of another process are. */
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
  /** Adds a member, which gets requests from now on. Closing the pool closes it, too. */
  add(service: Service | Completions): void;
}

/** Answers requests and trains models. */
export interface Service extends Completions {
  /**
   * Answers many requests out of a file, a stream or rows, into a file or for a reader.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options
   */
  batch(source: BatchSource, options?: BatchOptions): BatchRun;
  /** Writes down what is said in a sound. */
  readonly transcribe: Transcribe;
  /**
   * Starts a training job on a registered model; resolves when it is queued.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
   */
  train(request: TrainingJobRequest, options?: CallOptions): Promise<TrainingJob>;
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

/** The whole answer to a chat completion request, or its stream. */
export type ChatAnswer = ChatCompletion | ChatCompletionStream;
/** The whole answer to a text completion request, or its stream. */
export type TextAnswer = TextCompletion | TextCompletionStream;

/** A method of an inner service. */
export type Inner<Request, Reply> = (request: Checked<Request>, options: CallOptions) => Promise<Reply>;

/** Answers requests that were validated in this process. Handlers, pools and recorders call it. An absent method is not supported. */
export type InnerService = {
  readonly chat: Inner<ChatCompletionRequest, ChatAnswer>;
  readonly text?: Inner<TextCompletionRequest, TextAnswer>;
  readonly embed?: Inner<EmbeddingRequest, EmbeddingResponse>;
  readonly rerank?: Inner<RerankRequest, RerankResponse>;
  readonly score?: Inner<ScoreRequest, ScoreResponse>;
  readonly classify?: Inner<ClassifyRequest, ClassifyResponse>;
  readonly render?: Inner<ChatCompletionRequest, RenderedPrompt>;
  readonly train?: Inner<TrainingJobRequest, TrainingJob>;
  readonly log?: (id: string, request: CheckedLogRequest, options: CallOptions) => Promise<LogResult>;
};

/** A request of any of these methods. */
export type AnyRequest = Partial<ChatCompletionRequest & TextCompletionRequest>;

/** What there is to know of a method. Servers, clients, pools and isolated processes have it by this. */
export type Method = {
  /** Of the public method. */
  readonly name: keyof Service & string;
  /** What it answers with, in words. */
  readonly what: string;
  readonly check: (input: unknown, options: ChatRequestOptions) => unknown;
  /** Where a server has it. Absent: clients do not. */
  readonly path?: string;
  /** Its answer where the request has `stream: true`. */
  readonly Stream?: new (
    parts: AsyncIterator<never>,
    stop: () => void,
  ) => object;
  /** Fields whose lists have at most `maxInputs` over HTTP. With them, servers need no handler of its own. */
  readonly texts?: readonly string[];
};

/** The methods of every service, by the name of the inner one. */
export const METHODS = {
  chat: {
    name: 'createCompletion',
    what: 'chat completions',
    check: checkChatRequest,
    path: '/v1/chat/completions',
    Stream: ChatCompletionStream,
  },
  text: {
    name: 'createTextCompletion',
    what: 'text completions',
    check: checkTextCompletionRequest,
    path: '/v1/completions',
    Stream: TextCompletionStream,
  },
  embed: {
    name: 'createEmbeddings',
    what: 'embeddings',
    check: checkEmbeddingRequest,
    path: '/v1/embeddings',
    texts: ['input'],
  },
  rerank: {
    name: 'rerank',
    what: 'rankings',
    check: checkOf('RerankRequest'),
    path: '/v1/rerank',
    texts: ['documents'],
  },
  score: {
    name: 'score',
    what: 'scores',
    check: checkScoreRequest,
    path: '/v1/score',
    texts: ['text_1', 'text_2'],
  },
  classify: {
    name: 'classify',
    what: 'labels',
    check: checkOf('ClassifyRequest'),
    path: '/v1/classify',
    texts: ['input'],
  },
  render: { name: 'renderPrompt', what: 'prompts', check: checkChatRequest },
  train: { name: 'train', what: 'training', check: validateTrainingJobRequest },
} as const satisfies Record<string, Method>;

/** A method of every service, by the name of the inner one. */
export type MethodName = keyof typeof METHODS;

/** The methods with what there is to know of them. */
export const methods = Object.entries(METHODS) as readonly [MethodName, Method][];

/** What a method resolves with. */
export type Reply<Name extends MethodName> = ReturnType<NonNullable<InnerService[Name]>>;

/** An inner service of the methods that servers have, each made of what there is to know of it. */
export function remoteMethods(
  make: (name: MethodName, method: Method) => Inner<AnyRequest, object>,
): Pick<InnerService, 'chat'> {
  const remote = methods.filter(([, { path }]) => path !== undefined);
  return Object.fromEntries(remote.map(([name, method]) => [name, make(name, method)])) as never;
}
