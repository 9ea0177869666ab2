/** The header of a model's file and the limits of its context -> the bytes that it will take, before anything is loaded. */
import { type EagleFacts, eagleFacts, type GgufHeader, type GgufTensor, shapesOf } from '../gguf/index.ts';
import { type BaseModel, deltaNetHeads } from '../lora/index.ts';
import type { CacheType } from '../protocol/index.ts';
import { PASS_TOKENS } from './backend.ts';
import { headMemories, type LayerMemory, layerMemories, slidingWindow } from './layer-memory.ts';
import type { ContextSettings, ExpertFacts, StateFacts } from './model.ts';
import { numbersPerRow } from './step-memory.ts';

/** Bytes of one number in the cache. */
export const CACHE_BYTES: Readonly<Record<CacheType, number>> = {
  f32: 4,
  f16: 2,
  q8_0: 34 / 32,
  q4_0: 18 / 32,
};

/** `mean` of all tokens, the first (`cls`) or the `last` one, or what a head makes of one of them: scores (`rank`). */
export type Pooling = 'mean' | 'cls' | 'last' | 'rank';

/** By their numbers in GGUF files. */
const POOLINGS: readonly (Pooling | null)[] = [null, 'mean', 'cls', 'last', 'rank'];

/** Sizes of a model, as its file says them. */
export type ModelShape = {
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly embeddingSize: number;
  /** That a step holds at a time for one of its rows. */
  readonly numbersPerRow: number;
  readonly heads: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly layers: readonly LayerMemory[];
  /** What has cells in the context of the model's own head; none: it does not draft. */
  readonly headLayers: readonly LayerMemory[];
  readonly slidingWindow: number; // tokens; 0: attention sees everything
  /** Whether there are layers that keep a state of what they have read. */
  readonly isRecurrent: boolean;
  /** Whether that state can be taken back by some tokens. */
  readonly takesBack: boolean;
  readonly isF32: boolean;
  /** Null: its tokens choose among no matrices. */
  readonly experts: ExpertFacts | null;
  /** Whether a weight has a quantized type. */
  readonly isQuantized: boolean;
  /** How the states of a sequence's tokens become one vector; null: the file does not say, it is no model of embeddings. */
  readonly pooling: Pooling | null;
  /** Whether a token sees those before it only. */
  readonly isCausal: boolean;
  /** Of an EAGLE-3 file: what it reads of a larger model. */
  readonly eagle: EagleFacts | null;
  readonly blockBytes: readonly number[]; // (layers) of the weights
  readonly inputBytes: number; // of the token embeddings
  readonly otherBytes: number; // of all other weights
};

/** Bytes of a model in memory. */
export type MemoryEstimate = {
  /** As the file has them. */
  readonly weights: number;
  /** The KV cache, and states of sequences. */
  readonly cache: number;
  readonly caches: readonly number[]; // (layers) of these
  /** What checkpoints of sequences may take, in the processor's memory. */
  readonly checkpoints: number;
  /** What a step computes with, and its rows of logits. */
  readonly compute: number;
};

/** Of what a cache is made, and who reads it. */
type CacheKind = { readonly cacheType: CacheType; readonly fusedAttention: boolean };

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
  const memories = layerMemories(architecture, layers, { number: read, list });
  const tensors = parts.flatMap((part) => [...part.tensors]);
  return {
    vocabSize: tokens?.type === 'array' ? tokens.value.count : (read('vocab_size') ?? 0),
    contextLength: read('context_length') ?? 0,
    embeddingSize,
    numbersPerRow: numbersPerRow(shapesOf(parts), embeddingSize, read('expert_used_count') ?? 1),
    heads,
    keySize: read('attention.key_length') ?? headSize,
    valueSize: read('attention.value_length') ?? headSize,
    layers: memories,
    headLayers: headMemories(architecture, layers, { number: read, list }),
    slidingWindow: slidingWindow(architecture, layers, { number: read, list }),
    isRecurrent: memories.some(({ stateBytes }) => stateBytes > 0),
    takesBack: TAKE_BACK.has(architecture),
    isF32: parts.every(isF32),
    experts: expertsOf(
      tensors.map(([name]) => name),
      layers - (read('nextn_predict_layers') ?? 0),
      { count: read('expert_count') ?? 0, used: read('expert_used_count') ?? 0 },
    ),
    isQuantized: tensors.some(([, { type }]) => type.blockElements > 1),
    pooling: poolingOf(read('pooling_type'), tensors),
    isCausal: read('attention.causal') !== 0,
    eagle: architecture === 'eagle3' ? eagleFacts(parts[0]!) : null,
    ...weightsOf(tensors, layers),
  };
}

/** Layers that draft are not counted. */
function expertsOf(
  names: readonly string[],
  layers: number,
  sizes: Omit<ExpertFacts, 'layers'>,
): ExpertFacts | null {
  const routers = names.filter((name) => Number(ROUTER.exec(name)?.[1]) < layers);
  return routers.length > 0 ? { layers: routers.length, ...sizes } : null;
}

/** Without a head there is nothing that makes scores. */
function poolingOf(
  number: number | undefined,
  tensors: readonly (readonly [name: string, tensor: GgufTensor])[],
): Pooling | null {
  const pooling = POOLINGS[number ?? 0] ?? null;
  return pooling === 'rank' && !tensors.some(([name]) => SCORE_HEAD.test(name)) ? null : pooling;
}

