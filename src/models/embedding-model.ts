/** A model of embeddings or scores: its limits, what it needs of memory, and the model with its queue. */
import type { ContextSettings } from '../engine/backend/index.ts';
import { EmbeddingQueue } from '../engine/index.ts';
import type { NativeEmbedder } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { ModelOptions } from '../protocol/index.ts';
import {
  estimateMemory,
  type GgufModel,
  type MemoryEstimate,
  type ModelShape,
  type Pooling,
  type ScoreHead,
} from './formats/index.ts';
import type { Placement } from './placement.ts';
import type { ServingOptions } from './serving-options.ts';

/** A model that turns texts into vectors, or with a head into scores. */
export type EmbeddingModel = {
  readonly path: string;
  /** Model name in answers to requests that name no model. */
  readonly name: string;
  readonly placement: Placement;
  /** Model to close after its queue. Null if there is nothing to close. */
  readonly loaded: GgufModel | null;
  readonly tokenizer: Tokenizer;
  readonly embeddings: EmbeddingQueue;
  /** Null if the vectors are embeddings. */
  readonly head: ScoreHead | null;
  /** Highest number of tokens of one text. */
  readonly contextSize: number;
};

export type EmbeddingPlan = {
  /** Highest number of tokens of one text. */
  readonly contextSize: number;
  /** Number of tokens that the context holds. */
  readonly batchTokens: number;
  /** True if the vector of a text is that of its last token and attention is causal, so that long texts are computed in parts. */
  readonly isLast: boolean;
  readonly hasHead: boolean;
};

/** Pooling of states into the vector of a text. */
export type VectorPooling = Exclude<Pooling, 'rank'>;

/** Longest texts without a `contextSize` option, in tokens: the memory of a pass grows with the length. */
const DEFAULT_LAST_TOKENS = 8192;
const DEFAULT_WHOLE_TOKENS = 2048;
/** Tokens of a batch of several texts. Longer batches are no faster per token, and attention looks at all of their tokens. */
const PACKED_TOKENS = 512;

/** Most texts and tokens of one pass of an embedder. */
export const EMBEDDER_LIMITS = { packedTokens: PACKED_TOKENS, maxSequences: 64 };

/** Returns null if the model's file does not say how states become a vector or a score. */
export function planEmbedding(
  { pooling, isCausal, contextLength }: ModelShape,
  options: ModelOptions,
  serving: ServingOptions,
): EmbeddingPlan | null {
  if (pooling === null) return null;
  const isLast = pooling === 'last' && isCausal;
  const wanted =
    options.contextSize ?? serving.contextSize ?? (isLast ? DEFAULT_LAST_TOKENS : DEFAULT_WHOLE_TOKENS);
  const contextSize = Math.min(wanted, contextLength);
  const batchTokens = Math.max(contextSize, PACKED_TOKENS);
  return { contextSize, batchTokens, isLast, hasHead: pooling === 'rank' };
}

/** Plans a model whose batches hold texts as a whole: no text is computed in parts. `contextLength`: the longest text of its files. */
export function planWholeTexts(
  { pooling, contextLength }: { readonly pooling: VectorPooling; readonly contextLength: number },
  options: ModelOptions,
  serving: ServingOptions,
): EmbeddingPlan {
  const wanted = options.contextSize ?? serving.contextSize ?? DEFAULT_WHOLE_TOKENS;
  const contextSize = Math.min(wanted, contextLength);
  return { contextSize, batchTokens: PACKED_TOKENS, isLast: pooling === 'last', hasHead: false };
}

/** Estimates the memory of an embedding model. Models that read a text as a whole have no cache. */
export function estimateEmbedding(
  shape: ModelShape,
  { batchTokens, isLast }: EmbeddingPlan,
  fusedAttention: boolean,
): MemoryEstimate {
  const limits: ContextSettings = {
    kvTokens: batchTokens,
    isKvUnified: true,
    batchTokens: isLast ? PACKED_TOKENS : batchTokens,
    slotCount: EMBEDDER_LIMITS.maxSequences,
    maxOutputs: isLast ? EMBEDDER_LIMITS.maxSequences : batchTokens,
    threads: 1,
    ...(isLast ? {} : { wholeRows: batchTokens }),
  };
  const estimate = estimateMemory(shape, limits, { cacheType: 'f16', fusedAttention });
  return shape.isCausal ? estimate : { ...estimate, cache: 0, caches: shape.layers.map(() => 0) };
}

/** Returns a model whose texts wait in a queue for the embedder. */
export function embeddingModel(
  facts: Omit<EmbeddingModel, 'embeddings'>,
  embedder: NativeEmbedder,
): EmbeddingModel {
  return { ...facts, embeddings: new EmbeddingQueue(embedder, EMBEDDER_LIMITS) };
}
