/** Requests -> answers and training jobs of this process. Connects models, engines, answers, training and the store. */
import path from 'node:path';
import { Answering } from './answering.ts';
import { CheckedTrainingService, INNER } from './checked-service.ts';
import { requirePackage } from './common/index.ts';
import { type DiskCachesResource, diskCachesResource } from './disk-cache/index.ts';
import { OnpolicyError } from './errors.ts';
import { createFetch } from './http/index.ts';
import { type DownloadsResource, downloadsResource } from './hub/index.ts';
import { isolate } from './isolation/index.ts';
import { type MediaStats, soundWindows } from './media/index.ts';
import {
  type AdaptersResource,
  adaptersResource,
  type ModelCard,
  Models,
  modelExporter,
  NamedAdapters,
  type ResidentModel,
} from './models/index.ts';
import { loadAddon, openLibraries } from './native/index.ts';
import {
  checkCallOptions,
  checkTextCompletionRequest,
  fault,
  type MessageCountRequest,
  type MessageTokensCount,
  type RecorderOptions,
  type ReportOptions,
  type RuntimeOptions,
  type TextCompletion,
  throwFaults,
  validateDetokenizeRequest,
  validateTokenizeRequest,
} from './protocol/index.ts';
import { makeReport } from './report/index.ts';
import type { SftRequest } from './rl/index.ts';
import { type DistillOptions, type DistillResult, distill, type Recorder, record } from './rollout/index.ts';
import { type CheckedOptions, checkOptions } from './runtime-options.ts';
import { type RuntimeStats, runtimeStats } from './runtime-stats.ts';
import type {
  CallOptions,
  InnerService,
  TrainingJob,
  TrainingJobsResource,
  TrainingRunsResource,
} from './service.ts';
import {
  checkpointsResource,
  type LocalCheckpointsResource,
  type LocalModelsResource,
  modelsResource,
  type OpenStore,
  openStore,
  type RunsResource,
  runsResource,
} from './store/index.ts';
import { findRegistered, Training } from './training/index.ts';
import {
  type CreateMessage,
  countMessageTokens,
  createMessage,
  type ResponsesResource,
  responsesOf,
} from './wires/index.ts';

const LOG_LEVELS = ['debug', 'debug', 'info', 'warn', 'error'] as const;
const MODEL_REFERENCE = 'a name, an hf: URI or a path of a model';

/** A service whose models run in this process. */
export class Runtime extends CheckedTrainingService {
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
  readonly #notice: (line: string) => void;
  readonly #models: Models;
  readonly #store: OpenStore;
  readonly #answering: Answering;
  readonly #training: Training;
  readonly #stopLog: (() => void) | undefined;
  #closed: Promise<void> | null = null;

  /** @internal */
  readonly [INNER]: InnerService;

