/** Adapter weights <-> the names, shapes and row order of Python's PEFT library. */
import { OnpolicyError } from '../errors.ts';
import type { AdapterWeights, LoraFactors } from '../native/index.ts';
import type { FloatTensor, Safetensors } from './safetensors.ts';

/** What the conversion must know about the model. */
export type PeftModel = {
  readonly architecture: string;
  readonly layerCount: number;
  readonly headCount: number;
  readonly kvHeadCount: number;
  readonly rank: number;
  readonly alpha: number;
  /** Rank-stabilized: the product of the factors is multiplied by alpha / sqrt(rank), https://arxiv.org/abs/2312.03732. */
  readonly rslora?: boolean;
};

/** The alpha with which alpha / rank, as GGUF files have it, is the scale of the model's adapter. */
export function plainAlpha({
  alpha,
  rank,
  rslora = false,
}: Pick<PeftModel, 'alpha' | 'rank' | 'rslora'>): number {
  return rslora ? alpha * Math.sqrt(rank) : alpha;
}

/** Matrices of a layer in GGUF files -> their paths in Hugging Face's models. */
export const PATHS: Readonly<Record<string, string>> = {
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_qkv: 'self_attn.qkv_proj',
  attn_output: 'self_attn.o_proj',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};
/** Where one matrix holds what others keep apart. */
export const FUSED_PATHS: Readonly<Record<string, string>> = { ffn_up: 'mlp.gate_up_proj' };
/** The other way round. */
export const KINDS: Readonly<Record<string, string>> = Object.fromEntries(
  [...Object.entries(PATHS), ...Object.entries(FUSED_PATHS)].map(([kind, path]) => [path, kind]),
);

/** Architectures whose GGUF files have the two numbers that rotate together side by side, in queries and keys. */
const PAIRED = new Set(['llama', 'mistral3', 'arcee', 'smollm3', 'granite', 'granitemoe', 'olmo', 'xverse']);

/** Whether rows of queries and keys are in another order in GGUF files than in Hugging Face's. */
export function hasPairedRows(architecture: string): boolean {
  return PAIRED.has(architecture);
}

/** The tensors of `adapter_model.safetensors`. */
export function toPeft(weights: AdapterWeights, model: PeftModel): Safetensors {
  const tensors = Object.entries(weights).flatMap(([name, { a, b }]): [string, FloatTensor][] => {
    const { layer, kind } = parseName(name);
    const path = `base_model.model.model.layers.${layer}.${pathOf(kind, model)}`;
    const heads = rotatedHeads(kind, model);
    return [
      [`${path}.lora_A.weight`, { shape: [model.rank, a.length / model.rank], values: a }],
      [
        `${path}.lora_B.weight`,
        {
          shape: [b.length / model.rank, model.rank],
          values: heads ? reorderRows(b, model.rank, heads, 'halves') : b,
        },
      ],
    ];
  });
  return { tensors: Object.fromEntries(tensors), metadata: { format: 'pt' } };
}

/** The other way round. Tensors that are no LoRA factor of a known layer are an error. */
export function fromPeft({ tensors }: Safetensors, model: PeftModel): AdapterWeights {
  const found: Record<string, { a?: Float32Array; b?: Float32Array }> = {};
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const match = /^base_model\.model\.model\.layers\.(\d+)\.(.+)\.lora_([AB])\.weight$/.exec(name);
    const kind = match ? KINDS[match[2]!] : undefined;
    if (!match || kind === undefined) return fail(`the tensor ${name} is not of a layer that can be trained`);
    const isA = match[3] === 'A';
    const rank = isA ? shape[0] : shape[1];
    if (rank !== model.rank)
      return fail(`${name} has rank ${rank}; the trainer was opened with ${model.rank}`);
    const heads = rotatedHeads(kind, model);
    const module = `blk.${match[1]}.${kind}`;
    const factor = !isA && heads ? reorderRows(values, model.rank, heads, 'pairs') : values;
    found[module] = { ...found[module], [isA ? 'a' : 'b']: factor };
  }
  const weights = Object.entries(found).map(([name, { a, b }]): [string, LoraFactors] => {
    if (!a || !b) return fail(`${name} lacks one of its factors`);
    return [name, { a, b }];
  });
  return Object.fromEntries(weights);
}

/** The content of `adapter_config.json`. */
export function peftConfig(weights: AdapterWeights, model: PeftModel): Record<string, unknown> {
  const names = Object.keys(weights).map(parseName);
  const kinds = [...new Set(names.map(({ kind }) => kind))];
  const isEveryLayer = names.length === kinds.length * model.layerCount;
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: null,
    r: model.rank,
    lora_alpha: model.alpha,
    lora_dropout: 0,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    modules_to_save: null,
    layers_to_transform: null,
    layers_pattern: null,
    rank_pattern: {},
    alpha_pattern: {},
    use_dora: false,
    use_rslora: model.rslora ?? false,
    target_modules: isEveryLayer
      ? kinds.map((kind) => pathOf(kind, model).split('.')[1]!)
      : names.map(({ layer, kind }) => `model.layers.${layer}.${pathOf(kind, model)}`),
  };
}

/** Layers whose output rows llama files hold in another order: how many heads they have; null for the others. */
function rotatedHeads(kind: string, model: PeftModel): number | null {
  if (!hasPairedRows(model.architecture)) return null;
  if (kind === 'attn_q') return model.headCount;
  return kind === 'attn_k' ? model.kvHeadCount : null;
}

/**
 * Within each head, a GGUF file of such an architecture lays the two numbers that rotate together side by side ("pairs"); Hugging Face
 * keeps the first of all pairs, then the second of all ("halves"). Returns the rows in the order `to`.
 */
export function reorderRows(
  b: Float32Array,
  rank: number,
  heads: number,
  to: 'pairs' | 'halves',
): Float32Array {
  const rows = b.length / rank;
  const size = rows / heads;
  const result = new Float32Array(b.length);
  for (let row = 0; row < rows; row++) {
    const head = Math.floor(row / size) * size;
    const inHead = row % size; // in pairs
    const other = head + (inHead % 2) * (size / 2) + Math.floor(inHead / 2); // in halves
    const [from, target] = to === 'halves' ? [row, other] : [other, row];
    result.set(b.subarray(from * rank, (from + 1) * rank), target * rank);
  }
  return result;
}

function pathOf(kind: string, { architecture }: PeftModel): string {
  return (architecture === 'phi3' ? FUSED_PATHS[kind] : undefined) ?? PATHS[kind]!;
}

function parseName(name: string): { layer: number; kind: string } {
  const match = /^blk\.(\d+)\.(\w+)$/.exec(name);
  if (!match || !PATHS[match[2]!]) return fail(`${name} has no name in PEFT`);
  return { layer: Number(match[1]), kind: match[2]! };
}

function fail(message: string): never {
  throw new OnpolicyError('MODEL_INVALID', `not a readable adapter: ${message}`);
}
