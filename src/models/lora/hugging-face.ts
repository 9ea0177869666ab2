/** Names of a GGUF model's weights -> those of the same model of Hugging Face, with the row order and offsets there. */
import { errorAt } from '../../errors.ts';
import type { BaseModel } from './check-adapter.ts';
import { OWN_PATHS, PATHS } from './peft-adapter.ts';
import { hasPairedRows, type RowFacts } from './row-order.ts';

/** A weight of a model, and how it is converted. */
export type HuggingFaceTensor = {
  readonly from: string; // in the GGUF file
  readonly name: string;
  readonly shape: readonly number[]; // the slowest dimension first
  /** Number of heads whose rows are converted from pairs to halves. 0: rows stay in order. */
  readonly pairedHeads: number;
  /** Offset that is added to every number. */
  readonly offset: number;
};

type ModelFacts = Omit<RowFacts, 'deltaNet'> & Pick<BaseModel, 'tensors'>;

const PLAIN = new Set(['llama', 'qwen2', 'qwen3', 'smollm3', 'granite', 'phi3']);
/** Architectures whose GGUF files store the norm as 1 + weight, while Hugging Face's models store the weight. */
const GEMMA = new Set(['gemma2', 'gemma3']);

const WHOLE: Readonly<Record<string, string>> = {
  token_embd: 'model.embed_tokens',
  output_norm: 'model.norm',
  output: 'lm_head',
};
const IN_LAYER: Readonly<Record<string, string>> = {
  attn_norm: 'input_layernorm',
  ffn_norm: 'post_attention_layernorm',
  ...PATHS,
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
};
const IN_GEMMA: Readonly<Record<string, string>> = {
  post_attention_norm: 'post_attention_layernorm',
  ffn_norm: 'pre_feedforward_layernorm',
  post_ffw_norm: 'post_feedforward_layernorm',
};
/** Weights that Hugging Face's models compute from the configuration. */
const LEFT_OUT = new Set(['rope_freqs.weight']);

/**
 * Returns every weight of a model.
 * @throws OnpolicyError `UNSUPPORTED` for architectures and weights whose names are not known
 */
export function toHuggingFace(facts: ModelFacts): HuggingFaceTensor[] {
  const { architecture, tensors } = facts;
  if (!PLAIN.has(architecture) && !GEMMA.has(architecture))
    fail(`expected one of the architectures ${[...PLAIN, ...GEMMA].join(', ')}, got ${architecture}`);
  return Object.entries(tensors)
    .filter(([from]) => !LEFT_OUT.has(from))
    .map(([from, sizes]) => {
      const [, layer, kind = '', part = ''] = /^(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)$/.exec(from) ?? [];
      const path = layer === undefined ? WHOLE[kind] : pathOf(kind, architecture);
      const [width = 1, rows = 1, depth = 1] = sizes;
      if (path === undefined || depth > 1) return fail(`the weight ${from} has no name there`);
      const heads = pairedHeads(kind, facts);
      if (heads > 0 && part === 'bias') return fail(`the order of ${from} is not known`);
      return {
        from,
        name: `${layer === undefined ? path : `model.layers.${layer}.${path}`}.${part}`,
        shape: rows === 1 ? [width] : [rows, width],
        pairedHeads: heads,
        offset: GEMMA.has(architecture) && kind.endsWith('norm') ? -1 : 0,
      };
    });
}

function pathOf(kind: string, architecture: string): string | undefined {
  const own = GEMMA.has(architecture) ? IN_GEMMA : OWN_PATHS[architecture];
  return own?.[kind] ?? IN_LAYER[kind];
}

function pairedHeads(kind: string, { architecture, headCount, kvHeadCount }: ModelFacts): number {
  if (!hasPairedRows(architecture)) return 0;
  if (kind === 'attn_q') return headCount;
  return kind === 'attn_k' ? kvHeadCount : 0;
}

function fail(message: string): never {
  throw errorAt('format', 'UNSUPPORTED', `no safetensors file is written: ${message}`);
}
