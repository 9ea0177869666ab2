/** Public methods of services -> a checked request, and its answer by the service's `ask`. */

import { OnpolicyError } from '../errors.ts';
import {
  type BatchOptions,
  type BatchRun,
  type BatchSource,
  type BatchUrl,
  type ChatRequestOptions,
  type ChatUrl,
  checkCallOptions,
  type PrefixCacheQuery,
  readingInput,
  type TrainingJobRequest,
  type TrainingRunRequest,
  type TypedBatchOptions,
  type TypedBatchRow,
} from '../protocol/index.ts';
import {
  type AnswerName,
  type AnyMethod,
  type CallArguments,
  type CallOptions,
  type Completions,
  METHODS,
  type Method,
  type MethodName,
  methods,
  methodsOf,
  type PrefixCacheReset,
  type Service,
  type TrainingJob,
  TrainingRun,
  type Transcribe,
} from '../protocol/service/index.ts';
import { answerRows, createBatch, ROWS_AT_ONCE } from './batch/index.ts';
import { takeMark, taker } from './checked-calls.ts';
import { transcribe } from './wires/index.ts';

export interface Facade extends Required<Pick<Completions, AnswerName>> {}

/** Checks the requests of its public methods. Subclasses answer the calls in `ask`. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the same
export abstract class Facade implements Completions {
  readonly transcribe = ((request, options) => transcribe(this, request, options)) as Transcribe;

  /** Answers a call whose arguments are checked, with options. */
  protected abstract ask(name: MethodName, args: CallArguments): unknown;

  /** Throws if the service is closed. */
  protected abstract requireOpen(): void;

  /** Throws `OVERLOADED` if the queue of the model `reference` is full. Runs before the request is read. The default never throws. */
  protected requireRoom(_reference: unknown): void {}

  /** Limits that requests are checked against. The default has none. */
  protected get limits(): ChatRequestOptions {
    return {};
  }

  /** @internal Returns true if the service answers calls of a method. Default: all methods. */
  has(_name: MethodName): boolean {
    return true;
  }

  /** @internal Rows of a batch in flight: twice the sequences that the service runs at once. */
  get rowsAtOnce(): number {
    return ROWS_AT_ONCE;
  }

  abstract close(): Promise<void>;

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Answers many requests from a file, a stream or rows, into a file or for a reader. If the process is killed, a new batch with `resume`
   * continues the run, and each row gets one line. See docs/batch.md.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options
   */
  batch<Row = unknown, Url extends BatchUrl = ChatUrl, Parsed = undefined>(
    source: BatchSource<Row>,
    options?: TypedBatchOptions<Row, Url, Parsed>,
  ): BatchRun<TypedBatchRow<Url, Parsed>> {
    this.requireOpen();
    const { servedModels } = this as { servedModels?(): readonly string[] };
    const defaultModel = servedModels?.call(this)[0] ?? null;
    const run: BatchRun = createBatch(
      { answer: answerRows(this), defaultModel, concurrency: this.rowsAtOnce },
      source,
      options as BatchOptions,
    );
    return run as BatchRun<TypedBatchRow<Url, Parsed>>;
  }

  /** @internal Checks a call and answers it. */
  protected async call(name: MethodName, given: CallArguments): Promise<unknown> {
    const { args, check, what, model, isQueued, translate, complete }: Method = METHODS[name];
    const sent = given[args.length - 1];
    const isChecked = takeMark(sent);
    const request = translate && !isChecked ? readingInput(sent, () => translate(sent)) : sent;
    const options = given[args.length];
    this.requireOpen();
    if (isQueued) this.requireRoom(readingInput(request, () => model!(given)));
    if (options !== undefined) checkCallOptions(options);
    if (!this.has(name)) throw new OnpolicyError('UNSUPPORTED', `this service has no ${what}`);
    if (check && !isChecked) check(request, this.limits);
    const before = args.slice(1).map((_, i) => given[i]);
    const answer = await this.ask(name, [...before, ...(args.length > 0 ? [request] : []), options ?? {}]);
    return complete ? await complete(answer as never, request) : answer;
  }

  /** Makes the methods of a resource, and adds the members of `own`. */
  protected resource<Resource extends object>(name: string, own: object = {}): Resource {
    const calls = methodsOf(name).map(([method, whole]) => [
      method,
      taker((...args) => this.call(whole, args)),
    ]);
    return { ...own, ...Object.fromEntries(calls) } as Resource;
  }
}

for (const [name, { check, model }] of methods)
  if (check && model)
    Object.defineProperty(Facade.prototype, name, {
      value: taker(function (this: Facade, ...args) {
        return this['call'](name, args);
      }),
      writable: true,
      configurable: true,
    });

/** A facade of a service that can also train models. */
export abstract class TrainingFacade extends Facade implements Service {
  abstract readonly models: Service['models'];
  abstract readonly checkpoints: Service['checkpoints'];
  abstract readonly trainingJobs: Service['trainingJobs'];
  abstract readonly trainingRuns: Service['trainingRuns'];

  async openTraining(
    target: TrainingRunRequest | { readonly run: string },
    options: CallOptions = {},
  ): Promise<TrainingRun> {
    this.requireOpen();
    checkCallOptions(options);
    const runs = this.trainingRuns;
    if (!runs) throw new OnpolicyError('UNSUPPORTED', 'this service has no training runs');
    const isKnown = readingInput(
      target,
      () => typeof target === 'object' && target !== null && 'run' in target,
    );
    const info = isKnown
      ? await runs.retrieve((target as { run: string }).run, options)
      : await runs.create(target as TrainingRunRequest, options);
    return new TrainingRun(runs, info);
  }

  resetPrefixCache(query: PrefixCacheQuery = {}, options?: CallOptions): Promise<PrefixCacheReset> {
    return this.call('resetPrefixCache', [query, options]) as Promise<PrefixCacheReset>;
  }

  /**
   * Starts a training job on a registered model: reinforcement learning on groups of scored trajectories. Resolves when it is queued; jobs
   * on one model file run one after the other, and completions continue meanwhile.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
   */
  train(request: TrainingJobRequest, options?: CallOptions): Promise<TrainingJob> {
    return this.call('train', [request, options]) as Promise<TrainingJob>;
  }
}
taker(TrainingFacade.prototype.train as AnyMethod);
taker(TrainingFacade.prototype.resetPrefixCache as AnyMethod);