/** Whether every weight of a file has 32 bits. */
export function isF32({ tensors }: GgufHeader): boolean {
  return [...tensors.values()].every(({ type }) => type.name === 'f32');
}

const SCORE_HEAD = /^cls(\.output)?\.weight$/;
const ROUTER = /^blk\.(\d+)\.ffn_gate_inp\.weight$/;
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

/** What adapters of a model must fit. */
export function toBase(parts: readonly GgufHeader[]): BaseModel {
  return {
    architecture: parts[0]!.architecture,
    headSize: toShape(parts).keySize,
    deltaNet: deltaNetHeads(parts[0]!),
    tensors: shapesOf(parts),
  };
}

/** The engine rounds the cells of a slot up to a multiple of this. */
export const CELLS_ROUNDED_TO = 256;

function roundUp(cells: number): number {
  return Math.ceil(cells / CELLS_ROUNDED_TO) * CELLS_ROUNDED_TO;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Bytes of the weights of all layers, and of those outside of them. */
export function weightBytes({ blockBytes, inputBytes, otherBytes }: ModelShape): number {
  return sum(blockBytes) + inputBytes + otherBytes;
}

/** Bytes that one token takes in the KV cache. */
export function kvBytesPerToken({ layers }: ModelShape, type: CacheType): number {
  return CACHE_BYTES[type] * sum(layers.map(({ keys, values }) => keys + values));
}

/** Bytes of the KV cache of a context, and of the states of its sequences: of each layer. */
function layerCacheBytes(
  shape: Pick<ModelShape, 'layers' | 'slidingWindow'>,
  limits: ContextSettings,
  { cacheType, fusedAttention }: CacheKind,
): number[] {
  const { isKvUnified, kvTokens, slotCount, isWindowCacheFull, rollbackTokens = 0 } = limits;
  const caches = isKvUnified ? 1 : slotCount;
  const cells = roundUp(kvTokens / caches);
  const windowTokens = shape.slidingWindow * (isKvUnified ? slotCount : 1) + rowsOf(limits);
  const windowCells = isWindowCacheFull === false ? Math.min(cells, roundUp(windowTokens)) : cells;
  const mostValues = Math.max(0, ...shape.layers.map(({ values }) => values));
  return shape.layers.map(({ keys, values, isWindow, stateBytes }) => {
    const stored = fusedAttention || values === 0 ? values : mostValues; // without fusion all layers have rows of one length
    const numbers = caches * (isWindow ? windowCells : cells) * (keys + stored);
    return CACHE_BYTES[cacheType] * numbers + slotCount * (1 + rollbackTokens) * stateBytes;
  });
}

/** What of the caches of a model cannot be cut. */
export function stateFacts({ layers, takesBack, slidingWindow }: ModelShape, type: CacheType): StateFacts {
  const stateBytes = sum(layers.map((layer) => layer.stateBytes));
  const numbers = sum(layers.map(({ isWindow, keys, values }) => (isWindow ? keys + values : 0)));
  return { stateBytes, takesBack, checkpointSize: stateBytes + slidingWindow * CACHE_BYTES[type] * numbers };
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
function rowsOf({ batchTokens, wholeRows = 0 }: ContextSettings): number {
  return Math.max(Math.min(batchTokens, PASS_TOKENS), wholeRows);
}

/**
 * What a model will take. Weights and cache are exact for usual architectures; what a step computes with follows the largest
 * of the engine's intermediate results, and is off by a quarter at most on the models of test/backends/memory.native.test.ts.
 */
export function estimateMemory(shape: ModelShape, limits: ContextSettings, kind: CacheKind): MemoryEstimate {
  const { headLayers } = shape;
  const trunk = estimateContext(shape, limits, kind);
  if (!limits.hasDraftHead || headLayers.length === 0) return trunk;
  const head = estimateContext({ ...shape, layers: headLayers }, { ...limits, rollbackTokens: 0 }, kind);
  return { ...trunk, cache: trunk.cache + head.cache, compute: trunk.compute + head.compute };
}

function estimateContext(shape: ModelShape, limits: ContextSettings, kind: CacheKind): MemoryEstimate {
  const { fusedAttention } = kind;
  const { vocabSize, embeddingSize, heads, keySize, slidingWindow, layers } = shape;
  const rows = rowsOf(limits);
  const slotCells = roundUp(limits.isKvUnified ? limits.kvTokens : limits.kvTokens / limits.slotCount);
  const outputs = Math.max(limits.maxOutputs, limits.slotCount);
  const hidden = 4 * rows * shape.numbersPerRow;
  const mask = (fusedAttention ? 2 : 4) * rows * slotCells;
  const masks = layers.some(({ keys }) => keys > 0) ? (slidingWindow > 0 ? 2 * mask : mask) : 0;
  const scores = 4 * rows * (heads * (slotCells + keySize) + 3 * embeddingSize);
  const latent = Math.max(0, ...layers.map(({ keys, values }) => (values === 0 ? keys : 0))); // copied for another order of numbers
  const unfused = fusedAttention
    ? 0
    : scores + 2 * slotCells * (limits.isKvUnified ? 1 : limits.slotCount) * latent;
  const logits = 4 * outputs * vocabSize;
  const caches = layerCacheBytes(shape, limits, kind);
  return {
    weights: weightBytes(shape),
    cache: sum(caches),
    caches,
    checkpoints: limits.checkpointBytes ?? 0,
    compute: Math.max(masks + Math.max(hidden, unfused), Math.min(rows / outputs, 1) * logits) + logits,
  };
}
