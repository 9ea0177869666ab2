/** A model reference -> a loaded model that answers, makes vectors or drafts. It is unloaded when its memory is needed. */
import { LeaseScope } from '../common/index.ts';
import { loadAddon } from '../engine/native/index.ts';
import { errorAt, type OnpolicyError } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';
import type { EngineStats, ResidentModel } from '../protocol/service/index.ts';
import { cutMasks } from '../structured/index.ts';
import type { AdapterFile } from './adapter-files.ts';
import { requireRoom } from './admission.ts';
import { closeDraft, type DraftModel } from './draft-model.ts';
import { Drafts } from './drafts.ts';
import type { EmbeddingModel } from './embedding-model.ts';
import { loadModel, planLoad, unloadModel } from './load-model.ts';
import type { MediaStats } from './media/index.ts';
import { totalBytes } from './memory-need.ts';
import { ModelCounts } from './model-counts.ts';
import { findProjector } from './model-files.ts';
import type { FormatOptions } from './model-format.ts';
import type { InMemory, ModelUseOptions } from './model-use.ts';
import { EMBEDDED_MODEL, EMBEDDED_NAME, loadKey, type NamedModels } from './named-models.ts';
import { type CacheFileStats, CacheFiles } from './prompt-files/index.ts';
import type { Resident } from './residency.ts';
import { ResidentModels } from './resident-models.ts';
import type { RunningModel } from './running-model.ts';

/** A model that is not unloaded before this is disposed of. */
export type ModelUse = Disposable & { readonly model: RunningModel };

/** The models of one runtime that are loaded and unloaded, and the statistics of their engines. */
export class ModelMemory {
  readonly #options: FormatOptions;
  readonly #names: NamedModels;
  readonly #cacheFiles: CacheFiles;
  readonly #residents: ResidentModels;
  readonly #counts = new ModelCounts();
  readonly drafts: Drafts;

  constructor(names: NamedModels, options: FormatOptions) {
    this.#names = names;
    this.#options = options;
    this.#cacheFiles = new CacheFiles(options.home, (text) => options.log?.('warn', text));
    this.#residents = new ResidentModels(names, options, (model) =>
      isDraft(model) ? closeDraft(model) : this.#unload(model),
    );
    this.drafts = new Drafts(names, this.#residents, options);
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
    const hasAdapters = this.#names.adaptersOf(reference).length > 0;
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
    const options = this.#names.find(reference);
    if (options.isolate)
      throw unfit(
        `${options.path} is isolated and only answers; a runtime that is isolated as a whole trains`,
      );
    const residentFor = (file: string): Resident<InMemory> => {
      const resident = this.#modelOf(file, options);
      if (isAnswer && !resident.isLeaving) requireRoom(resident.name, resident.users, options, this.#options);
      return resident;
    };
    const use = await this.#residents.use(options.path, 'model', residentFor, { signal, keepMs });
    return use as Disposable & { readonly value: RunningModel | EmbeddingModel };
  }

  /** Returns the local file of a reference, downloaded with its projector if missing. Loads nothing. */
  async download(reference: string, signal: AbortSignal = new AbortController().signal): Promise<string> {
    const options = this.#names.find(reference);
    const file = await this.#residents.fileOf(options.path, signal);
    await findProjector(file, options, this.#options, signal);
    return file;
  }

  /** Returns every model that is loaded now and answers. */
  *loaded(): Generator<RunningModel> {
    for (const { value } of this.#residents.residency.list()) if (value && 'engine' in value) yield value;
  }

  residents(): ResidentModel[] {
    return [...this.#residents.residency.list()].map(
      ({ name, path, state, progress, users, need, adapterBytes }) => ({
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
      }),
    );
  }

  /** Unloads a model as soon as no request uses it. Returns false if it is not loaded. */
  async unload(reference: string): Promise<boolean> {
    const options = this.#names.find(reference);
    const file = await this.#residents.knownFile(options.path);
    const resident = file === null ? undefined : this.#residents.get(loadKey(file, options));
    if (resident) await this.#residents.residency.leave(resident);
    return resident !== undefined;
  }

  /** Empties the prefix caches of all loaded models. Returns false if one is kept, because its requests use it and are not to be computed again. */
  async resetCaches(preempt: boolean): Promise<boolean> {
    const resets = await Promise.all(Array.from(this.loaded(), ({ engine }) => engine.resetCache(preempt)));
    return resets.every(Boolean);
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
    await this.#residents.close();
  }

  /** Returns the shared model of all references to one file with the same options. */
  #modelOf(file: string, options: ModelOptions): Resident<InMemory> {
    const name = file === EMBEDDED_MODEL ? EMBEDDED_NAME : options.path;
    return this.#residents.residentOf(
      loadKey(file, options),
      name,
      file,
      async (enter, { resident, ...load }) => {
        const plan = await planLoad(file, options, this.#options, load.signal);
        await enter(plan.need);
        const reserve = (bytes: number, adapter: AdapterFile): Promise<Disposable> =>
          this.#residents.residency.reserve(resident, bytes, {
            isOnDevice: plan.placement.gpuLayers > 0,
            name: adapter.path,
          });
        const files = this.#cacheFiles;
        const loaded = await loadModel(plan, this.#options, { name, ...load, reserve, files });
        await loadAddon().returnMemory(); // memory that reading and packing took
        return loaded;
      },
    );
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
