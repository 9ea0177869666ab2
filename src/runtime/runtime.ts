/** Requests -> answers and training jobs of this process. Connects models, engines, answers, training and the store. */
import path from 'node:path';
import { loadAddon, openLibraries } from '../engine/native/index.ts';
import { OnpolicyError } from '../errors.ts';
import { type DownloadsResource, downloadsResource } from '../models/hub/index.ts';
import { adaptersResource, type Models, modelExporter, NamedAdapters, openModels } from '../models/index.ts';
import { type MediaStats, soundWindows, sumMediaStats } from '../models/media/index.ts';
import { type DiskCachesResource, diskCachesResource } from '../models/prompt-files/index.ts';
import {
  checkCallOptions,
  checkTextCompletionRequest,
  fault,
  type MessageCountRequest,
  type MessageTokensCount,
  type PrefixCacheQuery,
  type RecorderOptions,
  type ReportOptions,
  type RuntimeOptions,
  type TextCompletion,
  throwFaults,
} from '../protocol/index.ts';
import type {
  AdaptersResource,
  CallArguments,
  CallOptions,
  MethodName,
  ModelCard,
  PrefixCacheReset,
  ResidentModel,
  TrainingJob,
  TrainingJobsResource,
  TrainingRunsResource,
} from '../protocol/service/index.ts';
import type { SftRequest } from '../rl/index.ts';
import { findRegistered, isRegistered, Training } from '../rl/jobs/index.ts';
import { makeReport } from '../rl/report/index.ts';
import {
  type DistillOptions,
  type DistillResult,
  distill,
  type Recorder,
  record,
} from '../rl/rollout/index.ts';
import {
  checkpointsResource,
  type LocalCheckpointsResource,
  type LocalModelsResource,
  modelsResource,
  type OpenStore,
  openStore,
  type RunsResource,
  runsResource,
} from '../rl/store/index.ts';
import { createFetch } from '../serve/http/index.ts';
import { callMethod, TrainingFacade } from '../serve/index.ts';
import {
  type CreateMessage,
  countMessageTokens,
  createMessage,
  type ResponsesResource,
  responsesOf,
} from '../serve/wires/index.ts';
import { Answering } from './answering.ts';
import { FORMATS } from './formats.ts';
import { Isolation } from './isolation/index.ts';
import { type CheckedOptions, checkOptions } from './options.ts';
import { type RuntimeStats, runtimeStats, sumRuntimeStats } from './stats.ts';

export { inspectModel } from './inspect-model.ts';

const LOG_LEVELS = ['debug', 'debug', 'info', 'warn', 'error'] as const;
const MODEL_REFERENCE = 'a name, an hf: URI or a path of a model';

/** A service whose models run in this process. */
export class Runtime extends TrainingFacade {
  /** Registered models, which can be trained. */
  readonly models: LocalModelsResource;
  /** Checkpoints of trained models. */
  readonly checkpoints: LocalCheckpointsResource;
  /** Metrics and trajectories of training and logging. */
  readonly runs: RunsResource;
  /** Models that were downloaded from `hf:` URIs. */
  readonly downloads: DownloadsResource;
  /** Named LoRA adapters. */
  readonly adapters: AdaptersResource;
  /** Caches of prompts on the disk, see the option `diskCacheBytes`. */
  readonly diskCaches: DiskCachesResource;
  /** Training jobs, including those of earlier processes. */
  readonly trainingJobs: TrainingJobsResource;
  /** Training runs whose steps are sent one by one. {@link openTraining} calls them. */
  readonly trainingRuns: TrainingRunsResource;
  /** Answers the clients of HTTP APIs in this process, in place of the global `fetch`. See {@link createFetch}. */
  readonly fetch: typeof globalThis.fetch = createFetch(this);
  /** Answers requests of Anthropic's messages API. */
  readonly createMessage = ((request, options) => createMessage(this, request, options)) as CreateMessage;
  /** Counts the tokens of the prompt of such a request. Rejects as `createMessage` does. */
  readonly countMessageTokens = (
    request: MessageCountRequest,
    options?: CallOptions,
  ): Promise<MessageTokensCount> => countMessageTokens(this, request, options);
  /** OpenAI's responses API. Responses are stored, up to a limit. */
  readonly responses: ResponsesResource = responsesOf(this);
  /** Answers requests of OpenAI's responses API: `responses.create`. */
  readonly createResponse: ResponsesResource['create'] = this.responses.create;
  /** The home folder, as an absolute path. */
  readonly home: string;
  readonly #options: CheckedOptions;
  readonly #models: Models;
  readonly #store: OpenStore;
  readonly #answering: Answering;
  readonly #training: Training;
  readonly #stopLog: (() => void) | undefined;
  readonly #isolation: Isolation | null;
  /** Object with the methods and resources that answer calls in this process. */
  readonly #here: object;
  #closed: Promise<void> | null = null;

