/** A model reference -> a loaded model with its engine. Each file is loaded once and shared by all its references. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LoadedModel } from '../backends/index.ts';
import { GgufModel, isOnnxModel, loadGguf, loadOnnx } from '../backends/index.ts';
import { Shared } from '../common/index.ts';
import { Engine } from '../engine/index.ts';
import { OnpolicyError } from '../errors.ts';
import { type MediaLimits, MediaModel } from '../media/index.ts';
import { type Gpu, type NativeProjector, openDecoder } from '../native/index.ts';
import type { SamplingDefaults } from '../sampling/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { Adapters } from './adapters.ts';
import { projectorBeside, resolveFile } from './model-files.ts';
import { type ModelTemplate, readTemplate } from './model-template.ts';

/** How one model is loaded and served. What is absent comes from the runtime's options. */
export type ModelOptions = {
  /** Path of a GGUF file, of a folder with an ONNX model or of one graph in it, or an `hf:` URI. */
  readonly path: string;
  /**
   * The projector of a GGUF model that sees or hears: a path or an `hf:` URI. Default: a file beside the model whose name has
   * `mmproj` in it, if there is one; null: none.
   */
  readonly mmproj?: string | null;
  /** Tokens of one picture, where its model has pictures of any size. Default: as the projector says. */
  readonly imageTokens?: { readonly min?: number; readonly max?: number };
  /** Layers on the GPU; all of them when absent. */
  readonly gpuLayers?: number;
  /**
   * Whether attention runs in one fused kernel, of a GGUF model. Default true. On CPUs, many sequences of over 200 tokens in a
   * non-unified KV cache (see `kvTokens`) decode faster without. A cache of 32 bits on a CPU never uses it: it rounds
   * to 16 bits.
   */
  readonly fusedAttention?: boolean;
  /**
   * Bits of one number in the KV cache of a GGUF model. Default: 32 with F32 weights and no projector, else 16. With 32 the log-probabilities of
   * a quantized model are those that the trainer computes, for twice the memory.
   */
  readonly cacheBits?: 16 | 32;
  /**
   * What computes the products of a GGUF model's weights. `auto`, the default: kernels of this library for Q8_0 weights where the
   * processor has them, the model runs on the CPU alone and a private copy of its weights fits into memory. `batch`: for Q4_K and
   * Q6_K weights too, which makes many sequences and prompts faster, and one sequence alone slower. `plain`: the engine's own.
   * `stats().products` says which.
   */
  readonly products?: 'auto' | 'batch' | 'plain';
  /** Jinja source that replaces the file's own chat template. */
  readonly chatTemplate?: string;
  /** How the model writes tool calls, where looking at its template is not enough: a name of docs/tool-calls.md. */
  readonly toolFormat?: string;
} & ServingLimits;

/** Limits of one model's engine. */
export type ServingLimits = {
  /** Tokens of one prompt and its answer together. Default: the model's own limit, at most 8,192. */
  readonly contextSize?: number;
  /**
   * Size of the KV cache in tokens. If `contextSize` for every sequence fits into it, the cache is not unified: each sequence
   * has its own cells, which is faster. Otherwise all share one pool. Default: up to 4 GiB non-unified, else 32,768.
   */
  readonly kvTokens?: number;
  /** Sequences that run at the same time, 1 to 256. Default 64. Further ones wait. */
  readonly maxSequences?: number;
  /** Tokens of one step at most. Default 512. */
  readonly maxBatchTokens?: number;
  /** CPU threads. Default: one per core; one for a model of less than ten million parameters. */
  readonly threads?: number;
};

/** Settings of a runtime that all its models share. */
export type ServingOptions = ServingLimits & {
  readonly gpu: Gpu;
  readonly scheduling: 'fcfs' | 'priority';
  readonly prefixCache: boolean;
  readonly media: MediaLimits;
  /** Gets lines about what takes long. */
  readonly say: (line: string) => void;
  readonly onProgress?: ((model: string, fraction: number) => void) | undefined;
};

