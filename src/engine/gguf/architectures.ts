/**
 * Facts of architectures that are llama.cpp's, and that its interface does not tell: a copy, to be compared with each release of it. For
 * every other fact the file's header and tensors are read, or the loaded model is asked.
 */

/** Defaults of an architecture for sliding windows that its file does not describe. */
type Windows = {
  /** Window size in tokens. Absent: the size in the file, or no window if the file has none. */
  readonly tokens?: number;
  /** One layer in this many sees everything: the last of each group, or the first with `isFirst`. 0: no layer does. */
  readonly period: number;
  readonly isFirst?: boolean;
};

/** Windows by architecture, as the engine has them. Other architectures have no sliding windows, even if their file says so. */
export const WINDOWS: Readonly<Record<string, Windows>> = {
  afmoe: { period: 4 },
  cohere2: { period: 4 },
  cohere2moe: { period: 4, isFirst: true },
  dots3note: { period: 1 },
  exaone4: { period: 4, tokens: 4096 },
  'exaone-moe': { period: 4, tokens: 128 },
  gemma2: { period: 2, tokens: 4096 },
  gemma3: { period: 6 },
  gemma3n: { period: 5 },
  gemma4: { period: 1 },
  'gemma4-assistant': { period: 1 },
  'gemma-embedding': { period: 6 },
  'gpt-oss': { period: 2 },
  granite_swa: { period: 1 },
  laguna: { period: 4, isFirst: true },
  lfm2: { period: 0 },
  llama4: { period: 4, tokens: 8192 },
  maple: { period: 1 },
  mellum: { period: 4 },
  mimo2: { period: 1 },
  'modern-bert': { period: 3, isFirst: true },
  'muse-glimmer': { period: 4 },
  olmo2: { period: 4 },
  plamo3: { period: 8 },
  smallthinker: { period: 4, isFirst: true },
  spark2_5: { period: 1 },
  step35: { period: 1 },
};
/** Number of layers of the largest EXAONE 4 model, the only one with windows. */
export const EXAONE4_LAYERS = 64;

/** Architectures whose layers all have a state: without attention, and beside attention. */
export const STATES_ONLY = /^(mamba2?|rwkv6|rwkv6qwen2|rwkv7|arwkv7)$/;
export const STATES_BESIDE = /^falcon-h1$/;
/** The last layer of each group of this size has attention; the others have a state. */
export const INTERVALS: Readonly<Record<string, number>> = {
  qwen3next: 4,
  qwen35: 4,
  qwen35moe: 4,
  qwen4exp: 4,
  'minimax-01': 8,
};
/** Architectures in which a layer without key heads has a state. */
export const STATES_BY_HEADS =
  /^(jamba|plamo2|granitehybrid|lfm2|lfm2moe|kimi-linear|kimi-k3|bailingmoe3|nemotron_h|nemotron_h_moe)$/;
/** Architectures whose layers have one part each: a layer has a state or attention only if it has no feed-forward part. */
export const ONE_PART_EACH = /^nemotron_h(_moe)?$/;
/**
 * Architectures whose multi-token prediction layers take no part in the cache of the other layers. For other architectures the engine
 * allocates it for them, too.
 */
export const HEADS_APART =
  /^(qwen3next|qwen35|qwen35moe|qwen4exp|minimax-01|step35|hy_v3|glm-dsa|mimo2|deepseek32)$/;
/**
 * Architectures whose prediction heads draft in a context with cells for these layers only; for others that context has cells for all
 * layers.
 */
export const HEADS_ALONE =
  /^(qwen3next|qwen35|qwen35moe|bailingmoe3|nemotron_h_moe|step35|hy_v3|glm-dsa|mimo2|deepseek32)$/;
/** Architectures whose prediction layers belong to the first two groups since llama.cpp 0.5.0, and to neither before. */
export const HEADS_APART_LATER = /^(cohere2moe|deepseek2|glm4moe)$/;
/** Architectures with an indexer, which selects the tokens that attention sees by keys in a cache of its own. */
export const INDEXED = /^(deepseek32|dots3note|glm-dsa|hy_v4|minimax-m3|qwen4exp)$/;
/**
 * Without a list in the file, models of GLM's such architecture with at least this context have indexers in the first three layers and in
 * every fourth behind these; the layers between them use the selection of the layer before. Others have one in each layer.
 */
