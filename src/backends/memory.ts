/** The header of a model's file and the limits of its context -> the bytes that it will take, before anything is loaded. */
import { type GgufHeader, type GgufTensor, shapesOf } from '../gguf/index.ts';
import type { BaseModel } from '../lora/index.ts';
import type { CacheType } from '../protocol/index.ts';
import type { ContextLimits } from './model.ts';

/** Bytes of one number in the cache. */
export const CACHE_BYTES: Readonly<Record<CacheType, number>> = {
  f32: 4,
  f16: 2,
  q8_0: 34 / 32,
  q4_0: 18 / 32,
};

/** `mean` of all tokens, the first (`cls`) or the `last` one, or a score of a text for a query (`rank`). */
export type Pooling = 'mean' | 'cls' | 'last' | 'rank';

/** By their numbers in GGUF files. */
const POOLINGS: readonly (Pooling | null)[] = [null, 'mean', 'cls', 'last', 'rank'];

/** Sizes of a model, as its file says them. */
export type ModelShape = {
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly embeddingSize: number;
  readonly feedForwardSize: number;
  readonly heads: number;
  readonly kvHeads: readonly number[]; // (layers) 0: the layer has no attention
  readonly keySize: number;
  readonly valueSize: number;
  /** Bytes of recurrent state that one sequence has in a layer without attention. */
  readonly stateBytes: number;
  readonly slidingWindow: number; // tokens; 0: attention sees everything
  readonly windowLayers: readonly boolean[]; // (layers) which see only the window
  /** Whether layers without attention keep a state of what they have read. */
  readonly isRecurrent: boolean;
  /** Whether that state can be taken back by some tokens. */
  readonly takesBack: boolean;
  readonly isF32: boolean;
  /** How the states of a sequence's tokens become one vector; null: the file does not say, it is no model of embeddings. */
  readonly pooling: Pooling | null;
  /** Whether a token sees those before it only. */
  readonly isCausal: boolean;
  readonly blockBytes: readonly number[]; // (layers) of the weights
  readonly inputBytes: number; // of the token embeddings
  readonly otherBytes: number; // of all other weights
};

/** Bytes of a model in memory. */
export type MemoryEstimate = {
  /** As the file has them. */
  readonly weights: number;
  /** The KV cache, and the states of sequences. */
  readonly cache: number;
  /** What checkpoints of sequences may take, in the processor's memory. */
  readonly checkpoints: number;
  /** What a step computes with, and its rows of logits. */
  readonly compute: number;
};

/** A damaged header may say any number of layers. */
const MOST_LAYERS = 4096;

/** The sizes of a model whose file has these parts: one, or those of a split file in order. */
export function toShape(parts: readonly GgufHeader[]): ModelShape {
  const { architecture, values } = parts[0]!;
  const list = (name: string): readonly number[] | undefined => {
    const found = values.get(`${architecture}.${name}`);
    return found?.type === 'array' ? Array.from(found.value.numbers) : undefined;
  };
  const read = (name: string): number | undefined => {
    const value = list(name) ?? values.get(`${architecture}.${name}`)?.value;
    if (Array.isArray(value)) return Math.max(...value);
    return typeof value === 'number' ? value : undefined;
  };
  const tokens = values.get('tokenizer.ggml.tokens');
  const layers = Math.min(Math.max(Math.floor(read('block_count') ?? 0), 0) || 0, MOST_LAYERS);
  const heads = read('attention.head_count') ?? 1;
  const embeddingSize = read('embedding_length') ?? 0;
  const headSize = embeddingSize / Math.max(heads, 1);
  const inner = read('ssm.inner_size') ?? 0;
  const kvHeads = list('attention.head_count_kv');
  const evenly = inner > 0 && heads === 0 ? 0 : (read('attention.head_count_kv') ?? heads);
  const tensors = parts.flatMap((part) => [...part.tensors]);
  return {
    vocabSize: tokens?.type === 'array' ? tokens.value.count : (read('vocab_size') ?? 0),
    contextLength: read('context_length') ?? 0,
    embeddingSize,
    feedForwardSize: Math.max(read('feed_forward_length') ?? 0, read('expert_feed_forward_length') ?? 0),
    heads,
    kvHeads: Array.from({ length: layers }, (_, layer) => kvHeads?.[layer] ?? evenly),
    keySize: read('attention.key_length') ?? headSize,
    valueSize: read('attention.value_length') ?? headSize,
    stateBytes: 4 * inner * ((read('ssm.state_size') ?? 0) + Math.max(0, (read('ssm.conv_kernel') ?? 1) - 1)),
    slidingWindow: read('attention.sliding_window') ?? 0,
    windowLayers: windowLayers(
      layers,
      architecture,
      list('attention.sliding_window_pattern') ?? read('attention.sliding_window_pattern'),
    ),
    isRecurrent: inner > 0 || values.has(`${architecture}.wkv.head_size`),
    takesBack: TAKE_BACK.has(architecture),
    isF32: parts.every(isF32),
    pooling: POOLINGS[read('pooling_type') ?? 0] ?? null,
    isCausal: read('attention.causal') !== 0,
    ...weightsOf(tensors, layers),
  };
}

