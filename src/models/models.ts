/** A model reference -> a loaded model. Each file is loaded once for all its references, and unloaded when its memory is needed. */
import fs from 'node:fs';
import path from 'node:path';
import { LeaseScope, Shared } from '../common/index.ts';
import { freeGpuBytes, loadAddon, usesGpu } from '../engine/native/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import { type AdapterOption, type ModelOptions, withDefaults } from '../protocol/index.ts';
import type { EngineStats, ModelCard, ResidentModel } from '../protocol/service/index.ts';
import { cutMasks } from '../structured/index.ts';
import type { AdapterFile } from './adapter-files.ts';
import { Arrivals, requireRoom } from './arrivals.ts';
import { chooseFitting } from './choose-fitting.ts';
import { closeDraft, type DraftModel } from './draft-model.ts';
import { Drafts } from './drafts.ts';
import type { EmbeddingModel } from './embedding-model.ts';
import { loadModel, planLoad, unloadModel } from './load-model.ts';
import type { MediaStats } from './media/index.ts';
import { totalBytes } from './memory-need.ts';
import { missingModel } from './missing-model.ts';
import { readCard } from './model-card.ts';
import { ModelCounts } from './model-counts.ts';
import { findProjector, resolveFile } from './model-files.ts';
import type { InMemory, LoadInMemory, ModelUseOptions } from './model-use.ts';
import { EMBEDDED_MODEL, EMBEDDED_NAME, keyOf, type NamedModels, namedModels } from './named-models.ts';
import { type CacheFileStats, CacheFiles } from './prompt-files/index.ts';
import { Residency, type Resident } from './residency.ts';
import type { RunningModel } from './running-model.ts';
import { limitsOf, type ServingOptions } from './serving-options.ts';

/** A model that is not unloaded before this is disposed of. */
export type ModelUse = Disposable & { readonly model: RunningModel };

export class Models {
  readonly #options: ServingOptions;
  readonly #cacheFiles: CacheFiles;
  readonly #named: NamedModels;
  readonly #files = new Map<string, Shared<string>>(); // by path or URI
  readonly #byFile = new Map<string, Resident<InMemory>>(); // by path and options
  readonly #residency: Residency<InMemory>;
  readonly #cards = new Map<string, { readonly mtimeMs: number; readonly card: Promise<ModelCard> }>(); // by file and options
  readonly #arrivals = new Arrivals<ModelOptions | string>();
  readonly #counts = new ModelCounts();
  readonly drafts: Drafts;
  #closed = false;

