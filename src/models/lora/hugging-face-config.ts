/** The metadata of a GGUF model -> the `config.json` with which transformers opens its weights. */
import { OnpolicyError } from '../../errors.ts';

type ConfigFacts = {
  /** Texts, numbers, and flags as 0 and 1. */
  readonly metadata: Readonly<Record<string, string | number>>;
  /** Shapes by name: the fastest dimension first. */
  readonly tensors: Readonly<Record<string, readonly number[]>>;
};

/** Returns a number of the architecture's metadata. Returns undefined if the file does not have the key. */
type Read = (key: string) => number | undefined;
type Entries = Readonly<Record<string, unknown>>;

/** A class of transformers, and the entries of its configuration that others do not have. */
type Family = {
  readonly class: string;
  readonly modelType: string;
  readonly own?: (read: Read, facts: ConfigFacts) => Entries;
};

const DTYPES = { f32: 'float32', bf16: 'bfloat16', f16: 'float16' } as const;
/** Gemma models with this many layers scale attention by the hidden size divided by the number of heads. */
const LARGEST_GEMMAS = new Set([46, 62]);

const FAMILIES: Readonly<Record<string, Family>> = {
  llama: { class: 'LlamaForCausalLM', modelType: 'llama', own: (_, facts) => biasOf(facts) },
  qwen2: { class: 'Qwen2ForCausalLM', modelType: 'qwen2' },
  qwen3: { class: 'Qwen3ForCausalLM', modelType: 'qwen3', own: (_, facts) => biasOf(facts) },
  smollm3: {
    class: 'SmolLM3ForCausalLM',
    modelType: 'smollm3',
    own: (_, facts) => ({ ...biasOf(facts), no_rope_layer_interval: 4 }),
  },
  granite: {
    class: 'GraniteForCausalLM',
    modelType: 'granite',
    own: (read) => ({
      embedding_multiplier: read('embedding_scale') || 1,
      residual_multiplier: read('residual_scale') || 1,
      logits_scaling: read('logit_scale') || 1,
      attention_multiplier: read('attention.scale') || 1 / Math.sqrt(headSize(read)),
    }),
  },
  phi3: {
    class: 'Phi3ForCausalLM',
    modelType: 'phi3',
    own: (read) => ({
      partial_rotary_factor: (read('rope.dimension_count') ?? headSize(read)) / headSize(read),
      sliding_window: read('attention.sliding_window') || null,
      original_max_position_embeddings: read('context_length'),
    }),
  },
  gemma2: {
    class: 'Gemma2ForCausalLM',
    modelType: 'gemma2',
    own: (read) => ({
      ...gemma(read),
      attn_logit_softcapping: read('attn_logit_softcapping') ?? 50,
      final_logit_softcapping: read('final_logit_softcapping') ?? 30,
      sliding_window: read('attention.sliding_window') ?? 4096,
    }),
  },
  gemma3: {
    class: 'Gemma3ForCausalLM',
    modelType: 'gemma3_text',
    own: (read) => ({
      ...gemma(read),
      final_logit_softcapping: read('final_logit_softcapping') ?? null,
      rope_local_base_freq: read('rope.freq_base_swa') ?? 10_000,
      sliding_window: read('attention.sliding_window') ?? 4096,
    }),
  },
};

/**
 * Returns the configuration, for weights written as `type`.
 * @throws OnpolicyError `UNSUPPORTED` for architectures and rope scalings that it cannot describe
 */
export function huggingFaceConfig(facts: ConfigFacts, type: keyof typeof DTYPES): Entries {
  const { metadata, tensors } = facts;
  const architecture = String(metadata['general.architecture']);
  const family = FAMILIES[architecture];
  if (!family) return fail(`the architecture ${architecture}`);
  const read: Read = (key) => {
    const value = metadata[`${architecture}.${key}`];
    return typeof value === 'number' ? value : undefined;
  };
  const token = (name: string): number | null => {
    const id = metadata[`tokenizer.ggml.${name}_token_id`];
    return typeof id === 'number' ? id : null;
  };
  const heads = read('attention.head_count');
  return {
    architectures: [family.class],
    model_type: family.modelType,
    vocab_size: tensors['token_embd.weight']?.[1],
    hidden_size: read('embedding_length'),
    intermediate_size: read('feed_forward_length'),
    num_hidden_layers: read('block_count'),
    num_attention_heads: heads,
    num_key_value_heads: read('attention.head_count_kv') ?? heads,
    head_dim: headSize(read),
    hidden_act: 'silu',
    max_position_embeddings: read('context_length'),
    rms_norm_eps: read('attention.layer_norm_rms_epsilon') ?? 1e-5,
    rope_theta: read('rope.freq_base') ?? 10_000,
    rope_scaling: ropeScaling(facts, read),
    tie_word_embeddings: !('output.weight' in tensors),
    bos_token_id: token('bos'),
    eos_token_id: token('eos'),
    pad_token_id: token('padding'),
    torch_dtype: DTYPES[type],
    ...family.own?.(read, facts),
  };
}

function headSize(read: Read): number {
  return read('attention.key_length') ?? read('embedding_length')! / read('attention.head_count')!;
}

function biasOf({ tensors }: ConfigFacts): Entries {
  return { attention_bias: 'blk.0.attn_q.bias' in tensors };
}

function gemma(read: Read): Entries {
  const isLargest = LARGEST_GEMMAS.has(read('block_count')!);
  return {
    hidden_activation: 'gelu_pytorch_tanh',
    query_pre_attn_scalar: isLargest
      ? read('embedding_length')! / read('attention.head_count')!
      : headSize(read),
  };
}

function ropeScaling({ metadata, tensors }: ConfigFacts, read: Read): Entries | null {
  if ('rope_freqs.weight' in tensors) return fail('the rope scaling, of which the file has only the factors');
  const factor = read('rope.scaling.factor') ?? read('rope.scale_linear') ?? 0;
  const type = metadata[`${metadata['general.architecture']}.rope.scaling.type`] ?? 'linear';
  if (type === 'none' || factor === 0) return null;
  if (type === 'linear') return { rope_type: 'linear', factor };
  if (type !== 'yarn') return fail(`the rope scaling ${type}`);
  const original_max_position_embeddings = read('rope.scaling.original_context_length');
  return { rope_type: 'yarn', factor, original_max_position_embeddings };
}

function fail(what: string): never {
  const message = `to: config.json cannot express ${what}; a path that ends with .safetensors gets the weights alone`;
  throw new OnpolicyError('UNSUPPORTED', message, { param: 'to' });
}