/** A model that answers. */
export type RunningModel = {
  readonly path: string;
  /** What answers call it when the request names none: a reference that finds it again. */
  readonly name: string;
  readonly loaded: LoadedModel;
  readonly tokenizer: Tokenizer;
  readonly engine: Engine;
  /** What it sees and hears with; null: it takes text only. */
  readonly media: MediaModel | null;
  /** Loaded beside its weights. */
  readonly adapters: Adapters;
  /** Null if the file has none. */
  readonly template: ModelTemplate | null;
  /** The variant for requests with tools; null: there is only one template. */
  readonly toolTemplate: ModelTemplate | null;
  readonly contextSize: number;
  /** CPU threads that its arithmetic uses. */
  readonly threads: number;
  readonly defaults: SamplingDefaults;
  /** Names engine and model in answers. */
  readonly fingerprint: string;
};

/** What only GGUF models can do needs one. Fails with `UNSUPPORTED` for others, naming the field that asked for it. */
export function requireGguf(model: RunningModel, field: string): GgufModel {
  if (model.loaded instanceof GgufModel) return model.loaded;
  throw new OnpolicyError(
    'UNSUPPORTED',
    `${field}: ${model.path} is an ONNX model, which can answer but not be trained: its graph holds no gradients. ` +
      "Train the same model as a GGUF file: llama.cpp's convert_hf_to_gguf.py makes one from its Hugging Face checkpoint",
    { param: field },
  );
}

/** The model that ships with the package. */
export const EMBEDDED_MODEL = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));

/** Its name in references, unless an alias has the same name. */
const EMBEDDED_NAME = 'onpolicy-tiny';

const DEFAULT_CONTEXT_SIZE = 8192;
const DEFAULT_SEQUENCES = 64;
const DEFAULT_BATCH_TOKENS = 512;
const DEFAULT_KV_BYTES = 2 ** 32;
const MAX_DEFAULT_POOL = 32_768;
/** The engine rounds the cells of a slot up to a multiple of this. */
const CELLS_ROUNDED_TO = 256;
/** Logits of one chunk of a prompt that is being scored. */
const SCORE_BYTES = 80 * 2 ** 20;
const MIN_SCORE_ROWS = 32;
const MAX_SCORE_ROWS = 512;
/** Sequence ids of the engine: running sequences and prefixes kept for later ones. */
const MAX_SLOTS = 256;
const PREFIX_SLOTS = 16;

/** The loaded models of one runtime. */
export class Models {
  readonly #options: ServingOptions;
  readonly #aliases: ReadonlyMap<string, ModelOptions>;
  readonly #default: ModelOptions;
  readonly #defaultName: string;
  readonly #byReference = new Map<string, Shared<RunningModel>>();
  readonly #byFile = new Map<string, Shared<RunningModel>>(); // and options
  readonly #loaded = new Set<RunningModel>();
  #closed = false;

  constructor(
    options: ServingOptions,
    defaultModel: string | ModelOptions | undefined,
    aliases: Record<string, string | ModelOptions>,
  ) {
    this.#options = options;
    const named = Object.entries({ [EMBEDDED_NAME]: EMBEDDED_MODEL, ...aliases });
    const given = new Map(named.map(([name, model]) => [name, toModelOptions(model)]));
    this.#aliases = new Map([...given].map(([name, model]) => [name, resolveAlias(model, given, [name])]));
    const fallback = toModelOptions(defaultModel ?? EMBEDDED_NAME);
    this.#default = resolveAlias(fallback, given, []);
    this.#defaultName = fallback.path;
  }

