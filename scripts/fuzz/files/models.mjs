// The name of an architecture -> the bytes of a tiny random model of it, as a GGUF file.
import { decode, encode } from './gguf.mjs';
import { randomFrom } from './random.mjs';
import { f32, flag, floats, numbers, text, u32 } from './values.mjs';
import { VOCABULARIES } from './vocabularies.mjs';

const SIZES = {
  layers: 2,
  width: 64,
  heads: 4,
  kvHeads: 2,
  head: 16,
  hidden: 96,
  expertCount: 4,
  usedExperts: 2,
  /** Sizes of recurrent layers. */
  state: { inner: 128, state: 16, kernel: 4, groups: 2, ranks: 8 },
};
const TEMPLATE = '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:';

/** By name: metadata below it, tensors of the file and of its layers. */
function architectures({ layers, width, heads, kvHeads, head, hidden, expertCount, usedExperts, state }) {
  const attention = {
    'attention.head_count': u32(heads),
    'attention.head_count_kv': u32(kvHeads),
    'rope.dimension_count': u32(head),
    'rope.freq_base': f32(1e4),
  };
  const headSizes = { 'attention.key_length': u32(head), 'attention.value_length': u32(head) };
  const rms = { 'attention.layer_norm_rms_epsilon': f32(1e-6) };
  const dense = { feed_forward_length: u32(hidden) };

  const attentionTensors = {
    'attn_q.weight': [width, heads * head],
    'attn_k.weight': [width, kvHeads * head],
    'attn_v.weight': [width, kvHeads * head],
    'attn_output.weight': [heads * head, width],
  };
  const headNorms = { 'attn_q_norm.weight': [head], 'attn_k_norm.weight': [head] };
  const norms = { 'attn_norm.weight': [width], 'ffn_norm.weight': [width] };
  const feedForward = {
    'ffn_gate.weight': [width, hidden],
    'ffn_up.weight': [width, hidden],
    'ffn_down.weight': [hidden, width],
  };
  const experts = {
    'ffn_gate_inp.weight': [width, expertCount],
    'ffn_gate_exps.weight': [width, hidden, expertCount],
    'ffn_up_exps.weight': [width, hidden, expertCount],
    'ffn_down_exps.weight': [hidden, width, expertCount],
  };
  const withBias = (name, from, to) => ({ [`${name}.weight`]: [from, to], [`${name}.bias`]: [to] });
  const normWithBias = (name) => ({ [`${name}.weight`]: [width], [`${name}.bias`]: [width] });

  const ssm = {
    'ssm.conv_kernel': u32(state.kernel),
    'ssm.inner_size': u32(state.inner),
    'ssm.state_size': u32(state.state),
    'ssm.time_step_rank': u32(state.ranks),
    'ssm.group_count': u32(state.groups),
  };
  const delta = state.state * state.ranks; // of values of gated delta nets

  return {
    llama: {
      vocabulary: 'spm',
      metadata: { ...attention, ...rms, ...dense },
      layer: () => ({ ...norms, ...attentionTensors, ...feedForward }),
    },
    qwen3: {
      vocabulary: 'bpe',
      metadata: { ...attention, ...headSizes, ...rms, ...dense },
      layer: () => ({ ...norms, ...headNorms, ...attentionTensors, ...feedForward }),
    },
    gemma3: {
      vocabulary: 'spm',
      isTied: true,
      metadata: { ...attention, ...headSizes, ...rms, ...dense, 'attention.sliding_window': u32(32) },
      layer: () => ({
        ...norms,
        ...headNorms,
        'post_attention_norm.weight': [width],
        'post_ffw_norm.weight': [width],
        ...attentionTensors,
        ...feedForward,
      }),
    },
    qwen3moe: {
      vocabulary: 'bpe',
      metadata: {
        ...attention,
        ...headSizes,
        ...rms,
        ...dense,
        expert_count: u32(expertCount),
        expert_used_count: u32(usedExperts),
        expert_feed_forward_length: u32(hidden),
      },
      layer: () => ({ ...norms, ...headNorms, ...attentionTensors, ...experts }),
    },
    lfm2: {
      vocabulary: 'bpe',
      norm: 'token_embd_norm',
      isTied: true,
      metadata: {
        ...attention,
        ...rms,
        ...dense,
        'attention.head_count_kv': numbers(
          Array.from({ length: layers }, (_, i) => (i % 2 === 1 ? kvHeads : 0)),
        ),
        'shortconv.l_cache': u32(3),
      },
      layer: (i) => ({
        ...norms,
        ...feedForward,
        ...(i % 2 === 1
          ? { ...headNorms, ...attentionTensors }
          : {
              'shortconv.conv.weight': [3, width],
              'shortconv.in_proj.weight': [width, 3 * width],
              'shortconv.out_proj.weight': [width, width],
            }),
      }),
    },
    mamba2: {
      vocabulary: 'bpe',
      metadata: { ...rms, ...ssm, 'attention.head_count': u32(0), feed_forward_length: u32(0) },
      layer: () => {
        const mixed = state.inner + 2 * state.groups * state.state;
        return {
          'attn_norm.weight': [width],
          'ssm_in.weight': [width, state.inner + mixed + state.ranks],
          'ssm_conv1d.weight': [state.kernel, mixed],
          'ssm_conv1d.bias': [mixed],
          'ssm_dt.bias': [state.ranks],
          ssm_a: [1, state.ranks],
          ssm_d: [1, state.ranks],
          'ssm_norm.weight': [Math.ceil(state.inner / state.groups), state.groups],
          'ssm_out.weight': [state.inner, width],
        };
      },
    },
    qwen35: {
      vocabulary: 'bpe',
      metadata: {
        ...attention,
        ...headSizes,
        ...rms,
        ...dense,
        ...ssm,
        full_attention_interval: u32(2),
        'rope.dimension_sections': numbers([4, 2, 2, 0]),
      },
      layer: (i) => ({
        'attn_norm.weight': [width],
        'post_attention_norm.weight': [width],
        ...feedForward,
        ...(i % 2 === 1
          ? { ...headNorms, ...attentionTensors, 'attn_q.weight': [width, 2 * heads * head] }
          : {
              'attn_qkv.weight': [width, 2 * state.state * state.groups + delta],
              'attn_gate.weight': [width, delta],
              'ssm_conv1d.weight': [state.kernel, 2 * state.state * state.groups + delta],
              'ssm_dt.bias': [state.ranks],
              ssm_a: [state.ranks],
              'ssm_beta.weight': [width, state.ranks],
              'ssm_alpha.weight': [width, state.ranks],
              'ssm_norm.weight': [state.state],
              'ssm_out.weight': [delta, width],
            }),
      }),
    },
    bert: {
      vocabulary: 'wpm',
      hasNoOutput: true,
      metadata: {
        'attention.head_count': u32(heads),
        ...dense,
        'attention.layer_norm_epsilon': f32(1e-12),
        'attention.causal': flag(false),
        pooling_type: u32(1),
      },
      tensors: {
        'position_embd.weight': [width, 128],
        'token_types.weight': [width, 2],
        ...normWithBias('token_embd_norm'),
      },
      layer: () => ({
        ...Object.assign(
          {},
          ...['attn_q', 'attn_k', 'attn_v', 'attn_output'].map((name) => withBias(name, width, width)),
        ),
        ...normWithBias('attn_output_norm'),
        ...withBias('ffn_up', width, hidden),
        ...withBias('ffn_down', hidden, width),
        ...normWithBias('layer_output_norm'),
      }),
    },
  };
}

