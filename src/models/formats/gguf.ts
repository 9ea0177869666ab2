/** A GGUF file -> tokenizer, model facts and a backend over our addon. */
import os from 'node:os';
import path from 'node:path';
import { mib, onAbort } from '../../common/index.ts';
import type { Backend, ContextSettings } from '../../engine/backend/index.ts';
import { ggufBackend } from '../../engine/backend/index.ts';
import { SOFTMAX_HEADS } from '../../engine/gguf/index.ts';
import {
  type ContextOptions,
  defaultThreads,
  type EmbedderOptions,
  type Handle,
  knowingErrors,
  loadAddon,
  type NativeEmbedder,
  type NativeModel,
  type NativeProjector,
  onDisk,
  openDecoder,
  usesGpu,
} from '../../engine/native/index.ts';
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import { errorAt, fromNative, OnpolicyError } from '../../errors.ts';
import type { CacheType, Gpu, RopeOptions } from '../../protocol/index.ts';
import type { SamplingDefaults } from '../../sampling/index.ts';
import { modelVocabulary, type Vocabulary } from '../../structured/index.ts';
import { describeGguf } from './gguf-headers.ts';
import {
  estimateMemory,
  expertsOfFirst,
  kvBytesPerToken,
  type ModelShape,
  stateFacts,
  weightBytes,
} from './memory.ts';
import type { LoadedModel, ScoreHead, VisionOptions } from './model.ts';
import { fitsOwnAttention } from './own-attention.ts';

const SINGLE_THREAD_PARAMETERS = 10_000_000;

/** Share of the free memory that packed weights may take; the rest is left for caches and other programs. */
const PACKED_SHARE = 0.75;

/** Options for loading a GGUF file. */
export type GgufOptions = {
  readonly path: string;
  readonly gpu: Gpu;
  /** Number of layers on the GPU. Default: all of them. */
  readonly gpuLayers?: number;
  /** Number of layers, from the first, whose experts stay in main memory. Default 0. */
  readonly cpuExpertLayers?: number;
  /** Names of the GPUs that share these layers. Default: the engine's choice. */
  readonly devices?: readonly string[];
  /** The share of each GPU. Default: by free memory. */
  readonly tensorSplit?: readonly number[];
  /** If true, the KV cache of layers on a GPU is on the GPU too. Default true. */
  readonly cacheOnGpu?: boolean;
  /** Default: true if the engine can for this architecture. */
  readonly fusedAttention?: boolean;
  /** Default: `f32` with F32 weights, else `f16`. */
  readonly cacheType?: CacheType;
  readonly rope?: RopeOptions;
  /** Maps the file into memory. Default: true if the system supports it. */
  readonly mmap?: boolean;
  /** Locks the weights in memory, so that the system does not swap them out. Default false. */
  readonly mlock?: boolean;
  /** Default `auto`. */
  readonly kernels?: 'auto' | 'plain';
  /** Bytes that the cache and buffers will take. Packed weights must leave this much free. */
  readonly reservedBytes?: number;
  /** Loads the layers for multi-token prediction, if the file has them. Default false. */
  readonly loadHeads?: boolean;
  /** Called with the fraction loaded, 0 to 1. */
  readonly onProgress?: (fraction: number) => void;
  readonly signal?: AbortSignal;
};

/** A loaded GGUF model. */
export type GgufModel = ReturnType<typeof ggufModel>;

/** Returns true if a model was loaded from a GGUF file. */
export function isGguf(model: LoadedModel): model is GgufModel {
  return 'native' in model;
}

