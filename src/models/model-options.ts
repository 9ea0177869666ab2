/** Types of the options that set how models are named, loaded and served. */
import type { HubOptions } from '../backends/index.ts';
import type { MediaLimits } from '../media/index.ts';
import type { CacheType, Gpu, RopeOptions } from '../native/index.ts';
import type { MemoryOptions } from './residency.ts';

/** Called with the progress of a download or load, from 0 to 1. */
export type OnProgress = (model: string, fraction: number, phase: 'download' | 'load') => void;

/** A LoRA adapter for a model. */
export type AdapterOption = {
  /** A GGUF LoRA file, or a PEFT folder: `adapter_config.json` and `adapter_model.safetensors`. Either this or `model`. */
  readonly file?: string;
  /** A registered model or checkpoint, a name of `adapters.load`, or a name of `models` whose adapters are used. */
  readonly model?: string;
  /** Factor for its output. Default 1. */
  readonly scale?: number;
};

/** How one model is loaded and served. Absent options default to those of the runtime. */
export type ModelOptions = {
  /** Path of a GGUF file, of an ONNX folder or of one graph in it, or an `hf:` URI. */
  readonly path: string;
  /**
   * The projector of a GGUF model for images or audio: a path or an `hf:` URI. Default: a file with `mmproj` in its name in the model's
   * folder or repository, if there is one. null: none.
   */
  readonly mmproj?: string | null;
  /** Limits on the tokens of one image, for models that accept any image size. Default: those of the projector. */
  readonly imageTokens?: { readonly min?: number; readonly max?: number };
  /**
   * Number of layers of a GGUF model on GPUs, counted from the output layer, which counts as one. `auto`, the default: as many as fit
   * together with their cache and compute buffers. A number that does not fit is an error with the figures.
   */
  readonly gpuLayers?: number | 'auto';
  /** Names of the GPUs to use, see `stats().placement`. Default: all. */
  readonly devices?: readonly string[];
  /** The one GPU to use for all layers. Not together with `devices`. */
  readonly mainGpu?: string;
  /** Share of the layers for each GPU, for example `[3, 1]`. Default: in proportion to free memory. */
  readonly tensorSplit?: readonly number[];
  /** Whether layers on a GPU also have their KV cache there. Default true. */
  readonly cacheOnGpu?: boolean;
  /**
   * Whether a GGUF model uses a fused attention kernel. Default true. On CPUs without kernels of this library, many sequences of over 200
   * tokens in a non-unified KV cache (see `kvTokens`) decode faster without it. A 32-bit cache on a CPU never uses it, because it rounds to
   * 16 bits.
   */
  readonly fusedAttention?: boolean;
  /**
   * Bits per number in the KV cache of a GGUF model. Default: 32 with F32 weights and no projector, otherwise 16. With 32 bits, the
   * log-probabilities of a quantized model equal the trainer's, for twice the memory.
   */
  readonly cacheBits?: 16 | 32;
  /**
   * Number format of a GGUF model's KV cache: `f32` and `f16` have 32 and 16 bits, `q8_0` has 8.5 bits, `q4_0` 4.5. Not together with
   * `cacheBits`. The quantized formats need `fusedAttention`. docs/choosing-a-model.md shows how each changes log-probabilities.
   */
  readonly cacheType?: CacheType;
  /**
   * KV cache size of a GGUF model's sliding-window layers. `full`, the default: as large as that of the other layers. `window`: the window
   * and one step. Then each of the `maxSequences` sequences has its own cells, there are no further cache slots for prefixes, and
   * `kvTokens` must be at least `contextSize` for each sequence. No effect on models without such layers.
   */
  readonly slidingWindow?: 'full' | 'window';
  /** Position scaling (RoPE) of a GGUF model, for contexts longer than its file specifies. */
  readonly rope?: RopeOptions;
  /**
   * Whether a GGUF file is memory-mapped. Processes then share it, and the system can evict its pages. Default: true if the system supports
   * it.
   */
  readonly mmap?: boolean;
  /** Whether to prevent the weights of a GGUF model from being swapped out. Default false. */
  readonly mlock?: boolean;
  /**
   * Which matmul and attention kernels a GGUF model uses. `auto`, the default: this library's kernels for weights in Q8_0, Q4_K, Q6_K and
   * Q4_0, if the processor supports them, the model runs only on the CPU and a private copy of its weights fits into memory. `batch`: also
   * for weights in F16, BF16 and F32. This is faster with several concurrent sequences and as fast with one; log-probabilities then differ
   * from the engine's by its rounding. `plain`: the engine's own kernels. `stats().products` reports the result.
   */
  readonly products?: 'auto' | 'batch' | 'plain';
  /**
   * Adapters of this name: each of its requests uses their sum. Names with otherwise equal options share one model in memory. The adapters
   * stay loaded with the model.
   */
  readonly adapters?: readonly AdapterOption[];
  /**
   * Pooling of an ONNX embedding model: the mean of the token states, the first (`cls`) or the last one. Default: that in
   * `1_Pooling/config.json` of its folder; without either, the model is a chat model. GGUF files specify their pooling themselves.
   */
  readonly pooling?: 'mean' | 'cls' | 'last';
  /** Jinja source that replaces the file's own chat template. */
  readonly chatTemplate?: string;
  /** The tool-call format, if it cannot be detected from the template: a name in docs/tool-calls.md. */
  readonly toolFormat?: string;
  /**
   * Whether the model answers in a separate process, as `isolate` of a runtime does for all models. It cannot be trained then. Default
   * false.
   */
  readonly isolate?: boolean;
} & ServingLimits;

/** Limits of one model's engine. */
export type ServingLimits = {
  /** Limit on the tokens of one prompt and its answer. Default: the model's own limit, at most 8,192. */
  readonly contextSize?: number;
  /**
   * Size of the KV cache in tokens. Default: `contextSize` for every sequence, if that takes at most 4 GiB, otherwise 32,768. If all
   * sequences fit, and without this library's attention kernels, each sequence has its own cells, which is faster then. Otherwise all share
   * one pool of cells.
   */
  readonly kvTokens?: number;
  /** Number of concurrent sequences, 1 to 256. Default 64. Further ones wait. */
  readonly maxSequences?: number;
  /**
   * How many requests may wait for a model in addition to the running ones. Further requests fail with `OVERLOADED` at once. Default: no
   * limit.
   */
  readonly maxWaiting?: number;
  /** Token budget of one step. Default 512. */
  readonly maxBatchTokens?: number;
  /** CPU threads. Default: one per core, not counting efficiency cores; one for a model with less than ten million parameters. */
  readonly threads?: number;
};

/** Settings of a runtime for all its models. */
export type ServingOptions = ServingLimits & {
  readonly gpu: Gpu;
  readonly scheduling: 'fcfs' | 'priority';
  readonly prefixCache: boolean;
  readonly deterministic?: boolean;
  readonly media: MediaLimits;
  readonly hub: HubOptions;
  /** Called with lines about slow operations. */
  readonly say: (line: string) => void;
  readonly onProgress?: OnProgress | undefined;
  readonly log?: ((level: 'info' | 'warn', text: string) => void) | undefined;
  /** Memory budget of the models, and how long idle models stay loaded. */
  readonly memory?: MemoryOptions;
};
