/** Adapter weights <-> the names, shapes and row order of Python's PEFT library. */
import { OnpolicyError } from '../errors.ts';
import type { AdapterWeights, LoraFactors } from '../native/index.ts';
import { FUSED, fuse, fusedNames, rankOf, split } from './fused-layers.ts';
import { columnPlaces, type DeltaNetHeads, inverse, pickColumns, pickRows, rowPlaces } from './row-order.ts';
import type { FloatTensor, Safetensors } from './safetensors.ts';

/** What the conversion must know about the model. */
export type PeftModel = {
  readonly architecture: string;
  readonly layerCount: number;
  readonly headCount: number;
  readonly kvHeadCount: number;
  /** Heads of its gated delta nets; null: it has none. */
  readonly deltaNet?: DeltaNetHeads | null;
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
  attn_gate: 'linear_attn.in_proj_z',
  ssm_in: 'linear_attn.in_proj_qkvz',
  ssm_ba: 'linear_attn.in_proj_ba',
  ssm_beta: 'linear_attn.in_proj_b',
  ssm_alpha: 'linear_attn.in_proj_a',
  attn_output: 'self_attn.o_proj',
  ssm_out: 'linear_attn.out_proj',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
  ffn_gate_shexp: 'mlp.shared_expert.gate_proj',
  ffn_up_shexp: 'mlp.shared_expert.up_proj',
  ffn_down_shexp: 'mlp.shared_expert.down_proj',
};
const OWN_INPUT = { inp_gate: 'per_layer_input_gate', proj: 'per_layer_projection' };
/** Where they are other ones, by architecture. */
export const OWN_PATHS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  phi3: { ffn_up: 'mlp.gate_up_proj' },
  glm4: { ffn_up: 'mlp.gate_up_proj' },
  glm4moe: {
    ffn_gate_shexp: 'mlp.shared_experts.gate_proj',
    ffn_up_shexp: 'mlp.shared_experts.up_proj',
    ffn_down_shexp: 'mlp.shared_experts.down_proj',
  },
  qwen35: { attn_qkv: 'linear_attn.in_proj_qkv' },
  qwen35moe: { attn_qkv: 'linear_attn.in_proj_qkv' },
  gemma3n: { ...OWN_INPUT, laurel_l: 'laurel.linear_left', laurel_r: 'laurel.linear_right' },
  gemma4: OWN_INPUT,
  lfm2: {
    'shortconv.in_proj': 'conv.in_proj',
    'shortconv.out_proj': 'conv.out_proj',
    attn_output: 'self_attn.out_proj',
    ffn_gate: 'feed_forward.w1',
    ffn_up: 'feed_forward.w3',
    ffn_down: 'feed_forward.w2',
  },
};
const NAMED = new Set([PATHS, ...Object.values(OWN_PATHS)].flatMap(Object.keys));
/** The other way round. */
export const KINDS: Readonly<Record<string, string>> = Object.fromEntries(
  [PATHS, ...Object.values(OWN_PATHS)].flatMap(Object.entries).map(([kind, path]) => [path, kind]),
);

/** The tensors of `adapter_model.safetensors`. */
export function toPeft(weights: AdapterWeights, model: PeftModel): Safetensors {
  const tensors = Object.entries(fuse(weights, model)).flatMap(
    ([name, { a, b }]): [string, FloatTensor][] => {
      const { layer, kind } = parseName(name);
      const rank = rankOf(name, model);
      const path = `base_model.model.model.layers.${layer}.${pathOf(kind, model)}`;
      const [columns, rows] = [a.length / rank, b.length / rank];
      return [
        [
          `${path}.lora_A.weight`,
          { shape: [rank, columns], values: pickColumns(a, columnPlaces(kind, columns, model)) },
        ],
        [
          `${path}.lora_B.weight`,
          { shape: [rows, rank], values: pickRows(b, rank, rowPlaces(kind, rows, model)) },
        ],
      ];
    },
  );
  return { tensors: Object.fromEntries(tensors), metadata: { format: 'pt' } };
}

/** The other way round. Tensors that are no LoRA factor of a known layer are an error. */
export function fromPeft({ tensors }: Safetensors, model: PeftModel): AdapterWeights {
  const found: Record<string, { a?: Float32Array; b?: Float32Array; rank?: number }> = {};
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const match = /^base_model\.model\.model\.layers\.(\d+)\.(.+)\.lora_([AB])\.weight$/.exec(name);
    const kind = match ? KINDS[match[2]!] : undefined;
    if (!match || kind === undefined) return fail(`the tensor ${name} is not of a layer that can be trained`);
    const isA = match[3] === 'A';
    const [rank, size] = isA ? [shape[0], shape[1]!] : [shape[1], shape[0]!];
    const module = `blk.${match[1]}.${kind}`;
    if (rank !== model.rank && rank !== rankOf(module, model))
      return fail(`${name} has rank ${rank}; the trainer was opened with ${model.rank}`);
    const factor = isA
      ? pickColumns(values, inverse(columnPlaces(kind, size, model)))
      : pickRows(values, rank, inverse(rowPlaces(kind, size, model)));
    const other = found[module]?.rank ?? rank;
    if (rank !== other) return fail(`${name} has rank ${rank}, the other factor of its layer ${other}`);
    found[module] = { ...found[module], rank, [isA ? 'a' : 'b']: factor };
  }
  const weights = Object.entries(found).flatMap(([name, { a, b, rank }]): [string, LoraFactors][] => {
    if (!a || !b) return fail(`${name} lacks one of its factors`);
    if (!name.endsWith(FUSED.kind)) return [[name, { a, b }]];
    const parts = split(name.slice(0, -FUSED.kind.length - 1), { a, b }, model, rank!);
    return parts ? Object.entries(parts) : fail(`${name} is no adapter of two layers side by side`);
  });
  return Object.fromEntries(weights);
}

/** The content of `adapter_config.json`. */
export function peftConfig(weights: AdapterWeights, model: PeftModel): Record<string, unknown> {
  const names = fusedNames(Object.keys(weights), model).map(parseName);
  const isFused = names.some(({ kind }) => kind === FUSED.kind);
  const { rank, rslora = false } = model;
  const wide = rankOf(FUSED.kind, model);
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
    rank_pattern: isFused ? { [FUSED.path]: wide } : {},
    alpha_pattern: isFused
      ? { [FUSED.path]: model.alpha * (rslora ? Math.sqrt(wide / rank) : wide / rank) }
      : {},
    use_dora: false,
    use_rslora: rslora,
    target_modules: isEveryLayer
      ? kinds.map((kind) => pathOf(kind, model).split('.').at(-1)!)
      : names.map(({ layer, kind }) => `model.layers.${layer}.${pathOf(kind, model)}`),
  };
}

function pathOf(kind: string, { architecture }: PeftModel): string {
  return OWN_PATHS[architecture]?.[kind] ?? PATHS[kind]!;
}

function parseName(name: string): { layer: number; kind: string } {
  const match = /^blk\.(\d+)\.([\w.]+)$/.exec(name);
  if (!match || !NAMED.has(match[2]!)) return fail(`${name} has no name in PEFT`);
  return { layer: Number(match[1]), kind: match[2]! };
}

function fail(message: string): never {
  throw new OnpolicyError('MODEL_INVALID', `not a readable adapter: ${message}`);
}
