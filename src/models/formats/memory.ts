/** The header of a model's file and the limits of its context -> the bytes that it will take, computed before it is loaded. */

import type { ContextSettings } from '../../engine/backend/index.ts';
import { PASS_TOKENS } from '../../engine/backend/index.ts';
import {
  ASSISTANT,
  BLOCKS,
  type EagleFacts,
  eagleFacts,
  type GgufHeader,
  type GgufTensor,
  POOLED,
  ROWS_BY_ROWS,
  shapesOf,
  TAKES_BACK_SINCE,
  UNFUSED,
} from '../../engine/gguf/index.ts';
import { isEngineSince } from '../../engine/native/index.ts';
import type { CacheType } from '../../protocol/index.ts';
import { type BaseModel, deltaNetHeads } from '../lora/index.ts';
import {
  borrowedMemories,
  headMemories,
  type LayerMemory,
  layerMemories,
  slidingWindow,
} from './layer-memory.ts';
import type { ExpertFacts, StateFacts } from './model.ts';
import { numbersPerRow } from './step-memory.ts';

/** Bytes of one number in the cache. */
export const CACHE_BYTES: Readonly<Record<CacheType, number>> = {
  f32: 4,
  f16: 2,
  q8_0: 34 / 32,
  q4_0: 18 / 32,
};

/** Pooling of token states: the `mean` of all, the first (`cls`), the `last`, or a head's score of one token (`rank`). */
export type Pooling = 'mean' | 'cls' | 'last' | 'rank';

/** Poolings by their numbers in GGUF files. */
const POOLINGS: readonly (Pooling | null)[] = [null, 'mean', 'cls', 'last', 'rank'];

/** Sizes of a model, as its file states them. */
export type ModelShape = {
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly embeddingSize: number;
  /** Numbers that a step holds at a time for each of its rows. */
  readonly numbersPerRow: number;
  readonly heads: number;
  /** Numbers that a step holds for each pair of its rows. */
  readonly numbersPerPair: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly layers: readonly LayerMemory[];
  /** Layers with cells in the context of the model's own draft head. Empty if it does not draft. */
  readonly headLayers: readonly LayerMemory[];
  readonly slidingWindow: number; // tokens; 0: attention sees everything
  /** True if layers keep a recurrent state. */
  readonly isRecurrent: boolean;
  /** True if that state can be rolled back by some tokens. */
  readonly takesBack: boolean;
  /** False if the engine cannot compute its attention in one fused operation. */
  readonly fusesAttention: boolean;
  /** Heads that select blocks of tokens, for which attention must be fused, or 0. */
  readonly blockHeads: number;
  /** The heads of an indexer that takes blocks of tokens, and the tokens of a block. Null if there is none, or if it takes single tokens. */
  readonly pooled: { readonly heads: number; readonly tokens: number } | null;
  /** True if attention sees blocks of tokens, for which each sequence needs cells of its own. */
  readonly selectsBlocks: boolean;
  readonly isF32: boolean;
  /** Null if the model has no experts. */
  readonly experts: ExpertFacts | null;
  /** True if a weight has a quantized type. */
  readonly isQuantized: boolean;
  /** The way in which the states of a sequence's tokens become one vector. Null if the file does not say, as for models that embed nothing. */
  readonly pooling: Pooling | null;
  /** True if a token sees only the tokens before it. */
  readonly isCausal: boolean;
  /** For an EAGLE-3 file: the layers of the larger model that it reads. Else null. */
  readonly eagle: EagleFacts | null;
  /** Facts of the larger model that an assistant of Gemma 4 reads, or null for other models. */
  readonly assistant: AssistantFacts | null;
  readonly blockBytes: readonly number[]; // (layers) of the weights
  readonly expertBytes: readonly number[]; // (layers) the part of these that tokens choose from
  readonly largestExpertBytes: number; // of one tensor
  readonly inputBytes: number; // of the token embeddings
  readonly otherBytes: number; // of all other weights
};

/** Properties that the model of an assistant must have. */
export type AssistantFacts = {
  readonly embeddingSize: number;
  /** Layers of the model whose cache the layers of the assistant read. */
  readonly borrowed: readonly LayerMemory[];
};

/** Bytes of a model in memory. */
export type MemoryEstimate = {
  /** Bytes of the weights, as in the file. */
  readonly weights: number;
  /** Bytes of the KV cache and of the states of sequences. */
  readonly cache: number;
  readonly caches: readonly number[]; // (layers) of these
  /** Highest number of bytes of sequence checkpoints, in main memory. */
  readonly checkpoints: number;
  /** Bytes of a step's buffers and its rows of logits. */
  readonly compute: number;
};

