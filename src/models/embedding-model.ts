/** A model of embeddings or scores: its limits, what it needs of memory, and the model with its queue. */
import type { ContextSettings } from '../engine/backend/index.ts';
import { EmbeddingQueue } from '../engine/index.ts';
import { defaultThreads, type NativeEmbedder } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { ModelOptions } from '../protocol/index.ts';
import {
  estimateMemory,
  type GgufModel,
  type MemoryEstimate,
  type ModelShape,
  type ScoreHead,
} from './formats/index.ts';
import type { FormatLoad, ModelFormat, VectorPooling } from './model-format.ts';
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
  /** Pooling of a model of another format; null for a GGUF file, whose header says it. */
  readonly pooling: VectorPooling | null;
};

/** Longest texts without a `contextSize` option, in tokens: the memory of a pass grows with the length. */
const DEFAULT_LAST_TOKENS = 8192;
const DEFAULT_WHOLE_TOKENS = 2048;
/** Tokens of a batch of several texts. Longer batches are no faster per token, and attention looks at all of their tokens. */
const PACKED_TOKENS = 512;
const MAX_SEQUENCES = 64;

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
  return { contextSize, batchTokens, isLast, hasHead: pooling === 'rank', pooling: null };
}

/**
 * Does the same as {@link planEmbedding} for a model of another format. Returns null if neither its files nor the options say how states
 * become a vector.
 */
export function planFormatEmbedding(
  format: ModelFormat,
  file: string,
  options: ModelOptions,
  serving: ServingOptions,
): EmbeddingPlan | null {
  const found = format.describeVectors(file, options.pooling);
  if (!found) return null;
  const { pooling, contextLength } = found;
  const contextSize = Math.min(
    options.contextSize ?? serving.contextSize ?? DEFAULT_WHOLE_TOKENS,
    contextLength,
  );
  return { contextSize, batchTokens: PACKED_TOKENS, isLast: pooling === 'last', hasHead: false, pooling };
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
    slotCount: MAX_SEQUENCES,
    maxOutputs: isLast ? MAX_SEQUENCES : batchTokens,
    threads: 1,
    ...(isLast ? {} : { wholeRows: batchTokens }),
  };
  const estimate = estimateMemory(shape, limits, { cacheType: 'f16', fusedAttention });
  return shape.isCausal ? estimate : { ...estimate, cache: 0, caches: shape.layers.map(() => 0) };
}

/** Loads the model of a plan of {@link planFormatEmbedding}. */
export async function openFormatEmbedding(
  format: ModelFormat,
  { contextSize, pooling }: EmbeddingPlan,
  { path, name, placement }: Pick<EmbeddingModel, 'path' | 'name' | 'placement'>,
  how: Omit<FormatLoad, 'path'>,
): Promise<EmbeddingModel> {
  const { tokenizer, embedder } = await format.loadVectors({ path, pooling: pooling!, ...how });
  const embeddings = queueOf(embedder);
  return { path, name, placement, loaded: null, tokenizer, embeddings, head: null, contextSize };
}

export async function openEmbedding(
  loaded: GgufModel,
  { contextSize, batchTokens, isLast, hasHead }: EmbeddingPlan,
  {
    path,
    name,
    placement,
    threads,
  }: Pick<EmbeddingModel, 'path' | 'name' | 'placement'> & { threads: number | null },
): Promise<EmbeddingModel> {
  const embedder = await loaded.createEmbedder({
    batchTokens,
    maxSequences: MAX_SEQUENCES,
    threads: threads ?? defaultThreads(loaded.isTiny),
    isLast,
    hasHead,
  });
  const { tokenizer, head } = loaded;
  return { path, name, placement, loaded, tokenizer, embeddings: queueOf(embedder), head, contextSize };
}

function queueOf(embedder: NativeEmbedder): EmbeddingQueue {
  return new EmbeddingQueue(embedder, { packedTokens: PACKED_TOKENS, maxSequences: MAX_SEQUENCES });
}
