/** Adapter weights <-> the names, shapes and row order of Python's PEFT library. */

import type { AdapterWeights, LoraFactors } from '../../engine/native/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { expertOf, expertPath } from './expert-names.ts';
import { FUSED, fuse, fusedNames, rankOf, split } from './fused-layers.ts';
import { columnPlaces, inverse, pickColumns, pickRows, type RowFacts, rowPlaces } from './row-order.ts';
import type { FloatTensor, Safetensors } from './safetensors.ts';

/** Facts about the model that the conversion needs. */
export type PeftModel = RowFacts & {
  readonly layerCount: number;
  readonly rank: number;
  readonly alpha: number;
  /**
   * True for rank-stabilized adapters: the product of the factors is multiplied by alpha / sqrt(rank), https://arxiv.org/abs/2312.03732.
   */
  readonly rslora?: boolean;
};

/** Returns the alpha for which alpha / rank, the scale in GGUF files, equals the scale of the model's adapter. */
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
/** Paths that differ from {@link PATHS}, by architecture. */
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
/** The kinds of linear layers that can be trained, by their names in a GGUF file. */
export const LINEAR_MODULES: readonly string[] = [...NAMED].filter((kind) => kind !== FUSED.kind);
/** Hugging Face paths -> matrices of a layer in GGUF files. */
export const KINDS: Readonly<Record<string, string>> = Object.fromEntries(
  [PATHS, ...Object.values(OWN_PATHS)].flatMap(Object.entries).map(([kind, path]) => [path, kind]),
);

export function toPeft(weights: AdapterWeights, model: PeftModel): Safetensors {
  const tensors = Object.entries(fuse(weights, model)).flatMap(([name, factors]) =>
    matricesOf(name, factors, model).flatMap(({ path: end, a, b }): [string, FloatTensor][] => {
      const { layer, kind } = parseName(name, model);
      const rank = rankOf(name, model);
      const path = `base_model.model.model.layers.${layer}.${end}`;
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
    }),
  );
  return { tensors: Object.fromEntries(tensors), metadata: { format: 'pt' } };
}

/** Returns a module's factors with their path in a layer. Those of experts are split by expert. */
function matricesOf(
  name: string,
  { a, b, experts = 1 }: LoraFactors,
  model: PeftModel,
): { path: string; a: Float32Array; b: Float32Array }[] {
  const { kind } = parseName(name, model);
  if (experts === 1) return [{ path: pathOf(kind, model), a, b }];
  const part = (values: Float32Array, i: number) =>
    values.subarray((i * values.length) / experts, ((i + 1) * values.length) / experts);
  return Array.from({ length: experts }, (_, expert) => ({
    path: expertPath(kind, expert, model.architecture)!,
    a: part(a, expert),
    b: part(b, expert),
  }));
}

/** Converts the tensors of a PEFT file. Throws if a tensor is not a LoRA factor of a known layer. */
export function fromPeft({ tensors }: Safetensors, model: PeftModel): AdapterWeights {
  const found: Record<string, Found> = {};
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const match = /^base_model\.model\.model\.layers\.(\d+)\.(.+)\.lora_([AB])\.weight$/.exec(name);
    const ofExpert = match ? expertOf(match[2]!, model.architecture) : null;
    const kind = ofExpert?.kind ?? (match ? KINDS[match[2]!] : undefined);
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
    found[module] ??= { a: [], b: [], rank };
    found[module][isA ? 'a' : 'b'][ofExpert?.expert ?? 0] = factor;
  }
  const weights = Object.entries(found).flatMap(([name, given]): [string, LoraFactors][] => {
    const { rank } = given;
    const experts = Math.max(given.a.length, given.b.length);
    const [a, b] = [joined(given.a, experts), joined(given.b, experts)];
    if (!a || !b) return fail(`${name} lacks one of its factors`);
    if (experts > 1) return [[name, { a, b, experts }]];
    if (!name.endsWith(FUSED.kind)) return [[name, { a, b }]];
    const parts = split(name.slice(0, -FUSED.kind.length - 1), { a, b }, model, rank);
    return parts ? Object.entries(parts) : fail(`${name} is not an adapter of two layers side by side`);
  });
  return Object.fromEntries(weights);
}

/** Factors of a module as they are found: one, or one for each expert. */
type Found = {
  readonly a: (Float32Array | undefined)[];
  readonly b: (Float32Array | undefined)[];
  readonly rank: number;
};

/** Concatenates parts. Returns null if one is missing or has another size. */
function joined(parts: Found['a'], count: number): Float32Array | null {
  const size = parts[0]?.length ?? 0;
  if (count === 1) return parts[0] ?? null;
  const all = new Float32Array(count * size);
  for (let i = 0; i < count; i++) {
    const part = parts[i];
    if (part?.length !== size) return null;
    all.set(part, i * size);
  }
  return all;
}

export function peftConfig(weights: AdapterWeights, model: PeftModel): Record<string, unknown> {
  const names = fusedNames(Object.keys(weights), model).map((name) => parseName(name, model));
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
    target_modules: names.some(({ isOfExperts }) => isOfExperts)
      ? patternOf(names, model)
      : isEveryLayer
        ? kinds.map((kind) => pathOf(kind, model).split('.').at(-1)!)
        : names.map(({ layer, kind }) => `model.layers.${layer}.${pathOf(kind, model)}`),
  };
}

/** Returns one expression for all layers: a list with each expert's layers would have tens of thousands of entries. */
function patternOf(names: readonly ReturnType<typeof parseName>[], model: PeftModel): string {
  const ends = names.map(({ layer, kind }): [number, string] => {
    const path = expertPath(kind, '#', model.architecture) ?? pathOf(kind, model);
    return [layer, path.replaceAll('.', '\\.').replace('#', '\\d+')];
  });
  const paths = [...new Set(ends.map(([, path]) => path))].map((path) => {
    const layers = ends.filter(([, end]) => end === path).map(([layer]) => layer);
    return `(${layers.join('|')})\\.${path}`;
  });
  return `model\\.layers\\.(${paths.join('|')})`;
}

function pathOf(kind: string, { architecture }: PeftModel): string {
  return OWN_PATHS[architecture]?.[kind] ?? PATHS[kind]!;
}

function parseName(
  name: string,
  { architecture }: PeftModel,
): { layer: number; kind: string; isOfExperts: boolean } {
  const [, layer, kind = ''] = /^blk\.(\d+)\.([\w.]+)$/.exec(name) ?? [];
  const isOfExperts = expertPath(kind, 0, architecture) !== undefined;
  if (layer === undefined || !(isOfExperts || NAMED.has(kind))) return fail(`${name} has no name in PEFT`);
  return { layer: Number(layer), kind, isOfExperts };
}

function fail(message: string): never {
  throw new OnpolicyError('MODEL_INVALID', `not a readable adapter: ${message}`);
}
