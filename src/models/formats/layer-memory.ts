/** The keys of a model's header -> the memory that each layer keeps of a sequence: keys and values of tokens, a state, or both. */

import {
  ASSISTANT,
  EXAONE4_LAYERS,
  GEMMA3N_CACHES,
  GLM_DSA_SPARSE_CONTEXT,
  HEADS_ALONE,
  HEADS_APART,
  HEADS_APART_LATER,
  INDEXED,
  INTERVALS,
  LOOPED,
  ONE_PART_EACH,
  ROUTED,
  STATES_BESIDE,
  STATES_BY_HEADS,
  STATES_ONLY,
  STATES_UNGROUPED,
  WINDOWS,
} from '../../engine/gguf/index.ts';

/** Memory of one layer. All fields are zero if it keeps nothing. */
export type LayerMemory = {
  /** Numbers per token in the KV cache: in the keys, and in the values. */
  readonly keys: number;
  readonly values: number;
  /** Numbers per token that an indexer keeps, which selects the tokens that attention sees. */
  readonly index: number;
  /** True if its attention sees only a sliding window. */
  readonly isWindow: boolean;
  /** Bytes of recurrent state per sequence. */
  readonly stateBytes: number;
};

/**
 * Reads header keys below the architecture's name. `number` returns a number, or the largest of a list; `list` returns a list, with `true`
 * as 1. `isEngineSince`: true if the engine is llama.cpp of this version or newer.
 */
export type Keys = {
  readonly number: (name: string) => number | undefined;
  readonly list: (name: string) => readonly number[] | undefined;
  readonly isEngineSince: (version: string) => boolean;
};

/** Returns the size of the sliding window in tokens; 0 if attention sees everything. */
export function slidingWindow(architecture: string, layers: number, { number }: Keys): number {
  const known = WINDOWS[architecture];
  if (!known || (architecture === 'exaone4' && layers !== EXAONE4_LAYERS)) return 0;
  return number('attention.sliding_window') ?? known.tokens ?? 0;
}

/** Returns the memory of each layer, and behind them that of a router if the model has one. */
export function layerMemories(architecture: string, layers: number, keys: Keys): LayerMemory[] {
  return memoriesOf(architecture, layers, keys, false);
}

/** Returns the memory of each layer. `ofHead` selects the context of a head alone, in which its layers are always present. */
function memoriesOf(architecture: string, layers: number, keys: Keys, ofHead: boolean): LayerMemory[] {
  const { number, list } = keys;
  const each = (name: string, otherwise: number): ((layer: number) => number) => {
    const found = list(name);
    const one = found ? 0 : (number(name) ?? otherwise);
    return (layer) => (found ? (found[layer] ?? 0) : one);
  };
  const heads = each('attention.head_count', 0);
  const kvHeads = each('attention.head_count_kv', heads(0));
  const feedForward = each('feed_forward_length', 0);
  const window = slidingWindow(architecture, layers, keys);
  const own = Math.floor((number('embedding_length') ?? 0) / (heads(0) || 1));
  const keySize = number('attention.key_length') ?? own;
  const valueSize = number('attention.value_length') ?? own;
  const keySizeOfWindows = number('attention.key_length_swa') ?? keySize;
  const valueSizeOfWindows = number('attention.value_length_swa') ?? valueSize;
  const isLatent = (number('attention.key_length_mla') ?? 0) > 0; // values are a part of the keys
  const trunk = architecture === ASSISTANT ? layers : layers - (number('nextn_predict_layers') ?? 0);
  const isHeadApart = HEADS_APART.test(architecture) || isApartLater(architecture, keys);
  const stateBytes = 4 * stateNumbers(architecture, heads(0), keySize, number);
  const hasState = statesOf(architecture, keys);
  const passes = LOOPED.test(architecture) ? (number('num_loops') ?? 1) : 1;
  const index = indexNumbers(architecture, valueSize, keys);
  const shared = number('attention.shared_kv_layers') ?? 0;
  const cachesOf: Readonly<Record<string, number>> = {
    gemma3n: GEMMA3N_CACHES,
    gemma4: layers - shared,
    [ASSISTANT]: 0,
  };
  const caches = cachesOf[architecture] ?? layers;
  const memories = Array.from({ length: layers }, (_, layer): LayerMemory => {
    const isAbsent = layer >= caches || (layer >= trunk && isHeadApart);
    const isBare = ONE_PART_EACH.test(architecture) && feedForward(layer) > 0;
    if (!ofHead && (isAbsent || isBare))
      return { keys: 0, values: 0, index: 0, isWindow: false, stateBytes: 0 };
    const isState = layer < trunk && hasState(layer, kvHeads(layer));
    const isWindow = window > 0 && layer < trunk && seesWindow(architecture, keys)(layer);
    const count = isState && !STATES_BESIDE.test(architecture) ? 0 : passes * kvHeads(layer);
    return {
      keys: count * (isWindow ? keySizeOfWindows : keySize),
      values: isLatent ? 0 : count * (isWindow ? valueSizeOfWindows : valueSize),
      index: ofHead || isState ? 0 : index(layer),
      isWindow,
      stateBytes: isState ? stateBytes : 0,
    };
  });
  const router = { keys: keySize, values: valueSize, index: 0, isWindow: false, stateBytes: 0 };
  return ROUTED.test(architecture) ? [...memories, router] : memories;
}

