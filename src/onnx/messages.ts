/** The backend and the compute threads -> the messages that they exchange. */

/** One tensor pair of the cache: the past goes in, the present comes out. */
export type CacheTensor = {
  readonly past: string;
  /** Name of the output: of all tokens, or of new ones only. */
  readonly present: string;
  readonly heads: number;
  readonly size: number; // numbers per head and token
};

/** Padding of short rows in a batch: on the left, on the right, or none, so that rows must be of equal length. */
export type Padding = 'left' | 'right' | 'none';

/** Inputs and outputs of a graph. */
export type Decoder = {
  readonly cache: readonly CacheTensor[];
  readonly cacheType: 'float32' | 'float16';
  readonly logitsType: 'float32' | 'float16';
  readonly vocabSize: number;
  readonly padding: Padding;
  readonly takesMask: boolean;
  readonly takesPositions: boolean;
  /** True if the number of last positions that need logits is an input. */
  readonly takesKept: boolean;
  /** True if the graph has one branch for an empty cache, and one that takes a token at a time. */
  readonly hasBranch: boolean;
  /** Order of the middle axes of `present` outputs with new tokens only. Null if they have all tokens. */
  readonly fresh: 'heads' | 'tokens' | null;
  /** True if row lengths are computed from the mask, and prompts with a past run one by one. */
  readonly isGrouped: boolean;
  /** True if it takes rows of embeddings instead of ids: `embed_tokens` makes them. */
  readonly takesEmbeddings: boolean;
};

/** Sizes from `config.json`, used if the graph does not state them. */
export type DecoderSizes = {
  /** `model_type`, or empty. */
  readonly architecture: string;
  readonly queryHeads: number;
  /** Heads of keys and values. */
  readonly heads: number;
  readonly headSize: number;
  readonly vocabSize: number;
  /** True if layers have a sliding window, whose distance is counted in columns of the cache. */
  readonly hasWindow: boolean;
};

/** Settings of a session. */
export type SessionSettings = { readonly threads: number; readonly providers: readonly string[] };

/** Settings of the cache. */
export type StartOptions = {
  readonly slotCount: number;
  readonly logits: SharedArrayBuffer; // (rows, vocabulary) 32-bit floats
  readonly abort: SharedArrayBuffer; // one 32-bit integer: 1 aborts the running step
};

/** One step: see `Step` of the backend. */
export type GraphStep = {
  readonly memoryEdits: Int32Array; // (edits, 5)
  readonly tokens: Int32Array; // (total)
  readonly positions: Int32Array; // (total)
  readonly sequences: Int32Array; // (total)
  readonly rows: Int32Array; // (rows) index into tokens: token whose logits become row i
  readonly media: readonly MediaRows[]; // ascending
};

/** Rows of embeddings that replace tokens. */
export type MediaRows = {
  /** Index into the tokens of the step. */
  readonly at: number;
  readonly count: number;
  readonly values: Float32Array; // (count, size) in shared memory
};

/** A decoded picture with a unique `id`. */
export type Picture = {
  readonly id: number;
  readonly rgb: SharedArrayBuffer; // (height, width, 3) bytes
  readonly width: number;
  readonly height: number;
};

/** Text that stands for a picture in a prompt, and the number of its tiles. */
export type ImageText = { readonly text: string; readonly tiles: number };

/** Rows of embeddings, in shared memory. */
export type Features = { readonly values: Float32Array; readonly size: number }; // (rows, size)