function ggufModel(native: NativeModel, shape: ModelShape, options: GgufOptions) {
  const { path: file, gpu, gpuLayers, cacheOnGpu = true, fusedAttention = shape.fusesAttention } = options;
  const cacheType = options.cacheType ?? (native.hasF32Weights ? 'f32' : 'f16');
  const rope = options.rope ?? null;
  const onGpu = usesGpu(gpu) && gpuLayers !== 0;
  const hasSlidingWindow = native.slidingWindow > 0;
  const files = [file];
  let vocabulary: Promise<Vocabulary> | null = null;

  function contextOptions(limits: ContextSettings): ContextOptions {
    const { cache: bytes, caches } = estimateMemory(shape, limits, { cacheType, fusedAttention });
    if (bytes > os.totalmem())
      throw errorAt(
        'kvTokens',
        'OUT_OF_MEMORY',
        `a cache of ${limits.kvTokens} tokens takes ${mib(bytes)}; this machine has ${mib(os.totalmem())}`,
      );
    const { slotCount: maxSequences, hasDraftHead = false, ...others } = limits;
    const cacheBytes = caches.reduce((total, one) => total + one, 0);
    const keepsFusion = fusedAttention && shape.blockHeads > 0;
    const settings = { fusedAttention, keepsFusion, cacheOnGpu, cacheType, cacheBytes, rope };
    // The engine also counts routers as layers that draft.
    const drafts =
      Number(native.metadata[`${native.metadata['general.architecture']}.nextn_predict_layers`] ?? 0) > 0;
    return {
      isWindowCacheFull: true,
      ...others,
      maxSequences,
      hasDraftHead: hasDraftHead && drafts,
      ...settings,
    };
  }

  return {
    native,
    path: file,
    shape,
    cacheType,
    /** Null: the rope settings of the file apply. */
    rope,
    tokenizer: createTokenizer(native),
    fingerprint: `onpolicy-gguf-${native.metadata['general.name'] ?? path.basename(file)}`,
    files,
    contextLength: scaledContext(native.contextLength, rope),
    chatTemplate: native.chatTemplate,
    toolTemplate: native.toolTemplate,
    metadata: native.metadata,
    /** Head that turns the model's states into scores. Null if it has none. */
    head: shape.pooling === 'rank' ? scoreHead(native) : null,
    kvBytesPerToken: kvBytesPerToken(shape, cacheType),
    state: stateFacts(shape, cacheType),
    experts: shape.experts,
    defaults: samplingDefaults(native),
    get kernels() {
      return native.kernels;
    },
    get attention() {
      return native.attention;
    },
    /** Threads wait for each other after every operation, which costs a tiny model more than they save. */
    isTiny: native.parameters < SINGLE_THREAD_PARAMETERS,
    supportsUnifiedKv: true,
    selectsBlocks: shape.selectsBlocks,
    supportsSmallWindow: !native.hasRecurrentState && hasSlidingWindow,
    /** Sliding windows and recurrent state have other caches, which must be unified. */
    supportsNonUnifiedKv: !native.hasRecurrentState && !hasSlidingWindow,
    /** Cells of 32 bits are excluded: with separate cells per sequence, log-probabilities equal the trainer's to the last bit. */
    get prefersUnifiedKv() {
      if (onGpu || !fusedAttention || native.kernels === 'plain') return false;
      return cacheType !== 'f32' && fitsOwnAttention(shape, cacheType);
    },

    async vocabulary(): Promise<Vocabulary> {
      vocabulary ??= modelVocabulary(native).catch((error: unknown) => {
        vocabulary = null;
        throw error;
      });
      return await vocabulary;
    },

    async openVision({ projector, gpu, threads, min, max }: VisionOptions): Promise<NativeProjector | null> {
      if (projector === null) return null;
      await openDecoder();
      try {
        const opened = await loadAddon().openProjector(native, {
          path: onDisk(projector),
          useGpu: gpu !== false && onGpu,
          threads: threads ?? defaultThreads(this.isTiny),
          minImageTokens: min,
          maxImageTokens: max,
        });
        files.push(projector);
        return opened;
      } catch (cause) {
        const { code, message } = fromNative(cause);
        throw errorAt('model.mmproj', code, `${projector}: ${message}`, cause);
      }
    },

    /** Creates a context on this model. Fails with `OUT_OF_MEMORY` if its cache does not fit. */
    async createBackend(limits: ContextSettings): Promise<Backend> {
      const context = await loadAddon().createContext(native, contextOptions(limits));
      return ggufBackend(native, context, limits, { fusedAttention, cacheType, rope, usesGpu: onGpu });
    },

    /** Creates an embedder on this model. `isLast` selects the vector of the last token of a causal model. */
    async createEmbedder(given: Omit<EmbedderOptions, 'fusedAttention'>): Promise<NativeEmbedder> {
      // Fused attention rounds on CPUs. 32-bit embeddings are computed without it; scores must equal those of llama.cpp's own programs.
      const isRounded = !onGpu && native.hasF32Weights && !given.hasHead;
      return await loadAddon().createEmbedder(native, {
        ...given,
        fusedAttention: fusedAttention && !isRounded,
      });
    },

    /**
     * Creates a context in which this model drafts for another one with `sampledTokens` token ids, for sequences of at most `longest`
     * tokens. Fails with `OUT_OF_MEMORY` if its cache does not fit.
     */
    async createDraftModel(
      limits: ContextSettings,
      task: { readonly sampledTokens: number; readonly longest: number },
    ): Promise<Handle> {
      return await loadAddon().createDraftModel(native, { ...contextOptions(limits), ...task });
    },

    close: () => native.close(),
  } satisfies LoadedModel & Record<string, unknown>;
}