export const GLM_DSA_SPARSE_CONTEXT = 2 ** 20;
/** Architectures that pass their layers several times, each time with cells of their own. */
export const LOOPED = /^nanbeige$/;
/** Architectures with a layer that has no weights, but one head's key and value, by which adapters inside the model are chosen. */
export const ROUTED = /^graniteswitch$/;
/** Architectures that multiply each row of a step by each other one in layers with a state. */
export const ROWS_BY_ROWS = /^minimax-01$/;
/** Number of the first layer of Gemma 3n that reuses the cache of earlier layers. */
export const GEMMA3N_CACHES = 20;
/** Architectures whose states' convolutions have no groups. */
export const STATES_UNGROUPED = /^(mamba|jamba)$/;
/** Architectures with a state that the engine can roll back by some tokens -> the version of llama.cpp since which it can. */
export const TAKES_BACK_SINCE: Readonly<Record<string, string>> = {
  bailingmoe3: '0',
  deepseek4: '0',
  'kimi-k3': '0.5.0',
  lfm2: '0',
  lfm2moe: '0',
  nemotron_h: '0',
  nemotron_h_moe: '0',
  qwen35: '0',
  qwen35moe: '0',
  qwen4exp: '0',
};
/** Architectures whose score heads end with a softmax. */
export const SOFTMAX_HEADS = /^qwen3(vl)?$/;

/** Layers with the first tensor need the others. The engine treats these as optional and computes with them all the same. */
export const COMPANIONS: readonly (readonly [
  architectures: RegExp,
  tensor: string,
  needed: readonly string[],
])[] = [
  [/^(qwen35|qwen35moe)$/, 'ssm_beta', ['attn_qkv', 'attn_gate']],
  [/^qwen3next$/, 'ssm_out', ['attn_qkv|ssm_in', 'attn_gate|ssm_in']],
  [/^(falcon-h1|granitehybrid|mamba2|nemotron_h|nemotron_h_moe)$/, 'ssm_conv1d', ['ssm_conv1d.bias']],
];
/** For these architectures, the size of heads must be a multiple of this: with other sizes the engine's kernels write out of bounds. */
export const WKV_UNIT = 64;
export const WKV_IN_UNITS = /^(rwkv7|arwkv7)$/;

/** Keys that the engine divides by, and the architectures for which it does. In files of others they may be zero. */
export const DIVISORS: Readonly<Record<string, RegExp>> = {
  'attention.output_group_count': /^deepseek4$/,
  conv_group_size: /^dflash$/,
  experts_per_group: /^grovemoe$/,
  full_attention_interval: /^(minimax-01|qwen3next|qwen35|qwen35moe)$/,
  interleave_moe_layer_step: /^ernie4_5-moe$/,
  'ssm.group_count':
    /^(falcon-h1|granitehybrid|mamba2|nemotron_h|nemotron_h_moe|qwen3next|qwen35|qwen35moe)$/,
  'wkv.head_size': /^(rwkv6|rwkv6qwen2|rwkv7|arwkv7)$/,
};
/** Architectures that rotate each section of a head by a different position. */
export const SECTIONED = /^(qwen2vl|qwen3vl|qwen3vlmoe|qwen35|qwen35moe|qwen4exp|qwen3tts|paddleocr)$/;
/** Architectures of which the engine cannot fuse attention: it hands on values without their heads. */
export const UNFUSED = /^plm$/;
/**
 * Architectures whose attention selects blocks of tokens, if it is fused and each sequence has cells of its own; else the engine lets it see
 * all tokens.
 */
export const BLOCKS = /^minimax-m3$/;
/** Architectures whose indexer takes blocks of tokens, which must belong to the same sequences: the engine leaves out other blocks. */
export const POOLED = /^qwen4exp$/;
/** Architectures that do not rotate heads by position. */
export const UNTURNED =
  /^(arwkv7|bert|bloom|gpt2|gptj|jais|jamba|jina-bert-v2|kimi-k3|kimi-linear|mamba2?|mpt|nemotron_h|nemotron_h_moe|refact|rwkv6|rwkv6qwen2|rwkv7|t5|t5encoder)$/;
/** Architectures for which one expert means that there are none. */
export const SINGLE_EXPERT = /^hunyuan(-|_)(vl|dense)$/;