/** Returns the memory of each layer with cells in the context of the model's own draft head. Empty if the model does not draft. */
export function headMemories(architecture: string, layers: number, keys: Keys): LayerMemory[] {
  const count = keys.number('nextn_predict_layers') ?? 0;
  if (count === 0) return [];
  if (!isApartLater(architecture, keys)) {
    if (HEADS_APART_LATER.test(architecture)) return layerMemories(architecture, layers, keys);
    if (!HEADS_ALONE.test(architecture)) return [];
  }
  return memoriesOf(architecture, layers, keys, true).slice(layers - count);
}

/** Returns what the layers of an assistant read of each token in the cache of its model. Empty for other models, which have their own. */
export function borrowedMemories(architecture: string, layers: number, keys: Keys): LayerMemory[] {
  return architecture === ASSISTANT ? memoriesOf(architecture, layers, keys, true) : [];
}

function isApartLater(architecture: string, { isEngineSince }: Keys): boolean {
  return HEADS_APART_LATER.test(architecture) && isEngineSince('0.5.0');
}

function seesWindow(architecture: string, { number, list }: Keys): (layer: number) => boolean {
  const flags = list('attention.sliding_window_pattern');
  if (flags) return (layer) => flags[layer] === 1;
  const { period: usual, isFirst } = WINDOWS[architecture]!;
  const period = number('attention.sliding_window_pattern') ?? usual;
  return (layer) => period === 0 || (isFirst ? layer % period !== 0 : layer % period < period - 1);
}

function statesOf(architecture: string, { number, list }: Keys): (layer: number, kvHeads: number) => boolean {
  const usual = INTERVALS[architecture];
  if (usual === undefined) {
    const isAny = STATES_ONLY.test(architecture) || STATES_BESIDE.test(architecture);
    return (_, kvHeads) => isAny || (kvHeads === 0 && STATES_BY_HEADS.test(architecture));
  }
  const flags = list('attention.recurrent_layers');
  const interval = number('full_attention_interval') ?? usual;
  return (layer) => (flags ? flags[layer] === 1 : (layer + 1) % interval !== 0);
}

/** Returns the numbers per token that each layer's indexer keeps: one head's key, for MiniMax-M3 also a value that is never used. */
function indexNumbers(
  architecture: string,
  valueSize: number,
  { number, list }: Keys,
): (layer: number) => number {
  if (!INDEXED.test(architecture) || !number('attention.indexer.top_k')) return () => 0;
  const size = number('attention.indexer.key_length') ?? 0;
  if (architecture === 'minimax-m3') {
    const dense = number('leading_dense_block_count') ?? 0;
    return (layer) => (layer < dense ? 0 : size + valueSize);
  }
  const flags = list('attention.indexer.types');
  const isSparse =
    architecture === 'glm-dsa' && (number('context_length') ?? 0) >= GLM_DSA_SPARSE_CONTEXT && !flags;
  return (layer) => ((flags ? flags[layer] === 1 : !isSparse || layer < 2 || layer % 4 === 2) ? size : 0);
}

/** Returns the number of 32-bit numbers in the state of one layer: the last inputs of a convolution or shift, and the recurrent memory. */
function stateNumbers(architecture: string, heads: number, headSize: number, number: Keys['number']): number {
  const width = number('embedding_length') ?? 0;
  const wkv = number('wkv.head_size') ?? 0;
  if (wkv > 0) return width * ((number('token_shift_count') ?? 2) + wkv);
  const shortConvolution = number('shortconv.l_cache') ?? 0;
  if (shortConvolution > 0) return width * (shortConvolution - 1);
  const kernel = number('ssm.conv_kernel') ?? 0;
  const kda = number('kda.head_dim') ?? 0;
  if (kda > 0) return heads * kda * (3 * ((kernel || 4) - 1) + kda);
  if (architecture === 'minimax-01') return heads * headSize ** 2;
  const inner = number('ssm.inner_size') ?? 0;
  const size = number('ssm.state_size') ?? 0;
  const groups = STATES_UNGROUPED.test(architecture) ? 0 : (number('ssm.group_count') ?? 0);
  return Math.max(0, kernel - 1) * (inner + 2 * groups * size) + size * inner;
}
