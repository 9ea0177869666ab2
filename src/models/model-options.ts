/** How models are named, loaded and served: what a caller may set. */
import type { HubOptions } from '../backends/index.ts';
import type { MediaLimits } from '../media/index.ts';
import type { CacheType, Gpu, RopeOptions } from '../native/index.ts';
import type { MemoryOptions } from './residency.ts';

/** Hears how much of a model is downloaded or loaded, 0 to 1. */
export type OnProgress = (model: string, fraction: number, phase: 'download' | 'load') => void;

/** An adapter beside a model. */
export type AdapterOption = {
  /** A GGUF LoRA file, or a PEFT folder: `adapter_config.json` and `adapter_model.safetensors`. Either this or `model`. */
  readonly file?: string;
  /** A registered model or checkpoint, a name of `loadAdapter`, or a name of `models` that has adapters: theirs are meant. */
  readonly model?: string;
  /** What its output is multiplied by. Default 1. */
  readonly scale?: number;
};

/** How one model is loaded and served. What is absent comes from the runtime's options. */
export type ModelOptions = {
  /** Path of a GGUF file, of a folder with an ONNX model or of one graph in it, or an `hf:` URI. */
  readonly path: string;
  /**
   * The projector of a GGUF model that sees or hears: a path or an `hf:` URI. Default: the one whose name has `mmproj` in it, in
   * the folder of the model or in the repository of its URI, if there is one; null: none.
   */
  readonly mmproj?: string | null;
  /** Tokens of one picture, where its model has pictures of any size. Default: as the projector says. */
  readonly imageTokens?: { readonly min?: number; readonly max?: number };
  /**
   * Layers of a GGUF model on GPUs, counted from the output, which is one of them. `auto`, the default: as many as fit beside
   * their cache and what a step computes with. A number that does not fit is an error with the figures.
   */
  readonly gpuLayers?: number | 'auto';
  /** Names of the GPUs that may have layers, see `stats().placement`. Default: all. */
  readonly devices?: readonly string[];
  /** The one GPU that has all of them. Not together with `devices`. */
  readonly mainGpu?: string;
  /** Shares of these GPUs in the layers, for example `[3, 1]`. Default: by the memory that each has free. */
  readonly tensorSplit?: readonly number[];
  /** Whether the KV cache of layers on a GPU lies there, too. Default true. */
  readonly cacheOnGpu?: boolean;
  /**
   * Whether attention runs in one fused kernel, of a GGUF model. Default true. On CPUs without kernels of this library, many sequences of
   * over 200 tokens in a non-unified KV cache (see `kvTokens`) decode faster without. A cache of 32 bits on a CPU never uses it: it
   * rounds to 16 bits.
   */
  readonly fusedAttention?: boolean;
  /**
   * Bits of one number in the KV cache of a GGUF model. Default: 32 with F32 weights and no projector, else 16. With 32 the log-probabilities of
   * a quantized model are those that the trainer computes, for twice the memory.
   */
  readonly cacheBits?: 16 | 32;
  /**
   * How the numbers of the KV cache of a GGUF model are stored: `f32` and `f16` are 32 and 16 bits, `q8_0` takes 8.5 bits, `q4_0` 4.5. Not
   * together with `cacheBits`. The quantized ones need `fusedAttention`. docs/choosing-a-model.md says what each does to log-probabilities.
   */
  readonly cacheType?: CacheType;
  /**
   * The KV cache of the layers of a GGUF model that see a sliding window only. `full`, the default: as long as that of the others.
   * `window`: the window and one step. Each of `maxSequences` then has its own cells, no others hold cached prefixes, and `kvTokens` must
   * not be less than `contextSize` for each. No effect on models without such layers.
   */
  readonly slidingWindow?: 'full' | 'window';
  /** How a GGUF model counts positions: for longer contexts than its file says. */
  readonly rope?: RopeOptions;
  /** Whether a GGUF file is mapped, so that processes share it and the system can drop its pages. Default: where the system can. */
  readonly mmap?: boolean;
  /** Whether the weights of a GGUF model are kept from being swapped out. Default false. */
  readonly mlock?: boolean;
  /**
   * What computes the products of a GGUF model's weights, and attention in it. `auto`, the default: kernels of this library for
   * weights in Q8_0, Q4_K, Q6_K and Q4_0 where the processor has them, the model runs on the CPU alone and a private copy of its
   * weights fits into memory. `batch`: also for weights in F16, BF16 and F32, which is faster with several sequences at a time, and as
   * fast with one; log-probabilities then differ from the engine's by its rounding. `plain`: the engine's own. `stats().products` says which.
   */
  readonly products?: 'auto' | 'batch' | 'plain';
  /**
   * Adapters of this name, mixed: each request of it is computed with them. Names that differ in nothing else share one model in
   * memory. They stay loaded with it.
   */
  readonly adapters?: readonly AdapterOption[];
  /**
   * How an ONNX model of embeddings makes a vector of the states of a text's tokens: their mean, the first (`cls`) or the last one. Default: what
   * `1_Pooling/config.json` of its folder says; without either the model answers. GGUF files say it themselves.
   */
  readonly pooling?: 'mean' | 'cls' | 'last';
  /** Jinja source that replaces the file's own chat template. */
  readonly chatTemplate?: string;
  /** How the model writes tool calls, where looking at its template is not enough: a name of docs/tool-calls.md. */
  readonly toolFormat?: string;
  /** Whether it answers in a process of its own, as `isolate` of a runtime does for all. It is not trained then. Default false. */
  readonly isolate?: boolean;
} & ServingLimits;

/** Limits of one model's engine. */
export type ServingLimits = {
  /** Tokens of one prompt and its answer together. Default: the model's own limit, at most 8,192. */
  readonly contextSize?: number;
  /**
   * Size of the KV cache in tokens. Default: `contextSize` for every sequence, if that takes up to 4 GiB, else 32,768. Where all fit, the
   * cache is not unified if that is faster, as it is without this library's attention: each sequence has its own cells. Else all share one pool.
   */
  readonly kvTokens?: number;
  /** Sequences that run at the same time, 1 to 256. Default 64. Further ones wait. */
  readonly maxSequences?: number;
  /**
   * Requests that may wait for a model beside as many as run; further ones fail with `OVERLOADED` at once. Default: no limit.
   */
  readonly maxWaiting?: number;
  /** Tokens of one step at most. Default 512. */
  readonly maxBatchTokens?: number;
  /** CPU threads. Default: one per core but for efficiency cores; one for a model of less than ten million parameters. */
  readonly threads?: number;
};

/** Settings of a runtime that all its models share. */
export type ServingOptions = ServingLimits & {
  readonly gpu: Gpu;
  readonly scheduling: 'fcfs' | 'priority';
  readonly prefixCache: boolean;
  readonly deterministic?: boolean;
  readonly media: MediaLimits;
  readonly hub: HubOptions;
  /** Gets lines about what takes long. */
  readonly say: (line: string) => void;
  readonly onProgress?: OnProgress | undefined;
  readonly log?: ((level: 'info' | 'warn', text: string) => void) | undefined;
  /** How much memory models may take, and how long they stay. */
  readonly memory?: MemoryOptions;
};