  /** @internal Use {@link createRuntime}. */
  constructor(options: CheckedOptions) {
    super();
    this.#options = options;
    this.#isolation = Isolation.open(options);
    this.home = path.resolve(options.home);
    this.diskCaches = diskCachesResource(this.home);
    const notice = (line: string): void => {
      if (options.log) options.log('info', line);
      else process.stderr.write(`${line}\n`);
    };
    this.#models = openModels({ ...options, formats: FORMATS, notice }, options.model, options.models);
    const { log } = options;
    this.#store = openStore(options.home, {
      onProblem: options.onStoreProblem ?? ((problem) => log?.('warn', problem)),
      tracker: options.tracker,
    });
    const store = () => {
      this.requireOpen();
      return this.#store.store;
    };
    const checkpoints = checkpointsResource(store);
    this.runs = runsResource(store);
    const requireOpen = (): void => this.requireOpen();
    const references = { models: this.#models, find: findRegistered(store), named: new NamedAdapters() };
    const registered = modelsResource(store, this.#models.names, {
      export: modelExporter(references, requireOpen, (reference, signal) =>
        this.#answering.decisionEntries(reference, signal),
      ),
      onDeleted: (id) => {
        for (const { adapters } of this.#models.memory.loaded()) adapters.drop(id);
      },
    });
    this.#answering = new Answering({ ...references, options, requireOpen });
    const adapters = adaptersResource(references);
    this.downloads = downloadsResource(options.hub);
    this.#training = new Training({
      models: this.#models,
      store,
      settings: { ...options.training, gpu: options.gpu },
      onCheckpoint: async (modelId) => {
        using _loaded = await this.#answering.lease(modelId, undefined);
      },
      answer: async (request) =>
        (await this.ask('createTextCompletion', [
          checkTextCompletionRequest(request, options),
          {},
        ])) as TextCompletion,
    });
    const { jobs, runs } = this.#training;
    this.#here = Object.assign(this.#answering, {
      models: registered,
      checkpoints,
      adapters,
      trainingJobs: jobs,
      trainingRuns: runs,
      train: this.#training.train.bind(this.#training),
      sft: this.#training.sft.bind(this.#training),
      unload: (model: string) => this.#models.memory.unload(model),
      resetPrefixCache: async ({ reset_running_requests }: PrefixCacheQuery): Promise<PrefixCacheReset> => ({
        success: await this.#models.memory.resetCaches(reset_running_requests ?? false),
      }),
      soundWindows: async (file: string | Uint8Array) => {
        await openLibraries(options.gpu);
        return await soundWindows(file, options.media);
      },
    });
    this.models = this.resource('models', registered);
    this.checkpoints = this.resource('checkpoints', checkpoints);
    this.trainingJobs = this.resource('trainingJobs', jobs);
    this.trainingRuns = this.resource('trainingRuns');
    this.adapters = this.resource('adapters', {
      list: () => [...adapters.list(), ...(this.#isolation?.adapters() ?? [])],
    });
    if (log && !options.isolate)
      this.#stopLog = loadAddon().setLog((level, text) => log(LOG_LEVELS[level] ?? 'info', text.trimEnd()));
  }

  /**
   * Starts a supervised training job on a registered model, on given answers. In all else it works as {@link train}.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
   */
  async sft(request: SftRequest, options?: CallOptions): Promise<TrainingJob> {
    return (await this.call('sft', [request, options])) as TrainingJob;
  }

  /**
   * Trains a registered model to answer as a teacher does: a model of this runtime, the same one with more in its prompt, or one of
   * another service with `prompt_logprobs`.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options, or a teacher with another vocabulary
   */
  async distill(options: Omit<DistillOptions, 'service'>): Promise<DistillResult> {
    this.requireOpen();
    return await distill({ ...options, service: this });
  }

  /**
   * Records a rollout. Any client can send requests to the recorder's `service` or `fetch`; `finish` returns the trajectory to train on.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options
   */
  record(options: RecorderOptions): Recorder {
    this.requireOpen();
    return record(this, options);
  }

  /**
   * Returns the token ids of a text.
   * @throws OnpolicyError `INVALID_REQUEST` for a wrong argument
   */
  async tokenize(
    text: string,
    options: { model?: string; addSpecialTokens?: boolean; parseSpecial?: boolean } = {},
  ): Promise<number[]> {
    return (await this.call('tokenize', [text, options])) as number[];
  }

  /**
   * Returns the text of token ids.
   * @throws OnpolicyError `INVALID_REQUEST` for a wrong argument, or an id outside the vocabulary
   */
  async detokenize(
    ids: readonly number[],
    options: { model?: string; skipSpecialTokens?: boolean } = {},
  ): Promise<string> {
    return (await this.call('detokenize', [ids, options])) as string;
  }

  /** Returns the most tokens that a model's prompt and answer may have together. Loads the model. */
  async contextSize(model?: string | null): Promise<number> {
    return (await this.call('contextSize', [model])) as number;
  }

  /**
   * Returns the training run of a model, given by id or name, as one HTML file with curves, checkpoints and trajectories. `compare` is
   * another model whose curves are added.
   * @throws OnpolicyError `MODEL_NOT_FOUND`
   */
  async report(model: string, options: ReportOptions = {}): Promise<string> {
    this.requireOpen();
    return await makeReport(this.#store.store, model, options);
  }

  /** Returns the names of models that requests can use, the default one first. Registered models are not included. */
  servedModels(): string[] {
    return [...this.#models.names.all];
  }

  /** Returns true if a reference is one of these names, the path of an existing model file, or the URI of a model. */
  hasModel(reference: string): boolean {
    return this.#models.names.has(reference);
  }

  /** Returns true if a reference is the id or name of a registered model, or `name@step`. */
  async isRegistered(reference: string): Promise<boolean> {
    this.requireOpen();
    return await isRegistered(this.#store.store, reference);
  }

  /** Returns the facts about a model, named as in a request, loaded or not. Resolves with null if its files are not on this machine. */
  async modelCard(model?: string | null): Promise<ModelCard | null> {
    this.requireOpen();
    return await this.#models.cards.of(model || null);
  }

  /** Returns the models that are in memory, being loaded, or waiting for memory. */
  loaded(): ResidentModel[] {
    return [...this.#models.memory.residents(), ...this.#states().flatMap(({ loaded }) => loaded)];
  }

  /**
   * Downloads a model, named as in a request, without loading it. Resolves with its file, or the folder of an ONNX model. Progress goes to
   * `onProgress` of the runtime. A `signal` pauses it: the part so far is kept, and the next download or request continues it.
   * @throws OnpolicyError `NETWORK_FAILED`, `MODEL_NOT_FOUND`, `STORE_FAILED` where the disk has no room, `ABORTED`
   */
  async download(model: string, options: CallOptions = {}): Promise<string> {
    this.requireOpen();
    checkCallOptions(options);
    if (typeof model !== 'string') throwFaults([fault(['model'], 'type', MODEL_REFERENCE, model)]);
    return await this.#models.memory.download(model, options.signal);
  }

  /**
   * Unloads a model, named as in a request, as soon as no request uses it. Its next request loads it again. Resolves with false if it is
   * not loaded.
   */
  async unload(model: string): Promise<boolean> {
    this.requireOpen();
    if (typeof model !== 'string') throwFaults([fault(['model'], 'type', MODEL_REFERENCE, model)]);
    return (await this.call('unload', [model])) as boolean;
  }

  /** Returns statistics of the engines of all models, including unloaded ones, and the kernels of each loaded model. */
  stats(): RuntimeStats {
    const own = runtimeStats(this.#models.memory);
    return this.#isolation ? sumRuntimeStats([own, ...this.#states().map(({ stats }) => stats)]) : own;
  }

  /** Returns statistics of the image and audio encoders of all loaded models. */
  mediaStats(): MediaStats {
    return sumMediaStats([
      this.#models.memory.mediaStats(),
      ...this.#states().map(({ mediaStats }) => mediaStats),
    ]);
  }

  /** @internal */
  override get rowsAtOnce(): number {
    return 2 * this.#options.maxSequences;
  }

  /** Ends running requests with code `CLOSED` and frees all models. Can be called twice. */
  async close(): Promise<void> {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  /** @internal Splits a long sound into windows, as files. */
  async soundWindows(file: string | Uint8Array): Promise<Uint8Array[]> {
    return (await this.call('soundWindows', [file])) as Uint8Array[];
  }

  /** @internal Answers a call in this process. Its arguments are checked. */
  here(name: MethodName, args: CallArguments): unknown {
    return callMethod(this.#here, name, ...args);
  }

  protected ask(name: MethodName, args: CallArguments): unknown {
    if (!this.#isolation) return this.here(name, args);
    return this.#isolation.ask(name, args, () => this.here(name, args), this);
  }

  /** @internal */
  protected override get limits(): CheckedOptions {
    return this.#options;
  }

  protected override requireRoom(reference: unknown): void {
    this.#answering.requireRoom(reference);
  }

  protected requireOpen(): void {
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the runtime is closed');
  }

  #states(): ReturnType<Isolation['states']> {
    return this.#isolation?.states() ?? [];
  }

  async #close(): Promise<void> {
    const here = this.#training
      .close()
      .finally(() => this.#models.memory.close())
      .finally(() => this.#store.close())
      .finally(() => this.#stopLog?.());
    await Promise.all([here, this.#isolation?.close()]);
  }
}

/** Opens a runtime: `createRuntime` of the package, loaded. */
export async function createRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  return new Runtime(checkOptions(options));
}
