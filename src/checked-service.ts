/** Public methods of services -> validated requests to the inner service. Each method and its validation is written once, here. */
import type { ChatCompletionStream, TextCompletionStream } from './answer/index.ts';
import { answerRows, createBatch } from './batch/index.ts';
import { OnpolicyError } from './errors.ts';
import {
  type BatchOptions,
  type BatchRun,
  type BatchSource,
  type ChatCompletion,
  type ChatCompletionRequest,
  type ChatRequestOptions,
  type Checked,
  type CheckedLogRequest,
  type ClassifyRequest,
  type ClassifyResponse,
  checkCallOptions,
  checkChatRequest,
  checkClassifyRequest,
  checkEmbeddingRequest,
  checkRerankRequest,
  checkScoreRequest,
  checkTextCompletionRequest,
  type EmbeddingRequest,
  type EmbeddingResponse,
  type LogResult,
  type RenderedPrompt,
  type RerankRequest,
  type RerankResponse,
  type ScoreRequest,
  type ScoreResponse,
  type TextCompletion,
  type TextCompletionRequest,
  type TrainingJobRequest,
  type TrainingRunRequest,
  validateTrainingJobRequest,
} from './protocol/index.ts';
import type {
  Answer,
  CallOptions,
  Completions,
  Service,
  StreamFlag,
  TrainingJob,
  Transcribe,
} from './service.ts';
import { TrainingRun } from './training-run.ts';
import { transcribe } from './wires/index.ts';

/** The whole answer to a chat completion request, or its stream. */
export type ChatAnswer = ChatCompletion | ChatCompletionStream;
/** The whole answer to a text completion request, or its stream. */
export type TextAnswer = TextCompletion | TextCompletionStream;

/** Answers requests that were validated in this process. Handlers, pools and recorders call it. An absent method is not supported. */
export type InnerService = {
  readonly chat: (request: Checked<ChatCompletionRequest>, options: CallOptions) => Promise<ChatAnswer>;
  readonly text?: (request: Checked<TextCompletionRequest>, options: CallOptions) => Promise<TextAnswer>;
  readonly embed?: (request: Checked<EmbeddingRequest>, options: CallOptions) => Promise<EmbeddingResponse>;
  readonly rerank?: (request: Checked<RerankRequest>, options: CallOptions) => Promise<RerankResponse>;
  readonly score?: (request: Checked<ScoreRequest>, options: CallOptions) => Promise<ScoreResponse>;
  readonly classify?: (request: Checked<ClassifyRequest>, options: CallOptions) => Promise<ClassifyResponse>;
  readonly render?: (
    request: Checked<ChatCompletionRequest>,
    options: CallOptions,
  ) => Promise<RenderedPrompt>;
  readonly train?: (request: Checked<TrainingJobRequest>, options: CallOptions) => Promise<TrainingJob>;
  readonly log?: (id: string, request: CheckedLogRequest, options: CallOptions) => Promise<LogResult>;
};

/** The inner service of a service of this library. Not exported from the package. */
export const INNER = Symbol('onpolicy.inner');

/** Validates the requests of its public methods and passes them to its inner service. */
export abstract class CheckedService implements Completions {
  /** @internal */
  abstract readonly [INNER]: InnerService;

  /** Writes down what is said in a sound, by a model that hears. */
  readonly transcribe = ((request, options) => transcribe(this, request, options)) as Transcribe;

  /** Throws if the service is closed or full, before a request is read. */
  protected abstract enter(request: unknown): void;

  /** What the service allows. Default: everything. */
  protected get limits(): ChatRequestOptions {
    return {};
  }

  /** Ends running requests and frees all resources. Can be called twice. */
  abstract close(): Promise<void>;

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Answers a chat completion request: with `stream: true` as a stream of chunks, else as a whole. */
  async createCompletion<Flag extends StreamFlag = undefined>(
    request: ChatCompletionRequest & { stream?: Flag },
    options: CallOptions = {},
  ): Promise<Answer<Flag, ChatCompletionStream, ChatCompletion>> {
    this.#enter(request, options);
    const answer = await this[INNER].chat(checkChatRequest(request, this.limits), options);
    return answer as Answer<Flag, ChatCompletionStream, ChatCompletion>;
  }

  /** Continues prompts without a chat template: with `stream: true` as a stream of chunks, else as a whole. */
  async createTextCompletion<Flag extends StreamFlag = undefined>(
    request: TextCompletionRequest & { stream?: Flag },
    options: CallOptions = {},
  ): Promise<Answer<Flag, TextCompletionStream, TextCompletion>> {
    this.#enter(request, options);
    const text = able(this, 'text', 'text completions');
    const answer = await text(checkTextCompletionRequest(request, this.limits), options);
    return answer as Answer<Flag, TextCompletionStream, TextCompletion>;
  }

  /**
   * Computes the vectors of texts with an embedding model.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model without embeddings, `CONTEXT_OVERFLOW` for long texts
   */
  async createEmbeddings(request: EmbeddingRequest, options: CallOptions = {}): Promise<EmbeddingResponse> {
    this.#enter(request, options);
    return await able(this, 'embed', 'embeddings')(checkEmbeddingRequest(request), options);
  }

