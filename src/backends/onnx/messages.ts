/** Types of the messages between the backend and the worker thread. */
import type { ErrorCode } from '../../errors.ts';
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

/** Opens a session. */
export type OpenRequest = {
  readonly kind: 'open';
  readonly file: string;
  readonly threads: number;
  readonly providers: readonly string[];
  readonly sizes: DecoderSizes;
  /** The graph that makes ids embeddings; null: the decoder takes ids. */
  readonly embeddings: string | null;
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
  readonly media: readonly MediaRows[]; // ascending
};

/** Rows of embeddings in the place of tokens. */
export type MediaRows = {
  /** Index into the tokens of the step. */
  readonly at: number;
  readonly count: number;
  readonly values: Float32Array; // (count, size) in shared memory
};

export type SaveRequest = {
  readonly kind: 'save';
  readonly memoryEdits: Int32Array; // (edits, 5)
  readonly slot: number;
};
export type LoadRequest = {
  readonly kind: 'load';
  readonly memoryEdits: Int32Array;
  readonly slot: number;
  readonly state: Uint8Array;
};
export type CloseRequest = { readonly kind: 'close' };

export type Request = OpenRequest | StartRequest | StepRequest | SaveRequest | LoadRequest | CloseRequest;

/** What a request of a step thread is answered with: a {@link Decoder} for `open`, bytes for `save`. */
export type ComputeValue = Decoder | Uint8Array;

/** A decoded picture; `id` is its own. */
export type Picture = {
  readonly id: number;
  readonly rgb: SharedArrayBuffer; // (height, width, 3) bytes
  readonly width: number;
  readonly height: number;
};

/** Opens a vision encoder and the processor of its folder. */
export type OpenVisionRequest = {
  readonly kind: 'open';
  readonly folder: string;
  readonly file: string;
  readonly threads: number;
  readonly providers: readonly string[];
};

/** Asks what stands for a picture in a prompt: `placeholder`, as the processor expands it. */
export type DescribeRequest = {
  readonly kind: 'describe';
  readonly picture: Picture;
  readonly placeholder: string;
};

/** Encodes a tile of a picture that was described so. */
export type EncodeRequest = {
  readonly kind: 'encode';
  readonly picture: Picture;
  readonly placeholder: string;
  readonly tile: number;
};

export type VisionRequest = OpenVisionRequest | DescribeRequest | EncodeRequest | CloseRequest;

/** What stands for a picture, and in how many tiles it is encoded. */
export type Expansion = { readonly text: string; readonly tiles: number };

/** Rows of embeddings, in shared memory. */
export type Features = { readonly values: Float32Array; readonly size: number }; // (rows, size)

/** What a request of a vision thread is answered with: an {@link Expansion} for `describe`, {@link Features} for `encode`. */
export type VisionValue = Expansion | Features;

/** How states become a vector. */
export type OnnxPooling = Exclude<Pooling, 'rank'>;

/** Opens a graph of embeddings. */
export type OpenEmbeddingRequest = {
  readonly kind: 'open';
  readonly file: string;
  readonly threads: number;
  readonly providers: readonly string[];
  readonly sizes: DecoderSizes;
  readonly pooling: OnnxPooling;
  /** Numbers of a state, where the graph does not say. */
  readonly width: number;
};

/** Sequences end to end -> a vector each. */
export type EmbedRequest = {
  readonly kind: 'embed';
  readonly tokens: Int32Array; // (total)
  readonly lengths: Int32Array; // (sequences)
};

export type EmbeddingRequest = OpenEmbeddingRequest | EmbedRequest | CloseRequest;

/** What a request of an embedding thread is answered with: the numbers of a vector for `open`, vectors for `embed`. */
export type EmbeddingValue = number | Float32Array; // (sequences, size)

/** The answer to a request. */
export type Reply<Value> =
  | { readonly kind: 'done'; readonly value?: Value }
  | { readonly kind: 'failed'; readonly code: ErrorCode | 'KV_FULL'; readonly message: string };
