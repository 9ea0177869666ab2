/** Types of the messages between the backend and the worker thread. */
import type { ErrorCode } from '../../errors.ts';

/** One tensor pair of the cache: the past goes in, the present comes out. */
export type CacheTensor = {
  readonly past: string;
  /** The output: of all tokens, or of new ones alone. */
  readonly present: string;
  readonly heads: number;
  readonly size: number; // numbers per head and token
};

/** Padding of short rows in a batch: on the left, on the right, or none, so that rows must be of equal length. */
export type Padding = 'left' | 'right' | 'none';

/** What a graph takes and gives. */
export type Decoder = {
  readonly cache: readonly CacheTensor[];
  readonly cacheType: 'float32' | 'float16';
  readonly logitsType: 'float32' | 'float16';
  readonly vocabSize: number;
  readonly padding: Padding;
  readonly takesMask: boolean;
  readonly takesPositions: boolean;
  /** Whether the number of last positions that need logits is an input. */
  readonly takesKept: boolean;
  /** Whether the graph has a branch of its own for an empty cache, and one that takes a token at a time. */
  readonly hasBranch: boolean;
  /** Whether `present` outputs hold new tokens alone, and the order of their middle axes. */
  readonly fresh: 'heads' | 'tokens' | null;
  /** The lengths of rows are counted from the mask, and prompts with a past run one by one. */
  readonly isGrouped: boolean;
};

/** Sizes from `config.json`, used where the graph leaves them open. */
export type DecoderSizes = {
  /** `model_type`, or empty. */
  readonly architecture: string;
  readonly queryHeads: number;
  /** Of keys and values. */
  readonly heads: number;
  readonly headSize: number;
  readonly vocabSize: number;
  /** Whether a token may be blind to those far before it: how far is counted in columns of the cache. */
  readonly hasWindow: boolean;
};

/** Opens a session. */
export type OpenRequest = {
  readonly kind: 'open';
  readonly file: string;
  readonly threads: number;
  readonly providers: readonly string[];
  readonly sizes: DecoderSizes;
};

/** Makes the cache. */
export type StartRequest = {
  readonly kind: 'start';
  readonly slotCount: number;
  readonly logits: SharedArrayBuffer; // (rows, vocabulary) 32-bit floats
  readonly abort: SharedArrayBuffer; // one 32-bit integer: 1 ends the step that runs
};

/** One step: see `Step` of the backend. */
export type StepRequest = {
  readonly kind: 'step';
  readonly memoryEdits: Int32Array; // (edits, 5)
  readonly tokens: Int32Array; // (total)
  readonly positions: Int32Array; // (total)
  readonly sequences: Int32Array; // (total)
  readonly rows: Int32Array; // (rows) index into tokens: where row i of the logits comes from
};

export type SaveRequest = { readonly kind: 'save'; readonly slot: number };
export type LoadRequest = {
  readonly kind: 'load';
  readonly memoryEdits: Int32Array;
  readonly slot: number;
  readonly state: Uint8Array;
};
export type CloseRequest = { readonly kind: 'close' };

export type Request = OpenRequest | StartRequest | StepRequest | SaveRequest | LoadRequest | CloseRequest;

/** The answer to a request; `value` is a {@link Decoder} for `open` and bytes for `save`. */
export type Reply =
  | { readonly kind: 'done'; readonly value?: Decoder | Uint8Array }
  | { readonly kind: 'failed'; readonly code: ErrorCode | 'KV_FULL'; readonly message: string };
