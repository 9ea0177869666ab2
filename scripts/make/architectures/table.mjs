// A name of an architecture and sizes -> the keys of its model's header, and the tensors that it has though the engine would do without.
// Architectures are those of the engine; a new one is a row here, as the engine names the tensors itself (tensors.mjs).

/** Sizes of a tiny model by its width: matrices of 256 columns fit every type of weights. */
export function tinySizes(width = 128) {
  return {
    width,
    layers: 4,
    heads: 4,
    kvHeads: 2,
    head: width / 4,
    hidden: 2 * width,
    experts: 8,
    usedExperts: 2,
    expertHidden: width,
    /** Sliding windows, in tokens. */
    window: 48,
    /** Recurrent layers: heads of values and of keys, numbers of each in the state, tokens of the convolution. */
    state: { ranks: 4, groups: 2, size: width / 4, kernel: 4 },
    context: 4096,
    /** One layer in this many has attention; the others have a state. */
    interval: 4,
  };
}

/** A number that the header holds as a float, whole or not. */
export const float = (value) => ({ float: value });

const EPSILON = float(1e-6);
const rms = { 'attention.layer_norm_rms_epsilon': EPSILON };
const mean = { 'attention.layer_norm_epsilon': EPSILON };
const SIGMOID = 2;
/** Biases of the projections of attention. */
const BIASES = ['attn_q.bias', 'attn_k.bias', 'attn_v.bias'];

/** Matrices of the feed-forward part without experts, of the experts, and of the expert that every token has. */
const DENSE = ['ffn_gate.weight', 'ffn_down.weight', 'ffn_up.weight'];
const ROUTED = ['ffn_gate_inp.weight', 'ffn_gate_exps.weight', 'ffn_down_exps.weight', 'ffn_up_exps.weight'];
const SHARED = ['ffn_gate_shexp.weight', 'ffn_down_shexp.weight', 'ffn_up_shexp.weight'];

/** Far from 1, so that one at a wrong place shows. */
const multipliers = (head) => ({
  embedding_scale: float(3),
  residual_scale: float(0.4),
  'attention.scale': float(1.5 / head),
  logit_scale: float(2),
});

/** Latent attention to a few tokens, which heads of an indexer select. */
const sparse = ({ latent, moe, shared, hidden, head }) => ({
  ...latent,
  ...rms,
  ...moe,
  ...shared,
  'attention.q_lora_rank': head,
  'attention.indexer.head_count': 16, // with few, many tokens have no score, and which of these are selected depends on their order
  'attention.indexer.key_length': 2 * head,
  'attention.indexer.top_k': 48,
  feed_forward_length: hidden,
  leading_dense_block_count: 1,
  expert_gating_func: SIGMOID,
});

/** Attention in some layers, in others a delta rule that gates each number; experts behind a dense layer. */
const deltaWithExperts = ({ latent, dense, moe, shared, kda, eachLayer, isAttending }) => ({
  ...latent,
  ...rms,
  ...dense,
  ...moe,
  ...shared,
  ...kda,
  'attention.head_count_kv': eachLayer((layer) => (isAttending(layer) ? 1 : 0)),
  leading_dense_block_count: 1,
  expert_gating_func: SIGMOID,
});
/** Gates of such a rule with a lower bound, beside attention with queries of low rank. */
const boundedGates = ({ head }) => ({ 'kda.gate_lower_bound': float(-5), 'attention.q_lora_rank': head });

/** Heads without a window are twice as large as those with one. */
const widerHeads = (head) => ({
  'attention.key_length': 2 * head,
  'attention.value_length': 2 * head,
  'attention.key_length_swa': head,
  'attention.value_length_swa': head,
  'rope.dimension_count': 2 * head,
  'rope.dimension_count_swa': head,
  'rope.freq_base_swa': float(5e3),
});