/** Properties of a context that decide the size of its cache. */
type CacheKind = { readonly cacheType: CacheType; readonly fusedAttention: boolean };

/** Highest number of layers that is accepted, because a damaged header may state any number. */
const MOST_LAYERS = 4096;

/** Returns the sizes of a model whose file has these parts: one, or those of a split file in order. */
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
  const keys = { number: read, list, isEngineSince };
  const memories = layerMemories(architecture, layers, keys);
  const tensors = parts.flatMap((part) => [...part.tensors]);
  return {
    vocabSize: tokens?.type === 'array' ? tokens.value.count : (read('vocab_size') ?? 0),
    contextLength: read('context_length') ?? 0,
    embeddingSize,
    numbersPerRow:
      numbersPerRow(shapesOf(parts), embeddingSize, read('expert_used_count') ?? 1) +
      (read('n_deepstack_layers') ?? 0) * embeddingSize, // inputs of the first layers
    heads,
    numbersPerPair: ROWS_BY_ROWS.test(architecture) ? 3 * heads : 0,
    keySize: read('attention.key_length') ?? headSize,
    valueSize: read('attention.value_length') ?? headSize,
    layers: memories,
    headLayers: headMemories(architecture, layers, keys),
    slidingWindow: slidingWindow(architecture, layers, keys),
    isRecurrent: memories.some(({ stateBytes }) => stateBytes > 0),
    takesBack:
      Object.hasOwn(TAKES_BACK_SINCE, architecture) && isEngineSince(TAKES_BACK_SINCE[architecture]!),
    fusesAttention: !UNFUSED.test(architecture),
    pooled: POOLED.test(architecture)
      ? {
          heads: read('attention.indexer.head_count') ?? 0,
          tokens: Math.max(read('attention.compress_ratios') ?? 1, 1),
        }
      : null,
    selectsBlocks: BLOCKS.test(architecture) || POOLED.test(architecture),
    blockHeads: BLOCKS.test(architecture) ? (read('attention.indexer.head_count') ?? 0) : 0,
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
    assistant:
      architecture === ASSISTANT
        ? {
            embeddingSize: read('embedding_length_out') ?? 0,
            borrowed: borrowedMemories(architecture, layers, keys),
          }
        : null,
    ...weightsOf(tensors, layers),
  };
}

/** Layers that draft are excluded. */
function expertsOf(
  names: readonly string[],
  layers: number,
  sizes: Omit<ExpertFacts, 'layers'>,
): ExpertFacts | null {
  const routers = names.filter((name) => Number(ROUTER.exec(name)?.[1]) < layers);
  return routers.length > 0 ? { layers: routers.length, ...sizes } : null;
}

/** Returns no `rank` pooling without a head to compute scores. */
function poolingOf(
  number: number | undefined,
  tensors: readonly (readonly [name: string, tensor: GgufTensor])[],
): Pooling | null {
  const pooling = POOLINGS[number ?? 0] ?? null;
  return pooling === 'rank' && !tensors.some(([name]) => SCORE_HEAD.test(name)) ? null : pooling;
}

/** Returns true if every weight of a file has 32 bits. */
export function isF32({ tensors }: GgufHeader): boolean {
  return [...tensors.values()].every(({ type }) => type.name === 'f32');
}

const SCORE_HEAD = /^cls(\.output)?\.weight$/;
const ROUTER = /^blk\.(\d+)\.ffn_gate_inp\.weight$/;
const BLOCK = /^blk\.(\d+)\./;

/** Names of the tensors of experts, in the notation of regular expressions that C++ has too. */
const EXPERTS = 'ffn_(up|down|gate|gate_up)_(ch|)exps';
const EXPERT = new RegExp(`^blk\\.\\d+\\.${EXPERTS}`);

/** Returns a regular expression for the names of the tensors of experts in the first layers. */
export function expertsOfFirst(layers: number): string {
  const numbers = Array.from({ length: layers }, (_, layer) => layer).join('|');
  return `^blk\\.(${numbers})\\.${EXPERTS}`;
}