  constructor(
    options: ServingOptions,
    defaultModel: string | ModelOptions | null,
    aliases: Record<string, string | ModelOptions>,
  ) {
    this.#options = options;
    this.#cacheFiles = new CacheFiles(options.home, (text) => options.log?.('warn', text));
    this.#named = namedModels(defaultModel, aliases);
    this.#residency = new Residency({
      ...withDefaults('MemoryOptions', options.memory),
      freeBytes: () => ({
        host: Math.max(0, process.availableMemory() - this.#unwrittenBytes()),
        device: usesGpu(options.gpu) ? freeGpuBytes() : 0,
      }),
      unload: (model) => (isDraft(model) ? closeDraft(model) : this.#unload(model)),
    });
    this.drafts = new Drafts({
      serving: options,
      residency: this.#residency,
      optionsOf: (reference) => this.#optionsOf(reference),
      use: (...given) => this.#useResident(...given),
      residentOf: (...given) => this.#residentOf(...given),
      find: (model) => [...this.#byFile].find(([, { value }]) => value === model)!,
    });
  }

  /** Returns the bytes that loaded models will still take: their caches take memory only when they are written. */
  #unwrittenBytes(): number {
    const loaded = [...this.#byFile.values()].filter(({ value }) => value !== null);
    const host = loaded.reduce((sum, { need }) => sum + (need?.host ?? 0), 0);
    return Math.max(0, host - process.memoryUsage.rss());
  }

  /** Returns the model of a reference: an alias, a path, an `hf:` URI, or null for the default model. Loads it if necessary. */
  async use(reference: string | null, options: ModelUseOptions = {}): Promise<ModelUse> {
    using scope = new LeaseScope();
    const { value: model } = scope.add(await this.#use(reference, options));
    if ('embeddings' in model)
      throw unfit(
        model.head
          ? `${model.name} returns scores, not answers: it is for rerank, score and classify`
          : `${model.name} returns embeddings, not answers: it is for createEmbeddings, rerank and score`,
      );
    return scope.handOver({ model });
  }

  /** Does the same for a model of embeddings or scores. Fails with `UNSUPPORTED` for other models. */
  async useVectors(
    reference: string | null,
    options: ModelUseOptions = {},
  ): Promise<Disposable & { readonly model: EmbeddingModel }> {
    using scope = new LeaseScope();
    const { value: model } = scope.add(await this.#use(reference, options));
    const hasAdapters = this.adaptersOf(reference).length > 0;
    if ('embeddings' in model && !hasAdapters) return scope.handOver({ model });
    if (hasAdapters) throw unfit(`${model.name} has adapters, and models of embeddings or scores take none`);
    throw unfit(
      `expected an embedding model, with a pooling (mean, cls or last) in its files or the option pooling, got ${model.name}`,
    );
  }

  /** Returns true if a model makes embeddings or scores instead of answers. Loads it. */
  async makesVectors(reference: string | null, signal: AbortSignal | undefined): Promise<boolean> {
    using found = await this.#use(reference, { signal });
    return 'embeddings' in found.value;
  }

  async #use(
    reference: string | null,
    { signal, keepMs = null, isAnswer = false }: ModelUseOptions,
  ): Promise<Disposable & { readonly value: RunningModel | EmbeddingModel }> {
    const options = this.#optionsOf(reference);
    if (options.isolate)
      throw unfit(
        `${options.path} is isolated and only answers; a runtime that is isolated as a whole trains`,
      );
    const residentFor = (file: string): Resident<InMemory> => {
      const resident = this.#modelOf(file, options);
      if (isAnswer && !resident.isLeaving)
        requireRoom(resident.name, resident.users, limitsOf(options, this.#options));
      return resident;
    };
    const use = await this.#useResident(options.path, 'model', residentFor, { signal, keepMs });
    return use as Disposable & { readonly value: RunningModel | EmbeddingModel };
  }

  /** Returns the model in memory for a path or URI. Loads it again if it is being unloaded or its engine has failed. */
  async #useResident(
    reference: string,
    field: string,
    residentFor: (file: string) => Resident<InMemory>,
    { signal, keepMs = null }: ModelUseOptions,
  ): Promise<Disposable & { readonly value: InMemory }> {
    for (;;) {
      const resident = residentFor(await this.#fileOf(reference, signal, field));
      const { value } = resident;
      if (value && 'engine' in value && value.engine.hasFailed) void this.#residency.leave(resident);
      if (!resident.isLeaving) return await this.#residency.use(resident, signal, keepMs);
      await new Shared(() => resident.gone).wait(signal);
    }
  }

  /**
   * Throws `OVERLOADED` if the queue of a request's model is full, before the request is read. Several names of one file are counted apart
   * here, and together once the model is known.
   */
  requireRoom(reference: string | null): void {
    const users = this.#arrivals.of(this.#keyOf(reference));
    const limits = limitsOf(this.#optionsOf(reference), this.#options);
    requireRoom(reference || this.#named.fallbackName, users, limits);
  }

  arrive(reference: string | null): Disposable {
    return this.#arrivals.add(this.#keyOf(reference));
  }

  #keyOf(reference: string | null): ModelOptions | string {
    return reference ? (this.#named.aliases.get(reference) ?? reference) : this.#named.fallback;
  }

  /** Returns the local file of a reference, downloaded with its projector if missing. Loads nothing. */
  async download(reference: string, signal: AbortSignal = new AbortController().signal): Promise<string> {
    const options = this.#optionsOf(reference);
    const file = await this.#fileOf(options.path, signal);
    await findProjector(file, options, this.#options, signal);
    return file;
  }

  /** Returns the adapters of a name, or of the default model. Empty for other references. */
  adaptersOf(reference: string | null): readonly AdapterOption[] {
    return this.#optionsOf(reference).adapters ?? [];
  }

  /** Returns the names that references may use: that of the default model, then all others. */
  names(): string[] {
    return [...new Set([this.#named.fallbackName, ...this.#named.aliases.keys()])];
  }

  /** Returns the error of a reference that names no model, at a field of a request. */
  missing(reference: string, field: string): OnpolicyError {
    return missingModel(field, reference, this.names());
  }

  has(reference: string): boolean {
    if (this.names().includes(reference) || reference.startsWith('hf:')) return true;
    return reference !== '' && fs.existsSync(path.resolve(reference));
  }

  /** Returns the card of a model, loaded or not. Returns null if its files are missing or damaged. Downloads nothing. */
  async card(reference: string | null): Promise<ModelCard | null> {
    const options = this.#optionsOf(reference);
    const serving = { ...this.#options, hub: { ...this.#options.hub, offline: true }, onProgress: null };
    const { signal } = new AbortController();
    try {
      const file = await resolveFile(options.path, { ...serving, signal });
      const { mtimeMs } = fs.statSync(file);
      const key = keyOf(file, options);
      let known = this.#cards.get(key);
      if (known?.mtimeMs !== mtimeMs) {
        known = { mtimeMs, card: readCard(file, options, serving) };
        this.#cards.set(key, known);
      }
      return await known.card;
    } catch {
      return null;
    }
  }

  /** Returns every model that is loaded now and answers. */
  *loaded(): Generator<RunningModel> {
    for (const { value } of this.#residency.list()) if (value && 'engine' in value) yield value;
  }

  residents(): ResidentModel[] {
    return [...this.#residency.list()].map(({ name, path, state, progress, users, need, adapterBytes }) => ({
      name,
      path,
      state,
      progress,
      requests: users,
      memory: need && {
        weights: need.weights,
        cache: need.cache,
        compute: need.compute,
        adapters: adapterBytes,
        total: totalBytes(need) + adapterBytes,
      },
    }));
  }

  /** Unloads a model as soon as no request uses it. Returns false if it is not loaded. */
  async unload(reference: string): Promise<boolean> {
    const options = this.#optionsOf(reference);
    const file = this.#files.get(options.path);
    if (!file) return false;
    const resident = this.#byFile.get(keyOf(await file.result, options));
    if (resident) await this.#residency.leave(resident);
    return resident !== undefined;
  }

  /** Returns statistics of the engines of all models, including unloaded ones. */
  stats(): EngineStats & { readonly cutMasks: number } {
    return { ...this.#counts.engines(this.loaded()), cutMasks: cutMasks() };
  }

  /** Returns the same statistics of their encoders of pictures and sounds. */
  mediaStats(): MediaStats {
    return this.#counts.media(this.loaded());
  }

  /** Statistics of prompt caches read from the disk and written to it. */
  get diskCache(): CacheFileStats {
    return this.#cacheFiles.stats;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#residency.close();
    this.#byFile.clear();
    this.#files.clear();
  }

  #optionsOf(reference: string | null): ModelOptions {
    return this.#named.find(reference);
  }

  /** Returns the local file of a path or URI. Concurrent callers share one download. */
  async #fileOf(reference: string, signal: AbortSignal | undefined, field = 'model'): Promise<string> {
    let finding = this.#files.get(reference);
    if (!finding || finding.isStopped) {
      finding = new Shared((stop) =>
        resolveFile(reference, {
          ...this.#options,
          signal: stop,
          field,
          names: this.names(),
          choose: chooseFitting(this.#options),
        }),
      );
      this.#files.set(reference, finding);
      const failed = finding;
      failed.result.catch(() => {
        if (this.#files.get(reference) === failed) this.#files.delete(reference); // it may be tried again
      });
    }
    const file = await finding.wait(signal);
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the runtime is closed');
    return file;
  }

  /** Returns the shared model of all references to one file with the same options. */
  #modelOf(file: string, options: ModelOptions): Resident<InMemory> {
    const name = file === EMBEDDED_MODEL ? EMBEDDED_NAME : options.path;
    return this.#residentOf(keyOf(file, options), name, file, async (enter, { resident, ...load }) => {
      const plan = await planLoad(file, options, this.#options, load.signal);
      await enter(plan.need);
      const reserve = (bytes: number, adapter: AdapterFile): Promise<Disposable> =>
        this.#residency.reserve(resident, bytes, {
          isOnDevice: plan.placement.gpuLayers > 0,
          name: adapter.path,
        });
      const files = this.#cacheFiles;
      const loaded = await loadModel(plan, this.#options, { name, ...load, reserve, files });
      await loadAddon().returnMemory(); // memory that reading and packing took
      return loaded;
    });
  }

  /** Returns the model under a key that is in memory or is being loaded. */
  #residentOf(key: string, name: string, file: string, load: LoadInMemory): Resident<InMemory> {
    const known = this.#byFile.get(key);
    if (known && !known.loading.isStopped) return known;
    const added = this.#residency.add(name, file, (resident, enter, signal) => {
      const onProgress = (fraction: number): void => {
        resident.progress = fraction;
        this.#options.onProgress?.(name, fraction, 'load');
      };
      return load(enter, { resident, signal, onProgress });
    });
    this.#byFile.set(key, added);
    void added.gone.then(() => {
      if (this.#byFile.get(key) === added) this.#byFile.delete(key);
    });
    return added;
  }

  async #unload(model: RunningModel | EmbeddingModel): Promise<void> {
    await unloadModel(model);
    if ('engine' in model) this.#counts.keep(model);
    await loadAddon().returnMemory();
  }
}

function unfit(message: string): OnpolicyError {
  return errorAt('model', 'UNSUPPORTED', message);
}

function isDraft(model: InMemory): model is DraftModel {
  return 'handle' in model;
}
