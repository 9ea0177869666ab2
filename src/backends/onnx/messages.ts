/** What the backend and the threads that compute hand to each other. */
import type { Pooling } from '../memory.ts';

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
  /** Whether it takes rows of embeddings in the place of ids: `embed_tokens` makes them. */
  readonly takesEmbeddings: boolean;
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

/** What a session computes with. */
export type SessionSettings = { readonly threads: number; readonly providers: readonly string[] };

/** How the cache is made. */
export type StartOptions = {
  readonly slotCount: number;
  readonly logits: SharedArrayBuffer; // (rows, vocabulary) 32-bit floats
  readonly abort: SharedArrayBuffer; // one 32-bit integer: 1 ends the step that runs
};

/** One step: see `Step` of the backend. */
export type GraphStep = {
  readonly memoryEdits: Int32Array; // (edits, 5)
  readonly tokens: Int32Array; // (total)
  readonly positions: Int32Array; // (total)
  readonly sequences: Int32Array; // (total)
  readonly rows: Int32Array; // (rows) index into tokens: where row i of the logits comes from
  readonly media: readonly MediaRows[]; // ascending
};

/** Rows of embeddings in the place of tokens. */
export type MediaRows = {
  /** Index into the tokens of the step. */
  readonly at: number;
  readonly count: number;
  readonly values: Float32Array; // (count, size) in shared memory
};

/** A decoded picture; `id` is its own. */
export type Picture = {
  readonly id: number;
  readonly rgb: SharedArrayBuffer; // (height, width, 3) bytes
  readonly width: number;
  readonly height: number;
};

/** What stands for a picture, and in how many tiles it is encoded. */
export type ImageText = { readonly text: string; readonly tiles: number };

/** Rows of embeddings, in shared memory. */
export type Features = { readonly values: Float32Array; readonly size: number }; // (rows, size)

/** How states become a vector. */
export type OnnxPooling = Exclude<Pooling, 'rank'>;