  /** @internal Use {@link createRuntime}. */
  constructor(options: CheckedOptions) {
    super();
    this.#options = options;
    this.home = path.resolve(options.home);
    this.diskCaches = diskCachesResource(this.home);
    const notice = (line: string): void => {
      if (options.log) options.log('info', line);
      else process.stderr.write(`${line}\n`);
    };
    this.#notice = notice;
    this.#models = new Models({ ...options, notice }, options.model, options.models);
    const { log } = options;
    this.#store = openStore(options.home, {
      onProblem: options.onStoreProblem ?? ((problem) => log?.('warn', problem)),
      tracker: options.tracker,
    });
    const store = () => {
      this.#requireOpen();
      return this.#store.store;
    };
    this.checkpoints = checkpointsResource(store);
    this.runs = runsResource(store);
    const requireOpen = (): void => this.#requireOpen();
    const references = { models: this.#models, find: findRegistered(store), named: new NamedAdapters() };
    this.models = modelsResource(store, this.#models, {
      export: modelExporter(references, requireOpen),
      onDeleted: (id) => {
        for (const { adapters } of this.#models.loaded()) adapters.drop(id);
      },
    });
    this.#answering = new Answering({ ...references, options, requireOpen });
    this.adapters = adaptersResource(references, requireOpen);
    this.downloads = downloadsResource(options.hub);
    this.#training = new Training({
      models: this.#models,
      store,
      settings: { ...options.training, gpu: options.gpu },
      onCheckpoint: async (modelId) => {
        using _loaded = await this.#answering.lease(modelId, undefined);
      },
      answer: async (request) =>
        (await this[INNER].text!(checkTextCompletionRequest(request, options), {})) as TextCompletion,
    });
    const own: Pick<InnerService, 'train' | 'log'> = {
      train: (request, options) => this.#training.train(request, options),
      log: (id, request) => this.#store.store.runs.log(id, request),
    };
    this[INNER] = Object.assign(this.#answering, own);
    this.trainingJobs = this.#training.jobs;
    this.trainingRuns = this.#training.runs;
    if (log && !options.isolate)
      this.#stopLog = loadAddon().setLog((level, text) => log(LOG_LEVELS[level] ?? 'info', text.trimEnd()));
  }

  /**
   * Starts a supervised training job on a registered model, with given answers. Otherwise the same as {@link train}.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
   */
  async sft(request: SftRequest, options: CallOptions = {}): Promise<TrainingJob> {
    this.#requireOpen();
    checkCallOptions(options);
    return await this.#training.sft(request, options);
  }

  /**
   * Trains a registered model to answer as a teacher does: a model of this runtime, the same one with more in its prompt, or one of
   * another service with `prompt_logprobs`.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options, or a teacher with another vocabulary
   */
  async distill(options: Omit<DistillOptions, 'service'>): Promise<DistillResult> {
    this.#requireOpen();
    return await distill({ ...options, service: this });
  }

  /**
   * Records a rollout. Any client can send requests to the recorder's `service` or `fetch`; `finish` returns the trajectory to train on.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong options
   */
  record(options: RecorderOptions): Recorder {
    this.#requireOpen();
    return record(this, options);
  }

  /**
   * The token ids of a text.
   * @throws OnpolicyError `INVALID_REQUEST` for a wrong argument
   */
  async tokenize(
    text: string,
    options: { model?: string; addSpecialTokens?: boolean; parseSpecial?: boolean } = {},
  ): Promise<number[]> {
    this.#requireOpen();
    return await this.#answering.tokenize(validateTokenizeRequest(text, options));
  }

  /**
   * The text of token ids.
   * @throws OnpolicyError `INVALID_REQUEST` for a wrong argument, or an id outside the vocabulary
   */
  async detokenize(
    ids: readonly number[],
    options: { model?: string; skipSpecialTokens?: boolean } = {},
  ): Promise<string> {
    this.#requireOpen();
    return await this.#answering.detokenize(validateDetokenizeRequest(ids, options));
  }

  /** Limit on the tokens of a model's prompt and answer together. Loads the model. */
  async contextSize(model?: string | null): Promise<number> {
    this.#requireOpen();
    return await this.#answering.contextSize(model || null);
  }

  /**
   * The run of a model, given by id or name, as one HTML file with curves, checkpoints and trajectories. `compare` is another model whose
   * curves are added.
   * @throws OnpolicyError `MODEL_NOT_FOUND`
   */
  async report(model: string, options: ReportOptions = {}): Promise<string> {
    this.#requireOpen();
    return await makeReport(this.#store.store, model, options);
  }

  /** Names of models that requests can use, the default one first. Registered models are not included. */
  servedModels(): string[] {
    return this.#models.names();
  }

  /** Whether a reference is such a name, a model file that exists, or the URI of one. */
  hasModel(reference: string): boolean {
    return this.#models.has(reference);
  }

  /** What is known of a model, named as in a request, loaded or not; null: its files are not here. */
  async modelCard(model?: string | null): Promise<ModelCard | null> {
    this.#requireOpen();
    return await this.#models.card(model || null);
  }

  /** Models that are in memory, being loaded, or waiting for memory. */
  loaded(): ResidentModel[] {
    return this.#models.residents();
  }

  /**
   * Downloads a model, named as in a request, without loading it. Resolves with its file, or the folder of an ONNX model. Progress goes to
   * `onProgress` of the runtime. A `signal` pauses it: the part so far is kept, and the next download or request continues it.
   * @throws OnpolicyError `NETWORK_FAILED`, `MODEL_NOT_FOUND`, `STORE_FAILED` where the disk has no room, `ABORTED`
   */
  async download(model: string, options: CallOptions = {}): Promise<string> {
    this.#requireOpen();
    checkCallOptions(options);
    if (typeof model !== 'string') throwFaults([fault(['model'], 'type', MODEL_REFERENCE, model)]);
    return await this.#models.download(model, options.signal);
  }

  /**
   * Unloads a model, named as in a request, as soon as no request uses it. Its next request loads it again. Resolves with false if it is
   * not loaded.
   */
  async unload(model: string): Promise<boolean> {
    this.#requireOpen();
    if (typeof model !== 'string') throwFaults([fault(['model'], 'type', MODEL_REFERENCE, model)]);
    return await this.#models.unload(model);
  }

  /** Statistics of the engines of all models, including unloaded ones, and the kernels of each loaded model. */
  stats(): RuntimeStats {
    return runtimeStats(this.#models);
  }

  /** Statistics of the image and audio encoders of all loaded models. */
  mediaStats(): MediaStats {
    return this.#models.mediaStats();
  }

  /** Ends running requests with code `CLOSED` and frees all models. Can be called twice. */
  async close(): Promise<void> {
    this.#closed ??= this.#training
      .close()
      .finally(() => this.#models.close())
      .finally(() => this.#store.close())
      .finally(() => this.#stopLog?.());
    await this.#closed;
  }

  /** @internal Windows of a long sound, as files. */
  async soundWindows(file: string | Uint8Array): Promise<Uint8Array[]> {
    this.#requireOpen();
    await openLibraries(this.#options.gpu);
    return await soundWindows(file, this.#options.media, this.#notice);
  }

  /** @internal */
  protected override get limits(): CheckedOptions {
    return this.#options;
  }

  protected enter(request: unknown): void {
    this.#requireOpen();
    this.#answering.requireRoom(request);
  }

  #requireOpen(): void {
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the runtime is closed');
  }
}

/**
 * Opens a runtime with its own models and limits.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export async function createRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  requirePackage();
  const checked = checkOptions(options);
  const runtime = new Runtime(checked);
  isolate(runtime, checked);
  return runtime;
}