  /** The model behind a reference: an alias, a path, an `hf:` URI, or nothing for the default one. Loads it on first use. */
  async get(reference: string | null, signal?: AbortSignal): Promise<RunningModel> {
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the runtime is closed');
    const name = reference ?? '';
    let opening = this.#byReference.get(name);
    if (!opening || opening.isStopped) {
      const options = name === '' ? this.#default : (this.#aliases.get(name) ?? { path: name });
      opening = new Shared((stop) => this.#open(options, stop));
      this.#byReference.set(name, opening);
      const failed = opening;
      failed.result.catch(() => {
        if (this.#byReference.get(name) === failed) this.#byReference.delete(name); // it may be tried again
      });
    }
    return await opening.wait(signal);
  }

  /** Names that references may use: that of the default model, then all others. */
  names(): string[] {
    return [...new Set([this.#defaultName, ...this.#aliases.keys()])];
  }

  /** Whether a reference is one of the names, a file that exists, or a URI. */
  has(reference: string): boolean {
    if (this.names().includes(reference) || reference.startsWith('hf:')) return true;
    return reference !== '' && fs.existsSync(path.resolve(reference));
  }

  /** Every model that is loaded now. */
  loaded(): ReadonlySet<RunningModel> {
    return this.#loaded;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const result of await Promise.allSettled([...this.#byFile.values()].map(({ result }) => result))) {
      if (result.status === 'rejected') continue;
      await result.value.engine.close();
      await result.value.media?.close();
      await result.value.loaded.close();
    }
    this.#byFile.clear();
    this.#byReference.clear();
    this.#loaded.clear();
  }

  /** Several references to one file with the same options share one model. */
  async #open(options: ModelOptions, stop: AbortSignal): Promise<RunningModel> {
    const file = await resolveFile(options.path, this.#options.onProgress, stop);
    const key = JSON.stringify([file, { ...options, path: null }]);
    let loading = this.#byFile.get(key);
    if (!loading || loading.isStopped) {
      loading = new Shared((stopLoad) => this.#load(file, options, stopLoad));
      this.#byFile.set(key, loading);
      const failed = loading;
      failed.result.catch(() => {
        if (this.#byFile.get(key) === failed) this.#byFile.delete(key);
      });
    }
    const model = await loading.wait(stop);
    this.#loaded.add(model);
    return model;
  }

  async #load(file: string, options: ModelOptions, signal: AbortSignal): Promise<RunningModel> {
    const { scheduling, prefixCache } = this.#options;
    const mmproj = await this.#findProjector(file, options, signal);
    // As llama.cpp's server has it: what a picture becomes was never trained in another precision.
    const loaded = await this.#read(file, mmproj === null ? options : { cacheBits: 16, ...options }, signal);
    let projector: NativeProjector | null = null;
    try {
      if (mmproj !== null) projector = await this.#openProjector(mmproj, loaded as GgufModel, options);
      const limits = { ...this.#options, ...options };
      const contextSize = Math.min(limits.contextSize ?? DEFAULT_CONTEXT_SIZE, loaded.contextLength);
      const maxRunning = limits.maxSequences ?? DEFAULT_SEQUENCES;
      const slotCount = Math.min(MAX_SLOTS, maxRunning + PREFIX_SLOTS);
      const threads = limits.threads ?? (loaded.isTiny ? 1 : os.availableParallelism());
      const { tokenizer } = loaded;
      const backend = await loaded.createBackend({
        ...cacheLayout(loaded, contextSize, slotCount, limits.kvTokens),
        batchTokens: limits.maxBatchTokens ?? DEFAULT_BATCH_TOKENS,
        slotCount,
        ...(projector ? { wholeRows: projector.wholeRows } : {}),
        maxOutputs: outputRows(tokenizer.vocabSize, maxRunning),
        threads,
      });
      const toTemplate = (source: string): ModelTemplate | null =>
        source === '' ? null : readTemplate(source, tokenizer, options.toolFormat);
      const engine = new Engine(backend, { maxRunning, policy: scheduling, prefixCache });
      return {
        path: file,
        name: file === EMBEDDED_MODEL ? EMBEDDED_NAME : options.path,
        loaded,
        tokenizer,
        engine,
        media: projector && new MediaModel(projector, this.#options.media),
        adapters: new Adapters(engine),
        template: toTemplate(options.chatTemplate ?? loaded.chatTemplate),
        toolTemplate: options.chatTemplate === undefined ? toTemplate(loaded.toolTemplate) : null,
        contextSize,
        threads,
        defaults: loaded.defaults,
        fingerprint: loaded.fingerprint,
      };
    } catch (error) {
      projector?.close();
      await loaded.close();
      throw error;
    }
  }

  /** The file of a model's projector; null if it has none. */
  async #findProjector(file: string, { mmproj }: ModelOptions, signal: AbortSignal): Promise<string | null> {
    if (isOnnxModel(file)) {
      if (mmproj == null) return null;
      throw new OnpolicyError('UNSUPPORTED', 'model.mmproj: expected a GGUF model beside it', {
        param: 'model.mmproj',
      });
    }
    const found = mmproj === undefined ? projectorBeside(file) : mmproj;
    return found === null ? null : await resolveFile(found, this.#options.onProgress, signal, 'model.mmproj');
  }

  async #openProjector(path: string, loaded: GgufModel, options: ModelOptions): Promise<NativeProjector> {
    await openDecoder(this.#options.say);
    const { gpu } = this.#options;
    const threads =
      options.threads ?? this.#options.threads ?? (loaded.isTiny ? 1 : os.availableParallelism());
    return await loaded.openProjector({ path, threads, gpu, ...options.imageTokens });
  }

  async #read(file: string, options: ModelOptions, signal: AbortSignal): Promise<LoadedModel> {
    const { gpu, onProgress, threads } = this.#options;
    if (isOnnxModel(file))
      return await loadOnnx({ path: file, gpu, threads: options.threads ?? threads ?? null, signal });
    return await loadGguf({
      path: file,
      gpu,
      signal,
      ...(options.gpuLayers === undefined ? {} : { gpuLayers: options.gpuLayers }),
      ...(options.fusedAttention === undefined ? {} : { fusedAttention: options.fusedAttention }),
      ...(options.cacheBits === undefined ? {} : { cacheBits: options.cacheBits }),
      ...(options.products === undefined ? {} : { products: options.products }),
      ...(onProgress ? { onProgress: (fraction: number) => onProgress(options.path, fraction) } : {}),
    });
  }
}

/**
 * A non-unified KV cache where memory allows it: attention then reads no other sequence's cells. Else a unified one.
 */
function cacheLayout(
  model: LoadedModel,
  contextSize: number,
  slotCount: number,
  kvTokens: number | undefined,
): { kvTokens: number; isKvUnified: boolean } {
  const cellsPerSlot = Math.ceil(contextSize / CELLS_ROUNDED_TO) * CELLS_ROUNDED_TO;
  const separate = cellsPerSlot * slotCount;
  const budget = kvTokens ?? Math.floor(DEFAULT_KV_BYTES / model.kvBytesPerToken);
  if (separate <= budget && model.supportsNonUnifiedKv) return { kvTokens: separate, isKvUnified: false };
  if (!model.supportsUnifiedKv) return { kvTokens: Math.max(contextSize, budget), isKvUnified: false };
  return {
    kvTokens: Math.max(contextSize, Math.min(budget, kvTokens ?? MAX_DEFAULT_POOL)),
    isKvUnified: true,
  };
}

/** Rows of logits that a step may hold: one for each that runs, and as many as `SCORE_BYTES` hold to score a prompt with. */
function outputRows(vocabSize: number, maxRunning: number): number {
  return Math.max(
    maxRunning + MIN_SCORE_ROWS,
    Math.min(MAX_SCORE_ROWS, Math.floor(SCORE_BYTES / (4 * vocabSize))),
  );
}

/** The model that an alias stands for, also through other aliases; what is set on the way wins. `seen`: aliases followed. */
function resolveAlias(
  model: ModelOptions,
  aliases: ReadonlyMap<string, ModelOptions>,
  seen: readonly string[],
): ModelOptions {
  const next = seen.includes(model.path) ? undefined : aliases.get(model.path);
  if (next) {
    const { path: _alias, ...own } = model;
    return resolveAlias({ ...next, ...own }, aliases, [...seen, model.path]);
  }
  return model.path === EMBEDDED_NAME ? { ...model, path: EMBEDDED_MODEL } : model;
}

function toModelOptions(model: string | ModelOptions): ModelOptions {
  return typeof model === 'string' ? { path: model } : model;
}
