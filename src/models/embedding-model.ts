/** A model of embeddings or scores: its limits, what it needs of memory, and the model with its queue. */
import {
  type ContextSettings,
  describeOnnxEmbedding,
  estimateMemory,
  type GgufModel,
  loadOnnxEmbedding,
  type MemoryEstimate,
  type ModelShape,
  type OnnxPooling,
  type ScoreHead,
} from '../backends/index.ts';
import { EmbeddingQueue } from '../engine/index.ts';
import { defaultThreads, type NativeEmbedder } from '../native/index.ts';
import type { Gpu, ModelOptions } from '../protocol/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import type { Placement } from './placement.ts';
import type { ServingOptions } from './serving-options.ts';

/** A model that turns texts into vectors, or with a head into scores. */
export type EmbeddingModel = {
  readonly path: string;
  /** What answers call it when the request names none. */
  readonly name: string;
  readonly placement: Placement;
  /** What to close behind its queue; null: nothing. */
  readonly loaded: GgufModel | null;
  readonly tokenizer: Tokenizer;
  readonly embeddings: EmbeddingQueue;
  /** Null: its vectors are embeddings. */
  readonly head: ScoreHead | null;
  /** Tokens of one text at most. */
  readonly contextSize: number;
};

export type EmbeddingPlan = {
  /** Tokens of one text at most. */
  readonly contextSize: number;
  /** Tokens that the context holds. */
  readonly batchTokens: number;
  /** The vector of a text is that of its last token, and no token sees a later one: long texts are computed in parts. */
  readonly isLast: boolean;
  readonly hasHead: boolean;
  /** Of an ONNX model; null: a GGUF file, which says it. */
  readonly pooling: OnnxPooling | null;
};

/** Texts longer than this need a `contextSize`: what a pass computes with grows with it. */
const DEFAULT_LAST_TOKENS = 8192;
const DEFAULT_WHOLE_TOKENS = 2048;
/** Tokens of a batch of several texts: more are computed no faster each, and attention looks at all of them. */
const PACKED_TOKENS = 512;
const MAX_SEQUENCES = 64;

/** Null: the model's file does not say how states become a vector or a score. */
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

/** The same for an ONNX folder. Null: neither it nor the options say how states become a vector. */
export function planOnnxEmbedding(
  file: string,
  options: ModelOptions,
  serving: ServingOptions,
): EmbeddingPlan | null {
  const found = describeOnnxEmbedding(file, options.pooling);
  if (!found) return null;
  const { pooling, contextLength } = found;
  const contextSize = Math.min(
    options.contextSize ?? serving.contextSize ?? DEFAULT_WHOLE_TOKENS,
    contextLength,
  );
  return { contextSize, batchTokens: PACKED_TOKENS, isLast: pooling === 'last', hasHead: false, pooling };
}

/** What it will take. Models that see a text as a whole have no cache. */
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

export async function openOnnxEmbedding(
  { contextSize, pooling }: EmbeddingPlan,
  { path, name, placement }: Pick<EmbeddingModel, 'path' | 'name' | 'placement'>,
  how: { gpu: Gpu; threads: number | null; signal: AbortSignal },
): Promise<EmbeddingModel> {
  const { tokenizer, embedder } = await loadOnnxEmbedding({ path, pooling: pooling!, ...how });
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