/** Keys that several architectures share, by sizes. */
function groups(sizes) {
  const { layers, heads, kvHeads, head, hidden, experts, usedExperts, expertHidden, state } = sizes;
  const eachLayer = (value) => Array.from({ length: layers }, (_, layer) => value(layer));
  const isAttending = (layer) => layer % sizes.interval === sizes.interval - 1;
  const rope = { 'rope.dimension_count': head, 'rope.freq_base': float(1e4) };
  const headSizes = { 'attention.key_length': head, 'attention.value_length': head };
  const attention = {
    'attention.head_count': heads,
    'attention.head_count_kv': kvHeads,
    ...headSizes,
    ...rope,
  };
  const dense = { feed_forward_length: hidden };
  const window = { 'attention.sliding_window': sizes.window };
  return {
    ...sizes,
    eachLayer,
    isAttending,
    headSizes,
    rope,
    attention,
    dense,
    window,
    /** Parts of a head that are rotated by places in time, height and width. */
    sections: { 'rope.dimension_sections': [head / 4, head / 8, head / 8, 0] },
    plain: { ...attention, ...rms, ...dense },
    normed: { ...attention, ...mean, ...dense },
    /** Attention in some layers only. */
    someAttention: {
      ...attention,
      'attention.head_count_kv': eachLayer((i) => (isAttending(i) ? kvHeads : 0)),
    },
    moe: { expert_count: experts, expert_used_count: usedExperts, expert_feed_forward_length: expertHidden },
    shared: { expert_shared_count: 1, expert_weights_scale: float(1.5), expert_weights_norm: true },
    ssm: {
      'ssm.conv_kernel': state.kernel,
      'ssm.inner_size': state.ranks * state.size,
      'ssm.state_size': state.size,
      'ssm.time_step_rank': state.ranks,
      'ssm.group_count': state.groups,
    },
    /** Mamba, of the first kind and of the second. */
    mamba: {
      'ssm.conv_kernel': state.kernel,
      'ssm.inner_size': 2 * sizes.width,
      'ssm.state_size': 16,
      'ssm.time_step_rank': 2 * state.ranks,
    },
    groupCount: { 'ssm.group_count': state.groups },
    /** Latent attention: one compressed head for all, of which queries see its own and rotated numbers. */
    latent: {
      'attention.head_count': heads,
      'attention.head_count_kv': 1,
      'attention.kv_lora_rank': 2 * head,
      'attention.key_length': 3 * head,
      'attention.value_length': 2 * head,
      'attention.key_length_mla': 2 * head,
      'attention.value_length_mla': head,
      'rope.dimension_count': head,
      'rope.freq_base': float(1e4),
    },
    kda: { 'kda.head_dim': state.size, 'ssm.conv_kernel': state.kernel },
    deltaNet: (layer) => (isAttending(layer) ? [] : ['attn_qkv.weight', 'attn_gate.weight']),
  };
}

/**
 * By name: `keys` below it; `optional`, names of a layer's tensors that the engine takes where they are; `global`, such names outside of
 * layers; `sized`, the sizes of a layer's tensors that the engine does not tell; `layers` where it needs another number; `vocabulary`,
 * `spm` where it is no byte-level one.
 */