/** Names of tiny models: an architecture, and its vocabulary where that is another one. */
export const MODEL_NAMES = [...Object.keys(architectures(SIZES)), 'llama/bpe', 'llama/unigram'];

/** The parts of a model whose sizes are drawn: they agree with each other, and need not be those that the engine computes with. */
export function oddModel(name, random) {
  const heads = random.pick([1, 2, 3, 4, 6]);
  const count = random.pick([1, 2, 3, 4, 7]);
  const isBlocks = random.chance(0.3);
  return decode(
    tinyModel(name, {
      layers: random.pick([1, 2, 3]),
      width: isBlocks ? random.pick([32, 64, 256]) : random.pick([1, 2, 8, 15, 16, 33, 48, 64, 96]),
      heads,
      kvHeads: random.pick([1, 2, 3, heads, heads, 0]),
      head: random.pick([1, 2, 3, 4, 8, 15, 16, 24, 32, 64]),
      hidden: isBlocks ? 96 : random.pick([1, 2, 7, 32, 96]),
      expertCount: count,
      usedExperts: random.pick([1, count]),
      state: {
        inner: random.pick([1, 16, 24, 64, 128]),
        state: random.pick([1, 4, 15, 16]),
        kernel: random.pick([1, 2, 4, 5]),
        groups: random.pick([1, 2, 3]),
        ranks: random.pick([1, 2, 3, 8]),
      },
    }),
  );
}

/** The file's bytes. */
export function tinyModel(name, sizes = SIZES) {
  const { width, layers } = sizes;
  const [architecture, other] = name.split('/');
  const model = architectures(sizes)[architecture];
  const vocabulary = VOCABULARIES[other ?? model.vocabulary]();
  const size = vocabulary.tokens.items.length;
  const random = randomFrom(7);
  const metadata = {
    'general.architecture': text(architecture),
    'general.name': text('tiny'),
    ...named(architecture, {
      context_length: u32(128),
      embedding_length: u32(width),
      block_count: u32(layers),
      vocab_size: u32(size),
      ...model.metadata,
    }),
    ...named('tokenizer.ggml', vocabulary),
    'tokenizer.chat_template': text(TEMPLATE),
  };
  const shapes = {
    'token_embd.weight': [width, size],
    ...(model.hasNoOutput ? {} : { [`${model.norm ?? 'output_norm'}.weight`]: [width] }),
    ...(model.isTied || model.hasNoOutput ? {} : { 'output.weight': [width, size] }),
    ...model.tensors,
  };
  for (let i = 0; i < layers; i++) Object.assign(shapes, named(`blk.${i}`, model.layer(i)));
  const tensors = Object.entries(shapes).map(([tensor, shape]) => {
    const count = shape.reduce((product, length) => product * length, 1);
    const isNorm = tensor.endsWith('norm.weight');
    const values = Array.from({ length: count }, () => (isNorm ? 1 : 0) + 0.1 * random.normal());
    return { name: tensor, dims: shape.map(BigInt), type: 0, data: floats(values) };
  });
  const keys = Object.entries(metadata).map(([key, value]) => ({ name: key, ...value }));
  return encode({ keys, tensors, alignment: 32 });
}

function named(prefix, entries) {
  return Object.fromEntries(Object.entries(entries).map(([key, value]) => [`${prefix}.${key}`, value]));
}
