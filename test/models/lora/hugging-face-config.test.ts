/** GGUF metadata -> config.json, by family. */
import { describe, expect, it } from 'vitest';
import { huggingFaceConfig } from '../../../src/models/lora/index.ts';

const SIZES = {
  embedding_length: 64,
  feed_forward_length: 96,
  block_count: 2,
  context_length: 512,
  'attention.head_count': 4,
  'attention.head_count_kv': 2,
  'attention.layer_norm_rms_epsilon': 1e-6,
  'rope.freq_base': 1e6,
};

function configOf(architecture: string, own: Record<string, string | number> = {}, names: string[] = []) {
  const entries = Object.entries({ ...SIZES, ...own }).map(([key, value]) => [
    `${architecture}.${key}`,
    value,
  ]);
  const metadata = {
    ...Object.fromEntries(entries),
    'general.architecture': architecture,
    'tokenizer.ggml.eos_token_id': 7,
  };
  const tensors = Object.fromEntries(['token_embd.weight', ...names].map((name) => [name, [64, 300, 1, 1]]));
  return huggingFaceConfig({ metadata, tensors }, 'bf16');
}

describe('config.json', () => {
  it('has the sizes of a model', () => {
    expect(configOf('qwen3', { 'attention.key_length': 32 })).toEqual({
      architectures: ['Qwen3ForCausalLM'],
      model_type: 'qwen3',
      vocab_size: 300,
      hidden_size: 64,
      intermediate_size: 96,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      head_dim: 32,
      hidden_act: 'silu',
      max_position_embeddings: 512,
      rms_norm_eps: 1e-6,
      rope_theta: 1e6,
      rope_scaling: null,
      tie_word_embeddings: true,
      bos_token_id: null,
      eos_token_id: 7,
      pad_token_id: null,
      torch_dtype: 'bfloat16',
      attention_bias: false,
    });
  });

  it.each<readonly [string, Record<string, string | number>, string[], Record<string, unknown>]>([
    ['llama', {}, ['output.weight'], { tie_word_embeddings: false, head_dim: 16, attention_bias: false }],
    ['llama', {}, ['blk.0.attn_q.bias'], { attention_bias: true }],
    ['qwen2', { 'rope.scaling.factor': 2 }, [], { rope_scaling: { rope_type: 'linear', factor: 2 } }],
    ['qwen2', { 'rope.scaling.factor': 2, 'rope.scaling.type': 'none' }, [], { rope_scaling: null }],
    [
      'qwen3',
      { 'rope.scaling.type': 'yarn', 'rope.scaling.factor': 4, 'rope.scaling.original_context_length': 128 },
      [],
      { rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 128 } },
    ],
    ['smollm3', {}, [], { model_type: 'smollm3', no_rope_layer_interval: 4 }],
    [
      'granite',
      { embedding_scale: 12, residual_scale: 0.22, logit_scale: 8, 'attention.scale': 0.015 },
      [],
      { embedding_multiplier: 12, residual_multiplier: 0.22, logits_scaling: 8, attention_multiplier: 0.015 },
    ],
    ['phi3', { 'rope.dimension_count': 8 }, [], { partial_rotary_factor: 0.5, sliding_window: null }],
    [
      'gemma2',
      { 'attention.sliding_window': 128 },
      [],
      { query_pre_attn_scalar: 16, attn_logit_softcapping: 50, sliding_window: 128 },
    ],
    [
      'gemma3',
      { block_count: 62, 'attention.key_length': 32 },
      [],
      { model_type: 'gemma3_text', query_pre_attn_scalar: 16, rope_local_base_freq: 10_000 },
    ],
  ])('of a %s model with %j', (architecture, own, names, expected) => {
    expect(configOf(architecture, own, names)).toMatchObject(expected);
  });

  it.each<readonly [string, Record<string, string>, string[], RegExp]>([
    ['mamba', {}, [], /architecture mamba/],
    ['llama', {}, ['rope_freqs.weight'], /rope scaling, of which the file has only the factors/],
    ['phi3', { 'rope.scaling.type': 'longrope' }, [], /rope scaling longrope/],
  ])('of a %s model that it cannot describe is refused', (architecture, own, names, message) => {
    expect(() => configOf(architecture, { 'rope.scaling.factor': 2, ...own }, names)).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED', message: expect.stringMatching(message) }),
    );
  });
});
