/** Public methods of services -> validated requests to the inner service. */
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
  type ClassifyRequest,
  type ClassifyResponse,
  checkCallOptions,
  type EmbeddingRequest,
  type EmbeddingResponse,
  type RenderedPrompt,
  type RerankRequest,
  type RerankResponse,
  type ScoreRequest,
  type ScoreResponse,
  type TextCompletion,
  type TextCompletionRequest,
  type TrainingJobRequest,
  type TrainingRunRequest,
} from './protocol/index.ts';
import {
  type Answer,
  type CallOptions,
  type Completions,
  type Inner,
  type InnerService,
  METHODS,
  type Method,
  type MethodName,
  methods,
  type Reply,
  type Service,
  type StreamFlag,
  type TrainingJob,
  type Transcribe,
} from './service.ts';
import { TrainingRun } from './training-run.ts';
import { transcribe } from './wires/index.ts';

/** The inner service of a service of this library. Not exported from the package. */
export const INNER = Symbol('onpolicy.inner');

/** Validates the requests of its public methods and passes them to its inner service. */
export abstract class CheckedService implements Completions {
  /** @internal */
  abstract readonly [INNER]: InnerService;

  readonly transcribe = ((request, options) => transcribe(this, request, options)) as Transcribe;

  /** Throws if the service is closed or full, before a request is read. */
  protected abstract enter(request: unknown): void;

  /** What the service allows. Default: everything. */
  protected get limits(): ChatRequestOptions {
    return {};
  }

  abstract close(): Promise<void>;

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async createCompletion<Flag extends StreamFlag = undefined>(
    request: ChatCompletionRequest & { stream?: Flag },
    options?: CallOptions,
  ): Promise<Answer<Flag, ChatCompletionStream, ChatCompletion>> {
    return (await this.ask('chat', request, options)) as Answer<Flag, ChatCompletionStream, ChatCompletion>;
  }

  async createTextCompletion<Flag extends StreamFlag = undefined>(
    request: TextCompletionRequest & { stream?: Flag },
    options?: CallOptions,
  ): Promise<Answer<Flag, TextCompletionStream, TextCompletion>> {
    return (await this.ask('text', request, options)) as Answer<Flag, TextCompletionStream, TextCompletion>;
  }

  async createEmbeddings(request: EmbeddingRequest, options?: CallOptions): Promise<EmbeddingResponse> {
    return await this.ask('embed', request, options);
  }

  async rerank(request: RerankRequest, options?: CallOptions): Promise<RerankResponse> {
    return await this.ask('rerank', request, options);
  }

  async score(request: ScoreRequest, options?: CallOptions): Promise<ScoreResponse> {
    return await this.ask('score', request, options);
  }

  async classify(request: ClassifyRequest, options?: CallOptions): Promise<ClassifyResponse> {
    return await this.ask('classify', request, options);
  }

  async renderPrompt(request: ChatCompletionRequest, options?: CallOptions): Promise<RenderedPrompt> {
    return await this.ask('render', request, options);
  }

  /**
   * Answers many requests from a file, a stream or rows, into a file or for a reader. Killed and started again with `resume`, it continues
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

  /** @internal */
  protected async ask<Name extends MethodName>(
    name: Name,
    request: object,
    options: CallOptions = {},
  ): Promise<Awaited<Reply<Name>>> {
    const { check, what }: Method = METHODS[name];
    this.enter(name === 'render' ? null : request);
    checkCallOptions(options);
    const inner = this[INNER];
    if (!inner[name]) throw new OnpolicyError('UNSUPPORTED', `this service has no ${what}`);
    const answer = inner[name] as Inner<object, Awaited<Reply<Name>>>;
    return await answer.call(inner, check(request, this.limits) as Checked<object>, options);
  }
}

/** A checked service that also trains. */
export abstract class CheckedTrainingService extends CheckedService implements Service {
  abstract readonly models: Service['models'];
  abstract readonly checkpoints: Service['checkpoints'];
  abstract readonly trainingJobs: Service['trainingJobs'];
  abstract readonly trainingRuns: Service['trainingRuns'];

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
  async train(request: TrainingJobRequest, options?: CallOptions): Promise<TrainingJob> {
    return await this.ask('train', request, options);
  }
}

/**
 * The inner method of a service, if it has one. A public method that is not from this file, such as that of another service or of a
 * wrapper, is called directly, with its own validation.
 */
export function innerMethod<Name extends MethodName>(
  service: Completions & Partial<Service>,
  name: Name,
): InnerService[Name] {
  type Any = ((...args: never[]) => unknown) | undefined;
  const { name: method } = METHODS[name];
  const own = service[method] as Any;
  const inner = service instanceof CheckedService ? service[INNER] : null;
  const isOurs = inner !== null && own === CheckedTrainingService.prototype[method];
  return (isOurs ? (inner[name] as Any)?.bind(inner) : own?.bind(service)) as InnerService[Name];
}

export function innerOf(service: Completions & Partial<Service>): InnerService {
  const found = methods.map(([name]) => [name, innerMethod(service, name)]);
  const log =
    service instanceof CheckedService ? service[INNER].log : service.models?.log.bind(service.models);
  return { ...Object.fromEntries(found), log };
}