/** Whether every weight of a file has 32 bits. */
export function isF32({ tensors }: GgufHeader): boolean {
  return [...tensors.values()].every(({ type }) => type.name === 'f32');
}

const BLOCK = /^blk\.(\d+)\./;

/** Bytes of the weights by where they are used. */
function weightsOf(
  tensors: readonly (readonly [string, GgufTensor])[],
  layers: number,
): Pick<ModelShape, 'blockBytes' | 'inputBytes' | 'otherBytes'> {
  const blockBytes = Array<number>(layers).fill(0);
  const others = { inputBytes: 0, otherBytes: 0 };
  for (const [name, { bytes }] of tensors) {
    const layer = Number(BLOCK.exec(name)?.[1] ?? layers);
    if (layer < layers) blockBytes[layer]! += bytes;
    else others[name === 'token_embd.weight' ? 'inputBytes' : 'otherBytes'] += bytes;
  }
  return { blockBytes, ...others };
}

/** Of so many layers one sees everything, the last: as the engine has it where a file does not say. */
const WINDOW_PERIODS: Readonly<Record<string, number>> = {
  gemma2: 2,
  gemma3: 6,
  cohere2: 4,
  exaone4: 4,
  'gpt-oss': 2,
  llama4: 4,
  olmo2: 4,
};

/** Which layers have a sliding window, if the model has one. `pattern`: as the file says, one flag a layer or a period. */
function windowLayers(
  layers: number,
  architecture: string,
  pattern: number | readonly number[] | undefined,
): boolean[] {
  const period = typeof pattern === 'number' ? pattern : (WINDOW_PERIODS[architecture] ?? 1);
  return Array.from({ length: layers }, (_, layer) =>
    Array.isArray(pattern) ? pattern[layer] === 1 : layer % period < period - 1,
  );
}

/** What adapters of a model must fit. */
export function toBase(parts: readonly GgufHeader[]): BaseModel {
  return {
    architecture: parts[0]!.architecture,
    headSize: toShape(parts).keySize,
    tensors: shapesOf(parts),
  };
}

/** The engine rounds the cells of a slot up to a multiple of this. */
export const CELLS_ROUNDED_TO = 256;

function roundUp(cells: number): number {
  return Math.ceil(cells / CELLS_ROUNDED_TO) * CELLS_ROUNDED_TO;
}

/** Bytes of the weights of all layers, and of those outside of them. */
export function weightBytes({ blockBytes, inputBytes, otherBytes }: ModelShape): number {
  return blockBytes.reduce((sum, bytes) => sum + bytes, inputBytes + otherBytes);
}

/** Bytes that one token takes in the KV cache of one layer. */
export function layerBytesPerToken(
  { kvHeads, keySize, valueSize }: ModelShape,
  layer: number,
  type: CacheType,
): number {
  return CACHE_BYTES[type] * (kvHeads[layer] ?? 0) * (keySize + valueSize);
}