const ARCHITECTURES = {
  // Plain transformers.
  llama: ({ plain }) => ({ keys: plain, global: ['output.weight'], vocabulary: 'spm' }),
  qwen2: ({ plain }) => ({ keys: plain, global: ['output.weight'], optional: () => BIASES }),
  qwen3: ({ plain }) => ({ keys: plain }),
  qwen3vl: ({ plain, sections }) => ({ keys: { ...plain, ...sections, n_deepstack_layers: 3 } }),
  mistral3: ({ plain }) => ({ keys: plain, global: ['output.weight'], vocabulary: 'spm' }),
  smollm3: ({ plain }) => ({ keys: plain }),
  phi3: ({ plain }) => ({ keys: plain, optional: () => ['attn_qkv.weight'] }),
  granite: ({ plain, head }) => ({
    keys: {
      ...plain,
      ...multipliers(head),
    },
  }),
  /** Behind a token that chooses it, all tokens are multiplied with an adapter inside the model, too. */
  graniteswitch: ({ plain, head }) => ({
    keys: {
      ...plain,
      ...multipliers(head),
      'adapters.count': 1,
      'adapters.lora_rank': head,
      'adapters.token_ids_activate': [105], // a letter of some prompts
      'adapters.token_ids_substitute': [97],
      'adapters.router_gain': float(15),
    },
  }),
  ernie4_5: ({ plain }) => ({ keys: plain }),
  'hunyuan-dense': ({ plain }) => ({
    keys: plain,
    optional: () => ['attn_q_norm.weight', 'attn_k_norm.weight'],
  }),
  seed_oss: ({ plain }) => ({ keys: plain, global: ['output.weight'], optional: () => BIASES }),
  jais2: ({ normed }) => ({ keys: normed, optional: () => BIASES }),
  /** Its layers are passed twice. */
  nanbeige: ({ plain }) => ({ keys: { ...plain, num_loops: 2 }, layers: 2 }),
  talkie: ({ plain }) => ({ keys: { ...plain, logit_scale: float(2) } }),
  maincoder: ({ plain }) => ({ keys: plain }),
  exaone: ({ plain }) => ({ keys: plain }),
  glm4: ({ plain, head }) => ({
    keys: { ...plain, 'rope.dimension_count': head / 2 },
    global: ['output.weight'],
    optional: () => BIASES,
  }),
  internlm2: ({ plain }) => ({ keys: plain }),
  minicpm: ({ plain }) => ({ keys: plain }),
  arcee: ({ plain }) => ({ keys: plain, global: ['output.weight'] }),
  apertus: ({ plain, eachLayer }) => ({
    keys: plain,
    bare: {
      'xielu.alpha_n': eachLayer(() => float(0.8)),
      'xielu.alpha_p': eachLayer(() => float(0.8)),
      'xielu.beta': eachLayer(() => float(0.5)),
      'xielu.eps': eachLayer(() => float(-1e-6)),
    },
  }),
  gemma: ({ plain }) => ({ keys: plain, vocabulary: 'spm' }),
  olmo: ({ normed }) => ({ keys: { ...normed, 'attention.clamp_kqv': float(4) } }),
  'command-r': ({ normed }) => ({ keys: { ...normed, logit_scale: float(0.5) } }),
  starcoder2: ({ normed }) => ({
    keys: normed,
    optional: () => [...BIASES, 'attn_output.bias', 'ffn_up.bias', 'ffn_down.bias'],
  }),
  stablelm: ({ normed, head }) => ({ keys: { ...normed, 'rope.dimension_count': head / 4 } }),
  nemotron: ({ normed, head }) => ({ keys: { ...normed, 'rope.dimension_count': head / 2 } }),
  phi2: ({ normed, head }) => ({ keys: { ...normed, 'rope.dimension_count': head / 2 } }),
  gptneox: ({ normed, head }) => ({
    keys: {
      ...normed,
      'attention.head_count_kv': 4,
      'rope.dimension_count': head / 4,
      use_parallel_residual: true,
    },
  }),
  /** Latent keys and values, uncompressed in the cache. */
  plm: ({ plain, heads, head }) => ({
    keys: {
      ...plain,
      'attention.head_count_kv': heads,
      'attention.key_length': 3 * head,
      'attention.value_length': 2 * head,
      'attention.kv_lora_rank': 2 * head,
    },
  }),
  gpt2: ({ normed }) => ({ keys: { ...normed, 'attention.head_count_kv': 4 } }),
  // Sliding windows.
  gemma2: ({ plain, window }) => ({
    keys: { ...plain, ...window, attn_logit_softcapping: float(50), final_logit_softcapping: float(30) },
    vocabulary: 'spm',
  }),
  gemma3: ({ plain, window }) => ({
    keys: { ...plain, ...window, 'rope.freq_base_swa': float(5e3) },
    vocabulary: 'spm',
    layers: 6,
  }),
  gemma3n: ({ plain, window }) => ({
    keys: {
      ...plain,
      ...window,
      embedding_length_per_layer_input: 256,
      'attention.shared_kv_layers': 2,
    },
    vocabulary: 'spm',
    layers: 22, // the engine shares caches of those behind the 20th
  }),
  gemma4: ({ plain, window, head, width, eachLayer }) => ({
    keys: {
      ...plain,
      ...window,
      ...widerHeads(head),
      'attention.sliding_window_pattern': eachLayer((layer) => layer % 3 !== 2),
      'attention.shared_kv_layers': 3,
      embedding_length_per_layer_input: width / 4,
      final_logit_softcapping: float(30),
    },
    optional: () => ['layer_output_scale.weight'],
    layers: 9,
    vocabulary: 'spm',
  }),
  cohere2: ({ normed, window }) => ({ keys: { ...normed, ...window, logit_scale: float(0.5) } }),
  olmo2: ({ plain, window }) => ({ keys: { ...plain, ...window } }),
  exaone4: ({ plain }) => ({ keys: plain }),
  plamo3: ({ plain, window }) => ({
    keys: { ...plain, ...window, 'attention.sliding_window_pattern': 2 },
  }),
  granite_swa: ({ plain, window, head, eachLayer }) => ({
    keys: {
      ...plain,
      ...window,
      ...multipliers(head),
      'attention.sliding_window_pattern': eachLayer((layer) => layer % 4 !== 3),
      'attention.rope_pattern': eachLayer((layer) => (layer % 4 !== 3 ? 1 : 0)),
    },
  }),
  'muse-glimmer': ({ plain, window }) => ({
    keys: {
      ...plain,
      ...window,
      'rope.freq_base_swa': float(5e3),
      logit_scale: float(0.5),
      final_logit_softcapping: float(30),
    },
  }),
  // Experts.
  qwen2moe: ({ plain, moe, expertHidden }) => ({
    keys: { ...plain, ...moe, expert_shared_feed_forward_length: expertHidden },
    optional: () => BIASES,
  }),
  qwen3moe: ({ plain, moe }) => ({ keys: { ...plain, ...moe } }),
  qwen3vlmoe: ({ plain, moe, sections }) => ({
    keys: { ...plain, ...moe, ...sections, n_deepstack_layers: 3 },
  }),
  granitemoe: ({ plain, moe, head, expertHidden }) => ({
    keys: {
      ...plain,
      ...moe,
      feed_forward_length: expertHidden,
      ...multipliers(head),
    },
    optional: () => ['ffn_gate_exps.weight'],
  }),
  olmoe: ({ plain, moe, heads }) => ({
    keys: { ...plain, ...moe, 'attention.head_count_kv': heads },
  }),
  'gpt-oss': ({ plain, moe, window }) => ({
    keys: {
      ...plain,
      ...moe,
      ...window,
      'rope.scaling.type': 'yarn',
      'rope.scaling.factor': float(32),
      'rope.scaling.original_context_length': 128,
    },
    optional: () => BIASES,
  }),
  llama4: ({ plain, moe }) => ({
    keys: { ...plain, ...moe, interleave_moe_layer_step: 2 },
  }),
  deepseek2: ({ latent, moe, shared, hidden, head }) => ({
    keys: {
      ...latent,
      ...rms,
      ...moe,
      ...shared,
      'attention.q_lora_rank': head,
      feed_forward_length: hidden,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
    optional: (layer) => (layer > 0 ? ['exp_probs_b.bias'] : []),
  }),
  deepseek: ({ plain, moe, heads }) => ({
    keys: {
      ...plain,
      ...moe,
      'attention.head_count_kv': heads,
      expert_shared_count: 1,
      expert_weights_scale: float(1),
      leading_dense_block_count: 1,
    },
  }),
  mistral4: ({ latent, moe, hidden, head }) => ({
    keys: {
      ...latent,
      ...rms,
      ...moe,
      expert_shared_count: 1,
      expert_weights_norm: true,
      'attention.q_lora_rank': head,
      'attention.temperature_scale': float(0.1),
      'attention.temperature_length': 64,
      feed_forward_length: hidden,
    },
  }),
  glm4moe: ({ plain, moe, shared, head }) => ({
    keys: {
      ...plain,
      ...moe,
      ...shared,
      'rope.dimension_count': head / 2,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
    optional: (layer) => [...BIASES, ...(layer > 0 ? ['exp_probs_b.bias'] : [])],
  }),
  'minimax-m2': ({ plain, moe, head }) => ({
    keys: { ...plain, ...moe, 'rope.dimension_count': head / 2, expert_gating_func: SIGMOID },
  }),
  phimoe: ({ plain, moe, expertHidden }) => ({
    keys: { ...plain, ...moe, feed_forward_length: expertHidden },
  }),
  'ernie4_5-moe': ({ plain, moe, expertHidden }) => ({
    keys: {
      ...plain,
      ...moe,
      expert_shared_count: 1,
      expert_shared_feed_forward_length: expertHidden,
      interleave_moe_layer_step: 1,
      leading_dense_block_count: 1,
    },
    optional: (layer) => (layer > 0 ? ['ffn_gate_exps.weight'] : []),
  }),
  'hunyuan-moe': ({ plain, moe, expertHidden }) => ({
    keys: { ...plain, ...moe, expert_shared_count: 1, expert_shared_feed_forward_length: expertHidden },
  }),
  bailingmoe: ({ plain, moe, shared }) => ({
    keys: { ...plain, ...moe, ...shared, leading_dense_block_count: 0 },
  }),
  bailingmoe2: ({ plain, moe, shared, expertHidden }) => ({
    keys: {
      ...plain,
      ...moe,
      ...shared,
      leading_dense_block_count: 1,
      expert_shared_feed_forward_length: expertHidden,
      expert_gating_func: SIGMOID,
    },
  }),
  dots1: ({ plain, moe, shared, heads }) => ({
    keys: {
      ...plain,
      'attention.head_count_kv': heads,
      ...moe,
      ...shared,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
  }),
  smallthinker: ({ plain, moe, expertHidden }) => ({
    keys: { ...plain, ...moe, feed_forward_length: expertHidden, expert_gating_func: SIGMOID },
  }),
  mellum: ({ plain, moe, window }) => ({
    keys: { ...plain, ...moe, ...window, 'rope.freq_base_swa': float(5e3) },
  }),
  afmoe: ({ plain, moe, shared, window }) => ({
    keys: {
      ...plain,
      ...moe,
      ...shared,
      ...window,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
  }),
  'exaone-moe': ({ plain, moe, shared, window }) => ({
    keys: {
      ...plain,
      ...moe,
      ...shared,
      ...window,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
    optional: (layer) => (layer > 0 ? ['exp_probs_b.bias'] : []),
  }),
  cohere2moe: ({ normed, moe, shared, window }) => ({
    keys: {
      ...normed,
      ...moe,
      ...shared,
      ...window,
      logit_scale: float(0.5),
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
    optional: (layer) => (layer > 0 ? ['ffn_gate_exps.weight', 'ffn_up_exps.weight'] : []),
  }),
  /** Layers with windows have more heads. */
  step35: ({ plain, moe, shared, window, heads, head, expertHidden, eachLayer }) => ({
    keys: {
      ...plain,
      ...moe,
      ...shared,
      ...window,
      'attention.head_count': eachLayer((layer) => (layer % 2 === 0 ? heads : heads + 2)),
      'attention.sliding_window_pattern': eachLayer((layer) => layer % 2 === 1),
      'rope.dimension_count_swa': head,
      'rope.freq_base_swa': float(5e3),
      expert_shared_feed_forward_length: expertHidden,
      swiglu_clamp_exp: eachLayer(() => float(1)),
      swiglu_clamp_shexp: eachLayer(() => float(1)),
    },
    optional: (layer) => [
      'attn_q_norm.weight',
      'attn_k_norm.weight',
      'attn_gate.weight',
      ...(layer === 0 ? DENSE : [...ROUTED, 'exp_probs_b.bias', ...SHARED]),
    ],
  }),
  /** Layers with windows have more heads of keys, and sinks. */
  mimo2: ({ plain, moe, window, head, kvHeads, eachLayer }) => ({
    keys: {
      ...plain,
      ...moe,
      ...window,
      'attention.key_length': 2 * head,
      'attention.head_count_kv': eachLayer((layer) => (layer % 2 === 0 ? 1 : kvHeads)),
      'attention.sliding_window_pattern': eachLayer((layer) => layer % 2 === 1),
      'attention.value_scale': float(0.7),
      'rope.dimension_count': head / 2,
      'rope.freq_base_swa': float(5e3),
      expert_gating_func: SIGMOID,
    },
    optional: (layer) => [
      ...(layer % 2 === 1 ? ['attn_sinks.weight'] : []),
      ...(layer === 0 ? DENSE : [...ROUTED, 'exp_probs_b.bias']),
    ],
  }),
  laguna: ({ plain, moe, shared, window, heads, head, width, expertHidden, eachLayer }) => ({
    keys: {
      ...plain,
      ...moe,
      ...shared,
      ...window,
      'attention.head_count': eachLayer((layer) => (layer % 4 === 0 ? heads : heads + 2)),
      'rope.dimension_count': head / 2,
      'rope.dimension_count_swa': head,
      'rope.freq_base_swa': float(5e3),
      expert_shared_feed_forward_length: expertHidden,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
    sized: (layer) => ({ 'attn_gate.weight': [width, layer % 4 === 0 ? heads : heads + 2] }),
  }),
  hy_v3: ({ plain, moe, shared, expertHidden }) => ({
    keys: { ...plain, ...moe, ...shared, expert_shared_feed_forward_length: expertHidden },
    optional: (layer) => (layer === 0 ? DENSE : [...ROUTED, 'exp_probs_b', ...SHARED]),
  }),
  grovemoe: ({ plain, moe, expertHidden }) => ({
    keys: {
      ...plain,
      ...moe,
      expert_chunk_feed_forward_length: expertHidden / 2,
      expert_group_scale: float(0.5),
      experts_per_group: 2,
    },
  }),
  // Attention to the tokens that an indexer selects.
  deepseek32: (sizes) => ({
    keys: { ...sparse(sizes), 'attention.layer_norm_epsilon': EPSILON },
    optional: (layer) => (layer > 0 ? ['exp_probs_b.bias'] : []),
  }),
  'glm-dsa': (sizes) => ({
    keys: { ...sparse(sizes), 'attention.layer_norm_epsilon': EPSILON },
    optional: (layer) => [
      'indexer.k_norm.weight',
      'indexer.k_norm.bias',
      'indexer.proj.weight',
      'indexer.attn_k.weight',
      'indexer.attn_q_b.weight',
      ...(layer > 0 ? ['exp_probs_b.bias'] : []),
    ],
  }),
  dots3note: (sizes) => ({
    keys: {
      ...sparse(sizes),
      ...sizes.window,
      'attention.layer_norm_epsilon': EPSILON,
      'attention.kv_lora_rank_swa': sizes.head,
      'attention.key_length_swa': 2 * sizes.head,
      'attention.value_length_swa': sizes.head,
      'attention.key_length_mla_swa': 2 * sizes.head,
      'attention.value_length_mla_swa': sizes.head,
      'attention.sliding_window_pattern': sizes.eachLayer((layer) => layer % 2 === 1),
      'attention.indexer.types': sizes.eachLayer((layer) => (layer % 2 === 1 ? 0 : 1)),
      'rope.freq_base_swa': float(5e3),
    },
  }),
  /** An indexer's head for each head of keys selects blocks of tokens. */
  'minimax-m3': ({ plain, moe, shared, head, kvHeads }) => ({
    keys: {
      ...plain,
      ...moe,
      ...shared,
      'rope.dimension_count': head / 2,
      'attention.indexer.head_count': kvHeads,
      'attention.indexer.key_length': head,
      'attention.indexer.top_k': 3, // blocks
      'attention.indexer.block_size': 16,
      'attention.indexer.local_blocks': 1,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
  }),
  // States beside attention, or in place of it.
  qwen35: ({ plain, ssm, interval, head, deltaNet }) => ({
    keys: {
      ...plain,
      ...ssm,
      full_attention_interval: interval,
      'rope.dimension_count': head / 2,
      'rope.dimension_sections': [head / 8, head / 16, head / 16, 0],
    },
    optional: deltaNet,
  }),
  qwen35moe: ({ plain, moe, ssm, interval, head, expertHidden, deltaNet }) => ({
    keys: {
      ...plain,
      ...moe,
      ...ssm,
      expert_shared_feed_forward_length: expertHidden,
      full_attention_interval: interval,
      'rope.dimension_count': head / 2,
      'rope.dimension_sections': [head / 8, head / 16, head / 16, 0],
    },
    optional: deltaNet,
  }),
  /** An indexer selects blocks of tokens; two residual streams. */
  qwen4exp: ({ plain, moe, ssm, interval, head, expertHidden, eachLayer }) => ({
    keys: {
      ...plain,
      ...moe,
      ...ssm,
      expert_shared_feed_forward_length: expertHidden,
      full_attention_interval: interval,
      'rope.dimension_count': head / 2,
      'rope.dimension_sections': [head / 8, head / 16, head / 16, 0],
      'hyper_connection.count': 2,
      'hyper_connection.low_rank': head,
      'attention.indexer.head_count': 16,
      'attention.indexer.key_length': 2 * head,
      'attention.indexer.top_k': 48,
      'attention.compress_ratios': eachLayer(() => 4),
    },
  }),
  qwen3next: ({ plain, moe, ssm, interval, head, expertHidden, deltaNet }) => ({
    keys: {
      ...plain,
      ...moe,
      ...ssm,
      expert_shared_feed_forward_length: expertHidden,
      full_attention_interval: interval,
      'rope.dimension_count': head / 2,
    },
    optional: deltaNet,
  }),
  lfm2: ({ someAttention, dense }) => ({
    keys: { ...someAttention, ...rms, ...dense, 'shortconv.l_cache': 3 },
  }),
  lfm2moe: ({ someAttention, dense, moe }) => ({
    keys: {
      ...someAttention,
      ...rms,
      ...dense,
      ...moe,
      'shortconv.l_cache': 3,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
    },
  }),
  'kimi-linear': (sizes) => ({
    keys: deltaWithExperts(sizes),
    optional: (layer) =>
      sizes.isAttending(layer)
        ? []
        : ['ssm_conv1d_q.weight', 'ssm_conv1d_k.weight', 'ssm_conv1d_v.weight', 'ssm_a'],
  }),
  bailingmoe3: (sizes) => ({
    keys: { ...deltaWithExperts(sizes), ...boundedGates(sizes) },
  }),
  'kimi-k3': (sizes) => ({
    keys: {
      ...deltaWithExperts(sizes),
      ...boundedGates(sizes),
      expert_latent_length: sizes.width / 2,
      'attn_res.block_size': 2,
      'activation.situ_beta': float(4),
      'activation.situ_linear_beta': float(4),
    },
    optional: (layer) => [
      ...(sizes.isAttending(layer) ? ['attn_q_a_norm.weight', 'attn_gate.weight'] : []),
      ...(layer > 0 ? [...SHARED, 'ffn_routed_norm.weight'] : []),
    ],
  }),
  'minimax-01': ({ plain, moe, interval, expertHidden }) => ({
    keys: {
      ...plain,
      ...moe,
      feed_forward_length: expertHidden,
      full_attention_interval: interval,
      residual_scale: float(0.7),
    },
    optional: () => ['ffn_gate_exps.weight'],
  }),
  nemotron_h: ({ attention, mamba, groupCount, hidden, kvHeads, eachLayer }) => ({
    keys: {
      ...attention,
      ...rms,
      ...mean,
      ...mamba,
      ...groupCount,
      'attention.head_count_kv': eachLayer((layer) => (layer % 3 === 1 ? kvHeads : 0)),
      feed_forward_length: eachLayer((layer) => (layer % 3 === 2 ? hidden : 0)),
    },
    optional: (layer) => (layer % 3 === 0 ? ['ssm_conv1d.bias'] : []),
    layers: 6,
  }),
  nemotron_h_moe: ({ attention, mamba, groupCount, moe, shared, kvHeads, expertHidden, eachLayer }) => ({
    keys: {
      ...attention,
      ...rms,
      ...mean,
      ...mamba,
      ...groupCount,
      ...moe,
      ...shared,
      'attention.head_count_kv': eachLayer((layer) => (layer % 3 === 1 ? kvHeads : 0)),
      feed_forward_length: eachLayer((layer) => (layer % 3 === 2 ? expertHidden : 0)),
      expert_shared_feed_forward_length: expertHidden,
    },
    optional: (layer) => (layer % 3 === 0 ? ['ssm_conv1d.bias'] : []),
    layers: 6,
  }),
  granitehybrid: ({ someAttention, dense, mamba, groupCount, head, isAttending }) => ({
    keys: { ...someAttention, ...rms, ...dense, ...mamba, ...groupCount, ...multipliers(head) },
    optional: (layer) => (isAttending(layer) ? [] : ['ssm_conv1d.bias']),
  }),
  'falcon-h1': ({ plain, mamba, groupCount }) => ({
    keys: { ...plain, ...mamba, ...groupCount },
    optional: () => ['ssm_conv1d.bias'],
  }),
  jamba: ({ someAttention, dense, moe, mamba }) => ({
    keys: { ...someAttention, ...rms, ...dense, ...moe, ...mamba },
  }),
  mamba: ({ mamba }) => ({ keys: { ...rms, ...mamba, 'attention.head_count': 0, feed_forward_length: 0 } }),
  mamba2: ({ mamba, groupCount }) => ({
    keys: { ...rms, ...mamba, ...groupCount, 'attention.head_count': 0, feed_forward_length: 0 },
  }),
  rwkv6: ({ head, hidden }) => ({
    keys: {
      ...mean,
      'attention.head_count': 0,
      feed_forward_length: hidden,
      'wkv.head_size': head,
      rescale_every_n_layers: 6,
      time_mix_extra_dim: 32,
      time_decay_extra_dim: 32,
    },
    optional: () => ['time_mix_lerp_fused.weight'],
  }),
  rwkv7: ({ hidden }) => ({
    keys: {
      ...mean,
      'attention.head_count': 0,
      feed_forward_length: hidden,
      'wkv.head_size': 64, // what its kernels in the engine take
      'attention.decay_lora_rank': 32,
      'attention.iclr_lora_rank': 32,
      'attention.value_residual_mix_lora_rank': 32,
      'attention.gate_lora_rank': 32,
    },
  }),
  // These architectures are in llama.cpp since 0.5.0.
  spark2_5: ({ plain, window, eachLayer }) => ({
    keys: {
      ...plain,
      ...window,
      'attention.sliding_window_pattern': eachLayer((layer) => layer % 2 === 0),
      'rope.freq_base_swa': float(5e3),
    },
  }),
  maple: ({ plain, moe, window, eachLayer }) => ({
    keys: {
      ...plain,
      ...moe,
      ...window,
      'attention.sliding_window_pattern': eachLayer((layer) => layer % 2 === 0),
      'rope.freq_base_swa': float(5e3),
      swiglu_clamp_exp: float(1),
    },
  }),
  /** Two stacks of two layers, which are passed in turn: layers of the cache are passes. */
  hrm_text: ({ plain }) => ({
    keys: {
      ...plain,
      embedding_scale: float(3),
      'hrm.layers_per_stack': 2,
      'hrm.h_cycles': 2,
      'hrm.l_cycles': 2,
    },
    layers: 12,
  }),
  hy_v4: ({ latent, moe, shared, hidden, head }) => ({
    keys: {
      ...latent,
      ...rms,
      ...moe,
      ...shared,
      'attention.q_lora_rank': head,
      feed_forward_length: hidden,
      leading_dense_block_count: 1,
      expert_gating_func: SIGMOID,
      'hyper_connection.count': 2,
      'hyper_connection.epsilon': EPSILON,
      'hyper_connection.magnitude': float(2),
    },
    optional: (layer) => (layer > 0 ? ['exp_probs_b.bias'] : []),
  }),
};

/** The model of an architecture with more layers, which predict the tokens after the next. */
const withHead =
  (architecture, heads = 1, toRow = ARCHITECTURES[architecture]) =>
  (sizes) => {
    const { keys, optional = () => [], ...row } = toRow(sizes);
    const trunk = sizes.layers - heads;
    const experts = architecture === 'qwen35moe' ? ['ffn_gate_exps', 'ffn_up_exps'] : []; // in one tensor or in two
    const head = ['attn_q', 'attn_k', 'attn_v', ...experts, 'nextn.eh_proj', 'nextn.shared_head_norm'];
    const biases = optional(0).filter((name) => BIASES.includes(name));
    const isDense = (name) => /^ffn_(gate|down|up)\.weight$/.test(name);
    const more = (layer) =>
      layer >= trunk
        ? [...head.map((name) => `${name}.weight`), ...biases, ...optional(layer).filter(isDense)]
        : optional(layer);
    return {
      ...row,
      architecture,
      layers: tinySizes().layers + heads,
      keys: { ...keys, nextn_predict_layers: heads },
      optional: (layer) => [...(layer === 0 ? ['attn_norm.weight'] : []), ...more(layer)], // without it there is only the head
    };
  };

const eagle3 = (plain, width) => ({
  architecture: 'eagle3',
  keys: { ...plain, target_layers: [0, 1, 2], target_hidden_size: width },
  layers: 1,
});

/** Models that do not answer, or not by themselves, with a part that drafts, or of another kind of their architecture. */
const FURTHER = {
  /** Without shared caches: rounding of so few layers is small. */
  'gemma3n-short': (sizes) => ({ ...ARCHITECTURES.gemma3n(sizes), architecture: 'gemma3n', layers: 2 }),
  /** With experts beside the feed-forward part, and no inputs of each layer's own. */
  'gemma4-moe': (sizes) => {
    const { keys, ...row } = ARCHITECTURES.gemma4(sizes);
    return {
      ...row,
      architecture: 'gemma4',
      keys: { ...keys, ...sizes.moe, embedding_length_per_layer_input: 0, 'attention.shared_kv_layers': 0 },
      optional: () => [
        'layer_output_scale.weight',
        'ffn_gate_inp.weight',
        'ffn_gate_up_exps.weight',
        'ffn_down_exps.scale',
      ],
      layers: 3,
    };
  },
  'qwen35-mtp': withHead('qwen35'),
  'qwen35moe-mtp': withHead('qwen35moe'),
  'glm4moe-mtp': withHead('glm4moe'),
  /** With a head for each of the next two. */
  'hy_v3-mtp2': withHead('hy_v3', 2, ({ plain, moe }) => ({
    keys: { ...plain, ...moe },
    optional: () => ['ffn_gate.weight', 'ffn_down.weight', 'ffn_up.weight'],
  })),
  ...Object.fromEntries(['dream', 'llada'].map((name) => [name, ({ plain }) => ({ keys: plain })])),
  ...Object.fromEntries(
    ['llada-moe', 'rnd1'].map((name) => [name, ({ plain, moe }) => ({ keys: { ...plain, ...moe } })]),
  ),
  'gemma4-output': (sizes) => ({
    ...ARCHITECTURES.gemma4(sizes),
    architecture: 'gemma4',
    global: ['output.weight'],
  }),
  /** Reads the keys and values of `gemma4`. It has another width, as the engine wants. */
  'gemma4-assistant': ({ plain, window, head, width, layers, eachLayer }) => ({
    keys: {
      ...plain,
      ...window,
      ...widerHeads(head),
      'attention.sliding_window_pattern': eachLayer((layer) => layer !== layers - 1),
      embedding_length: 2 * width,
      embedding_length_out: width,
      nextn_predict_layers: layers,
    },
    layers: 2,
    vocabulary: 'spm',
  }),
  eagle3: ({ plain, width }) => eagle3(plain, width),
  /** The drafter with a separate output matrix, for a model that has one, too. */
  'eagle3-output': ({ plain, width }) => ({ ...eagle3(plain, width), global: ['output.weight'] }),
  'qwen3-output': (sizes) => ({
    ...ARCHITECTURES.qwen3(sizes),
    architecture: 'qwen3',
    global: ['output.weight'],
  }),
};

/** The engine multiplies their embeddings by the root of the width, or about that. */
const SCALED = /^(gemma\w*|afmoe|minicpm)$/;

/** Names of all architectures that answer. */
export const ARCHITECTURE_NAMES = Object.keys(ARCHITECTURES);

/** Architectures that older accepted releases of the engine do not know -> the version of llama.cpp that does. */
export const KNOWN_SINCE = { spark2_5: '0.5.0', maple: '0.5.0', hrm_text: '0.5.0', hy_v4: '0.5.0' };

/** Public models' sizes, some with fewer layers: what benches need. Vocabularies are named as llama.cpp's own tree has them. */
export const REAL_SHAPES = {
  'qwen3.5-0.8b': {
    architecture: 'qwen35',
    vocabulary: 'qwen35',
    sizes: {
      width: 1024,
      layers: 24,
      heads: 8,
      kvHeads: 2,
      head: 256,
      hidden: 3584,
      state: { ranks: 16, groups: 16, size: 128, kernel: 4 },
      context: 262_144,
    },
    keys: {
      'rope.dimension_count': 64,
      'rope.dimension_sections': [11, 11, 10, 0],
      'rope.freq_base': float(1e7),
    },
  },
  /** Four of its 40 layers. */
  'qwen3.5-35b-a3b-cut': {
    architecture: 'qwen35moe',
    vocabulary: 'qwen35',
    global: ['output.weight'],
    sizes: {
      width: 2048,
      layers: 4,
      heads: 16,
      kvHeads: 2,
      head: 256,
      hidden: 512,
      experts: 256,
      usedExperts: 8,
      expertHidden: 512,
      state: { ranks: 32, groups: 16, size: 128, kernel: 4 },
      context: 262_144,
    },
    keys: {
      'rope.dimension_count': 64,
      'rope.dimension_sections': [11, 11, 10, 0],
      'rope.freq_base': float(1e7),
    },
  },
  /** Four of its 24 layers, with another vocabulary. */
  'gpt-oss-20b-cut': {
    architecture: 'gpt-oss',
    vocabulary: 'qwen35',
    sizes: {
      width: 2880,
      layers: 4,
      heads: 64,
      kvHeads: 8,
      head: 64,
      hidden: 2880,
      experts: 32,
      usedExperts: 4,
      expertHidden: 2880,
      window: 128,
      context: 131_072,
    },
    keys: { 'rope.freq_base': float(150_000), 'rope.scaling.original_context_length': 4096 },
  },
};

/** Sizes of a tensor that the engine tells. */
const UNKNOWN = [1];

/** A model's description: its architecture, keys, the sizes of tensors that it has though the engine does not ask for them, its vocabulary. */
export function describe(name, width) {
  const real = REAL_SHAPES[name];
  const toRow = ARCHITECTURES[real?.architecture ?? name] ?? FURTHER[name];
  if (!toRow) {
    const names = [ARCHITECTURES, FURTHER, REAL_SHAPES].flatMap(Object.keys);
    throw new Error(`name: expected one of ${names.join(', ')}, got ${name}`);
  }
  const tiny = { ...tinySizes(width), ...real?.sizes };
  const layers = real?.sizes.layers ?? toRow(groups(tiny)).layers ?? tiny.layers;
  const sizes = { ...tiny, layers };
  const row = toRow(groups(sizes));
  const { keys, bare = {}, global = [], optional = () => [], sized = () => ({}), vocabulary = 'bpe' } = row;
  const eachTensor = (of) =>
    Array.from({ length: layers }, (_, layer) =>
      of(layer).map(([tensor, dims]) => [`blk.${layer}.${tensor}`, dims]),
    ).flat();
  const architecture = real?.architecture ?? row.architecture ?? name;
  const isScaled = SCALED.test(architecture);
  return {
    architecture,
    sizes,
    vocabulary: real?.vocabulary ?? vocabulary,
    isReal: Boolean(real),
    scale: keys.embedding_scale?.float ?? (isScaled ? Math.sqrt(sizes.width) : 1),
    bare,
    keys: {
      context_length: sizes.context,
      embedding_length: sizes.width,
      block_count: layers,
      ...keys,
      ...real?.keys,
    },
    wanted: new Map([
      ...[...global, ...(real?.global ?? [])].map((tensor) => [tensor, UNKNOWN]),
      ...eachTensor((layer) => optional(layer).map((tensor) => [tensor, UNKNOWN])),
      ...eachTensor((layer) => Object.entries(sized(layer))),
    ]),
  };
}