function scoreHead(native: NativeModel): ScoreHead {
  const { bosId, eosId, sepId, addsBos, addsEos, addsSep, labels, pairTemplate } = native;
  const end = addsEos ? [eosId < 0 ? sepId : eosId] : [];
  return {
    labels,
    hasSoftmax: SOFTMAX_HEADS.test(native.metadata['general.architecture'] ?? ''),
    template: pairTemplate,
    before: addsBos ? [bosId] : [],
    between: [...end, ...(addsSep ? [sepId] : [])],
    after: end,
  };
}

function samplingDefaults({ metadata }: NativeModel): SamplingDefaults {
  const read = (name: string): number | null => {
    const value = metadata[`general.sampling.${name}`];
    return value === undefined ? null : Number(value);
  };
  return {
    temperature: read('temp'),
    top_p: read('top_p'),
    top_k: read('top_k'),
    min_p: read('min_p'),
    repetition_penalty: read('penalty_repeat'),
  };
}

/**
 * Returns true if weights should be packed. Packed weights are a private copy, which the system cannot drop as it can drop pages of the
 * file.
 */
function packs(options: GgufOptions, shape: ModelShape): boolean {
  const bytes = weightBytes(shape) + (options.reservedBytes ?? 0);
  return options.kernels !== 'plain' && bytes < PACKED_SHARE * process.availableMemory();
}

/** Loads a GGUF file. Fails with `MODEL_NOT_FOUND`, `MODEL_INVALID`, `UNSUPPORTED`, `OUT_OF_MEMORY` or `ABORTED`. */
export async function loadGguf(options: GgufOptions, described?: ModelShape): Promise<GgufModel> {
  const shape = described ?? (await describeGguf(options));
  if (options.signal?.aborted) throw new OnpolicyError('ABORTED', `loading ${options.path} was aborted`);
  const kept = Math.min(options.cpuExpertLayers ?? 0, shape.blockBytes.length);
  const cancelled = new Int32Array(1);
  const cancel = (): void => {
    cancelled[0] = 1;
  };
  using _cancelling = onAbort(options.signal, cancel);
  const native = await loadAddon().loadModel({
    path: onDisk(options.path),
    useGpu: options.gpu !== false,
    packs: packs(options, shape),
    isUnfused: !shape.fusesAttention,
    loadHeads: options.loadHeads,
    gpuLayers: options.gpuLayers,
    cpuTensors: kept === 0 ? undefined : expertsOfFirst(kept),
    devices: options.devices,
    tensorSplit: options.tensorSplit && Float32Array.from(options.tensorSplit),
    mmap: options.mmap,
    mlock: options.mlock,
    onProgress: options.onProgress,
    cancelled,
  });
  return ggufModel(native, shape, options);
}

/** Returns the context length in tokens that a model has with these rope options. */
export function scaledContext(contextLength: number, rope: RopeOptions | null): number {
  if (!rope?.factor || rope.type === 'none') return contextLength;
  return Math.round((rope.originalContext ?? contextLength) * rope.factor);
}

/** Texts up to this length are tokenized on the calling thread: handing them to another thread would take longer. */
const SHORT_TEXT = 4096;

/** Creates a tokenizer that splits texts as the engine does. */
function createTokenizer(model: NativeModel): Tokenizer {
  const { tokenBytes, tokenOffsets, vocabSize } = model;
  const decoder = new TextDecoder();
  const bytesOf = (id: number): Uint8Array =>
    tokenBytes.subarray(tokenOffsets[id] ?? 0, tokenOffsets[id + 1] ?? 0);
  const textOf = (id: number): string => (id < 0 ? '' : decoder.decode(bytesOf(id)));
  const endIds = new Set<number>();
  for (let id = 0; id < vocabSize; id++) if (model.isEnd[id] === 1) endIds.add(id);
  return {
    vocabSize,
    eosId: model.eosId,
    endIds,
    bosText: textOf(model.bosId),
    eosText: textOf(model.eosId),
    async encode(text, { addSpecial, parseSpecial }) {
      const isShort = text.length <= SHORT_TEXT;
      return await knowingErrors(async () =>
        model[isShort ? 'tokenize' : 'tokenizeLong'](text, addSpecial, parseSpecial),
      );
    },
    bytesOf,
    isSpecial: (id) => model.isSpecial[id] === 1,
  };
}