/** Bytes that one token takes in the KV cache of all layers that `counts`. */
export function kvBytesPerToken(
  shape: ModelShape,
  type: CacheType,
  counts: (layer: number) => boolean = () => true,
): number {
  return shape.kvHeads.reduce(
    (sum, _, layer) => sum + (counts(layer) ? layerBytesPerToken(shape, layer, type) : 0),
    0,
  );
}

/** Bytes of the KV cache of a context. */
export function cacheBytes(shape: ModelShape, limits: ContextLimits, type: CacheType): number {
  const slotCells = roundUp(limits.isKvUnified ? limits.kvTokens : limits.kvTokens / limits.slotCount);
  const isSmall = (layer: number): boolean =>
    limits.isWindowCacheFull === false && shape.windowLayers[layer]!;
  const windowCells = Math.min(slotCells, roundUp(shape.slidingWindow + rowsOf(limits)));
  const perSlot =
    slotCells * kvBytesPerToken(shape, type, (layer) => !isSmall(layer)) +
    windowCells * kvBytesPerToken(shape, type, isSmall);
  return (limits.isKvUnified ? 1 : limits.slotCount) * perSlot;
}

/** What of a sequence's cache cannot be cut. */
export type StateFacts = {
  /** Bytes of its recurrent state; 0: there is none. */
  readonly stateBytes: number;
  /** Whether that can be taken back by some tokens. */
  readonly takesBack: boolean;
  /** Bytes of one checkpoint; 0: the cache can be cut everywhere. */
  readonly checkpointSize: number;
};

/** What of the caches of a model cannot be cut. */
export function stateFacts(shape: ModelShape, type: CacheType): StateFacts {
  const { takesBack, slidingWindow, windowLayers } = shape;
  const stateBytes = sequenceStateBytes(shape);
  const ofWindow = kvBytesPerToken(shape, type, (layer) => windowLayers[layer]!);
  return { stateBytes, takesBack, checkpointSize: stateBytes + slidingWindow * ofWindow };
}

function sequenceStateBytes({ kvHeads, stateBytes }: ModelShape): number {
  return kvHeads.filter((count) => count === 0).length * stateBytes;
}

/** Architectures with a recurrent state that the engine can take back by some tokens. */
const TAKE_BACK = new Set([
  'bailingmoe3',
  'deepseek4',
  'lfm2',
  'lfm2moe',
  'nemotron_h',
  'nemotron_h_moe',
  'qwen35',
  'qwen35moe',
  'qwen4exp',
]);

/** Rows that the engine computes in one pass at most. */
function rowsOf({ batchTokens, wholeRows = 0 }: ContextLimits): number {
  return Math.max(Math.min(batchTokens, 512), wholeRows);
}

/**
 * What a model will take. Weights and cache are exact for usual architectures; what a step computes with follows the largest
 * of the engine's intermediate results, and is off by a quarter at most on the models of test/backends/memory.native.test.ts.
 */
export function estimateMemory(
  shape: ModelShape,
  limits: ContextLimits,
  { cacheType, fusedAttention }: { readonly cacheType: CacheType; readonly fusedAttention: boolean },
): MemoryEstimate {
  const { vocabSize, embeddingSize, feedForwardSize, heads, keySize } = shape;
  const { slotCount, rollbackTokens = 0, checkpointBytes = 0 } = limits;
  const rows = rowsOf(limits);
  const slotCells = roundUp(limits.isKvUnified ? limits.kvTokens : limits.kvTokens / limits.slotCount);
  const outputs = Math.max(limits.maxOutputs, limits.slotCount);
  const hidden = 4 * rows * (2 * feedForwardSize + 2 * heads * keySize + 3 * embeddingSize);
  const attention = rows * slotCells * (fusedAttention ? 2 : 2 + 4 * heads); // the mask; without fusion also the scores
  const logits = 4 * outputs * vocabSize;
  return {
    weights: weightBytes(shape),
    cache:
      cacheBytes(shape, limits, cacheType) + slotCount * (1 + rollbackTokens) * sequenceStateBytes(shape),
    checkpoints: checkpointBytes,
    compute: Math.max(hidden + attention, Math.min(rows / outputs, 1) * logits) + logits,
  };
}