/** Returns the bytes of the weights by where they are used. */
function weightsOf(
  tensors: readonly (readonly [string, GgufTensor])[],
  layers: number,
): Pick<ModelShape, 'blockBytes' | 'expertBytes' | 'largestExpertBytes' | 'inputBytes' | 'otherBytes'> {
  const blockBytes = Array<number>(layers).fill(0);
  const expertBytes = Array<number>(layers).fill(0);
  let largestExpertBytes = 0;
  const others = { inputBytes: 0, otherBytes: 0 };
  for (const [name, { bytes }] of tensors) {
    const layer = Number(BLOCK.exec(name)?.[1] ?? layers);
    if (layer >= layers) {
      others[name === 'token_embd.weight' ? 'inputBytes' : 'otherBytes'] += bytes;
      continue;
    }
    blockBytes[layer]! += bytes;
    if (!EXPERT.test(name)) continue;
    expertBytes[layer]! += bytes;
    largestExpertBytes = Math.max(largestExpertBytes, bytes);
  }
  return { blockBytes, expertBytes, largestExpertBytes, ...others };
}

/** Returns the facts of a base model that its adapters must match. */
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

/** Returns the bytes of the weights of all layers, and of those outside of them. */
export function weightBytes({ blockBytes, inputBytes, otherBytes }: ModelShape): number {
  return sum(blockBytes) + inputBytes + otherBytes;
}

/** Returns the bytes that one token takes in the KV cache. */
export function kvBytesPerToken({ layers }: ModelShape, type: CacheType): number {
  return CACHE_BYTES[type] * sum(layers.map(({ keys, values, index }) => keys + values + index));
}

/** Returns the bytes of the KV cache of a context and of its sequences' states, for each layer. */
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
  return shape.layers.map(({ keys, values, index, isWindow, stateBytes }) => {
    const stored = fusedAttention || values === 0 ? values : mostValues; // without fusion all layers have rows of one length
    const numbers = caches * (isWindow ? windowCells : cells) * (keys + stored + index);
    return CACHE_BYTES[cacheType] * numbers + slotCount * (1 + rollbackTokens) * stateBytes;
  });
}

/** Returns the state and checkpoint sizes of the caches, which cannot be cut at any token. */
export function stateFacts({ layers, takesBack, slidingWindow }: ModelShape, type: CacheType): StateFacts {
  const stateBytes = sum(layers.map((layer) => layer.stateBytes));
  const numbers = sum(layers.map(({ isWindow, keys, values }) => (isWindow ? keys + values : 0)));
  return { stateBytes, takesBack, checkpointSize: stateBytes + slidingWindow * CACHE_BYTES[type] * numbers };
}

/** Returns the highest number of rows that the engine computes in one pass. */
function rowsOf({ batchTokens, wholeRows = 0 }: ContextSettings): number {
  return Math.max(Math.min(batchTokens, PASS_TOKENS), wholeRows);
}

/**
 * Estimates the memory of a model. Weights and cache are exact for usual architectures. The estimate of a step's buffers follows the
 * largest of the engine's intermediate results and is off by a quarter at most on the models of
 * test/models/formats/memory.native.slow.test.ts.
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
  const hidden = 4 * rows * (shape.numbersPerRow + rows * shape.numbersPerPair);
  const mask = (fusedAttention ? 2 : 4) * rows * slotCells;
  const attends = [...layers, ...(shape.assistant?.borrowed ?? [])].some(({ keys }) => keys > 0);
  const masks = attends ? (slidingWindow > 0 ? 2 * mask : mask) : 0;
  const selection = layers.some(({ values, index }) => index > 0 && values === 0) ? 6 * rows * slotCells : 0; // a mask of 16 bits, and a score
  // Models that select blocks need the mask in 32 bits, and two of the blocks for each head and the rows of one sequence.
  const selectsBlocks = shape.blockHeads > 0 && fusedAttention && !limits.isKvUnified;
  const blocks = selectsBlocks ? slotCells * rows * (4 + (8 * shape.blockHeads) / limits.slotCount) : 0;
  const pool = pooledBytes(shape, rows, slotCells, limits.isKvUnified ? 1 : limits.slotCount);
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
    compute:
      Math.max(
        masks + selection + blocks + pool + (pool > 0 ? hidden + unfused : Math.max(hidden, unfused)),
        Math.min(rows / outputs, 1) * logits,
      ) + logits,
  };
}

/** Returns the bytes with which an indexer scores blocks: the means of their keys, then scores of each head and their sum, then of each token. */
function pooledBytes(
  { pooled, layers }: ModelShape,
  rows: number,
  slotCells: number,
  streams: number,
): number {
  if (!pooled) return 0;
  const { heads, tokens } = pooled;
  const keys = 4 * slotCells * streams * Math.max(0, ...layers.map(({ index }) => index));
  const scores = (rows * slotCells * (8 * heads + 4)) / tokens + keys / tokens;
  return Math.max(scores, rows * slotCells * (8 + 4 / tokens), keys * (1 + 2 / tokens));
}