  /**
   * Orders documents by how well they fit a query. See docs/ranking.md for the models that do.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model that cannot rank, `CONTEXT_OVERFLOW` for long texts
   */
  async rerank(request: RerankRequest, options: CallOptions = {}): Promise<RerankResponse> {
    this.#enter(request, options);
    return await able(this, 'rerank', 'rankings')(checkRerankRequest(request), options);
  }

  /**
   * Compares pairs of texts.
   * @throws OnpolicyError as `rerank` does
   */
  async score(request: ScoreRequest, options: CallOptions = {}): Promise<ScoreResponse> {
    this.#enter(request, options);
    return await able(this, 'score', 'scores')(checkScoreRequest(request), options);
  }

  /**
   * Labels texts with a model that has labels.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model without labels, `CONTEXT_OVERFLOW` for long texts
   */
  async classify(request: ClassifyRequest, options: CallOptions = {}): Promise<ClassifyResponse> {
    this.#enter(request, options);
    return await able(this, 'classify', 'labels')(checkClassifyRequest(request), options);
  }

  /**
   * Returns the prompt of a chat completion request. Nothing is generated.
   * @throws OnpolicyError as `createCompletion` does for the same request, `UNSUPPORTED` if the service does not support it
   */
  async renderPrompt(request: ChatCompletionRequest, options: CallOptions = {}): Promise<RenderedPrompt> {
    this.#enter(null, options);
    return await able(this, 'render', 'prompts')(checkChatRequest(request, this.limits), options);
  }

  /**
   * Answers many requests out of a file, a stream or rows, into a file or for a reader. Killed and started again with `resume`, it goes on
   * where it was: each row has one line. See docs/batch.md.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options
   */
  batch(source: BatchSource, options?: BatchOptions): BatchRun {
    this.enter(null);
    const { servedModels } = this as { servedModels?(): readonly string[] };
    const defaultModel = servedModels?.call(this)[0] ?? null;
    const answer = answerRows({ service: this, ...innerOf(this) });
    return createBatch({ answer, defaultModel }, source, options);
  }

  #enter(request: unknown, options: CallOptions): void {
    this.enter(request);
    checkCallOptions(options);
  }
}

/** A checked service that also trains. */
export abstract class CheckedTrainingService extends CheckedService implements Service {
  abstract readonly models: Service['models'];
  abstract readonly checkpoints: Service['checkpoints'];
  abstract readonly trainingJobs: Service['trainingJobs'];
  abstract readonly trainingRuns: Service['trainingRuns'];

  /**
   * Opens a training run whose steps the caller makes: on a model, or again by its id.
   * @throws OnpolicyError `UNSUPPORTED` if the model cannot be trained, `NOT_FOUND` for an unknown run
   */
  async openTraining(
    target: TrainingRunRequest | { readonly run: string },
    options: CallOptions = {},
  ): Promise<TrainingRun> {
    this.enter(null);
    checkCallOptions(options);
    const runs = this.trainingRuns;
    if (!runs) throw new OnpolicyError('UNSUPPORTED', 'this service has no training runs');
    const isKnown = typeof target === 'object' && target !== null && 'run' in target;
    const info = isKnown ? await runs.retrieve(target.run, options) : await runs.create(target, options);
    return new TrainingRun(runs, info);
  }

  /**
   * Starts a training job on a registered model: reinforcement learning on groups of scored trajectories. Resolves when it is queued; jobs
   * on one model file run one after the other, and completions continue meanwhile.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
   */
  async train(request: TrainingJobRequest, options: CallOptions = {}): Promise<TrainingJob> {
    this.enter(null);
    checkCallOptions(options);
    return await able(this, 'train', 'training')(validateTrainingJobRequest(request), options);
  }
}

/** The public method of each inner one. */
const PUBLIC = {
  chat: 'createCompletion',
  text: 'createTextCompletion',
  embed: 'createEmbeddings',
  rerank: 'rerank',
  score: 'score',
  classify: 'classify',
  render: 'renderPrompt',
  train: 'train',
} as const;

/**
 * The inner service of a service. A public method that is not from this file, such as that of another service or of a wrapper, is called
 * directly, with its own validation.
 */
export function innerOf(service: Completions & Partial<Service>): InnerService {
  const inner: InnerService | null = service instanceof CheckedService ? service[INNER] : null;
  const methods = service as unknown as Record<string, ((...args: unknown[]) => unknown) | undefined>;
  const ours = CheckedTrainingService.prototype as unknown as typeof methods;
  const found = Object.entries(PUBLIC).map(([name, method]) => {
    const isOurs = inner !== null && methods[method] === ours[method];
    return [name, isOurs ? inner[name as keyof InnerService] : methods[method]?.bind(service)];
  });
  const log = inner ? inner.log : service.models?.log.bind(service.models);
  return { ...Object.fromEntries(found), log };
}

/** Returns an optional part of a service. Throws `UNSUPPORTED` if it is missing. */
function able<Name extends keyof InnerService>(
  service: CheckedService,
  name: Name,
  what: string,
): NonNullable<InnerService[Name]> {
  const method = service[INNER][name];
  if (!method) throw new OnpolicyError('UNSUPPORTED', `this service has no ${what}`);
  return method;
}
