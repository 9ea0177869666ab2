// The name of an architecture -> the bytes of a tiny random model of it, as a GGUF file.
import { ARRAY, encode, STRING } from './gguf.mjs';
import { randomFrom } from './random.mjs';

const WIDTH = 64;
const HEADS = 4;
const HEAD = 16;
const HIDDEN = 96;
const LAYERS = 2;

const u32 = (value) => ({ type: 4, items: [words([value])] });
const f32 = (value) => ({ type: 6, items: [floats([value])] });
const flag = (value) => ({ type: 7, items: [Buffer.from([value ? 1 : 0])] });
const text = (value) => ({ type: STRING, items: [Buffer.from(value)] });
const list = (of, items) => ({ type: ARRAY, of, items });
const texts = (values) =>
  list(
    STRING,
    values.map((value) => Buffer.from(value)),
  );
const numbers = (values) =>
  list(
    4,
    values.map((value) => words([value])),
  );
const words = (values) => Buffer.from(Uint32Array.from(values).buffer);
const floats = (values) => Buffer.from(Float32Array.from(values).buffer);

/** Bytes as the letters that byte-level vocabularies write them with. */
const BYTE_LETTERS = (() => {
  const plain = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let further = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(plain(byte) ? byte : further++));
})();
const TEMPLATE = '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:';

const VOCABULARIES = {
  bpe() {
    const merges = ['h e', 'l l', 'he ll', 'Ġ t', 'Ġt he'];
    const tokens = [...BYTE_LETTERS, ...merges.map((pair) => pair.replace(' ', '')), '<s>', '</s>', '<pad>'];
    const plain = tokens.length - 3;
    return {
      model: text('gpt2'),
      pre: text('qwen2'),
      tokens: texts(tokens),
      token_type: list(
        5,
        tokens.map((_, id) => words([id < plain ? 1 : 3])),
      ),
      merges: texts(merges),
      bos_token_id: u32(plain),
      eos_token_id: u32(plain + 1),
      padding_token_id: u32(plain + 2),
      add_bos_token: flag(false),
    };
  },
  spm() {
    const bytes = Array.from(
      { length: 256 },
      (_, byte) => `<0x${byte.toString(16).padStart(2, '0').toUpperCase()}>`,
    );
    const tokens = [
      '<unk>',
      '<s>',
      '</s>',
      ...bytes,
      '▁',
      ...'abcdefghijklmnopqrstuvwxyz',
      '▁t',
      'he',
      '▁the',
      'll',
      '<end>',
    ];
    const types = tokens.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1));
    types[types.length - 1] = 4;
    return {
      model: text('llama'),
      pre: text('default'),
      tokens: texts(tokens),
      scores: list(
        6,
        tokens.map((_, id) => floats([-id])),
      ),
      token_type: list(
        5,
        types.map((type) => words([type])),
      ),
      bos_token_id: u32(1),
      eos_token_id: u32(2),
      unknown_token_id: u32(0),
      add_bos_token: flag(true),
      add_eos_token: flag(false),
      add_space_prefix: flag(true),
    };
  },
  wpm() {
    const letters = [...'abcdefghijklmnopqrstuvwxyz'];
    const tokens = [
      '[PAD]',
      '[UNK]',
      '[CLS]',
      '[SEP]',
      '[MASK]',
      ...letters.map((letter) => `▁${letter}`),
      ...letters,
    ];
    return {
      model: text('bert'),
      pre: text('jina-v2-en'),
      tokens: texts(tokens),
      token_type: list(
        5,
        tokens.map((_, id) => words([id < 5 ? 3 : 1])),
      ),
      token_type_count: u32(2),
      padding_token_id: u32(0),
      unknown_token_id: u32(1),
      bos_token_id: u32(2),
      cls_token_id: u32(2),
      seperator_token_id: u32(3),
      mask_token_id: u32(4),
    };
  },
  unigram() {
    const tokens = [
      '<pad>',
      '</s>',
      '<unk>',
      '▁',
      ...'abcdefghijklmnopqrstuvwxyz',
      '▁t',
      'he',
      '▁the',
      '<extra_id_0>',
    ];
    return {
      model: text('t5'),
      pre: text('default'),
      tokens: texts(tokens),
      scores: list(
        6,
        tokens.map((_, id) => floats([-id / 4])),
      ),
      token_type: list(
        5,
        tokens.map((_, id) => words([id === 2 ? 2 : id < 2 ? 3 : id === tokens.length - 1 ? 4 : 1])),
      ),
      eos_token_id: u32(1),
      padding_token_id: u32(0),
      unknown_token_id: u32(2),
      add_bos_token: flag(false),
      add_eos_token: flag(true),
      add_space_prefix: flag(true),
    };
  },
};

const attention = {
  'attention.head_count': u32(HEADS),
  'attention.head_count_kv': u32(2),
  'rope.dimension_count': u32(HEAD),
  'rope.freq_base': f32(1e4),
};
const headSizes = { 'attention.key_length': u32(HEAD), 'attention.value_length': u32(HEAD) };
const rms = { 'attention.layer_norm_rms_epsilon': f32(1e-6) };
const dense = { feed_forward_length: u32(HIDDEN) };

const attentionTensors = {
  'attn_q.weight': [WIDTH, HEADS * HEAD],
  'attn_k.weight': [WIDTH, 2 * HEAD],
  'attn_v.weight': [WIDTH, 2 * HEAD],
  'attn_output.weight': [HEADS * HEAD, WIDTH],
};
const headNorms = { 'attn_q_norm.weight': [HEAD], 'attn_k_norm.weight': [HEAD] };
const norms = { 'attn_norm.weight': [WIDTH], 'ffn_norm.weight': [WIDTH] };
const feedForward = {
  'ffn_gate.weight': [WIDTH, HIDDEN],
  'ffn_up.weight': [WIDTH, HIDDEN],
  'ffn_down.weight': [HIDDEN, WIDTH],
};
const experts = {
  'ffn_gate_inp.weight': [WIDTH, 4],
  'ffn_gate_exps.weight': [WIDTH, HIDDEN, 4],
  'ffn_up_exps.weight': [WIDTH, HIDDEN, 4],
  'ffn_down_exps.weight': [HIDDEN, WIDTH, 4],
};
const withBias = (name, from, to) => ({ [`${name}.weight`]: [from, to], [`${name}.bias`]: [to] });
const normWithBias = (name) => ({ [`${name}.weight`]: [WIDTH], [`${name}.bias`]: [WIDTH] });

/** Sizes of recurrent layers. */
const STATE = { inner: 128, state: 16, kernel: 4, groups: 2, ranks: 8 };
const ssm = {
  'ssm.conv_kernel': u32(STATE.kernel),
  'ssm.inner_size': u32(STATE.inner),
  'ssm.state_size': u32(STATE.state),
  'ssm.time_step_rank': u32(STATE.ranks),
  'ssm.group_count': u32(STATE.groups),
};
const DELTA = STATE.state * STATE.ranks; // of values of gated delta nets

/** Metadata below the architecture's name, tensors of the file and of its layers. A tensor that is f32 in any case is no matrix. */
const MODELS = {
  llama: { vocabulary: 'spm', metadata: { ...attention, ...rms, ...dense }, layer: () => ({ ...norms, ...attentionTensors, ...feedForward }) },
  qwen3: { vocabulary: 'bpe', metadata: { ...attention, ...headSizes, ...rms, ...dense }, layer: () => ({ ...norms, ...headNorms, ...attentionTensors, ...feedForward }) },
  gemma3: {
    vocabulary: 'spm',
    isTied: true,
    metadata: { ...attention, ...headSizes, ...rms, ...dense, 'attention.sliding_window': u32(32) },
    layer: () => ({ ...norms, ...headNorms, 'post_attention_norm.weight': [WIDTH], 'post_ffw_norm.weight': [WIDTH], ...attentionTensors, ...feedForward }),
  },
  qwen3moe: {
    vocabulary: 'bpe',
    metadata: { ...attention, ...headSizes, ...rms, ...dense, expert_count: u32(4), expert_used_count: u32(2), expert_feed_forward_length: u32(HIDDEN) },
    layer: () => ({ ...norms, ...headNorms, ...attentionTensors, ...experts }),
  },
  lfm2: {
    vocabulary: 'bpe',
    norm: 'token_embd_norm',
    isTied: true,
    metadata: { ...attention, ...rms, ...dense, 'attention.head_count_kv': numbers([0, 2]), 'shortconv.l_cache': u32(3) },
    layer: (i) => ({
      ...norms,
      ...feedForward,
      ...(i === 1 ? { ...headNorms, ...attentionTensors } : { 'shortconv.conv.weight': [3, WIDTH], 'shortconv.in_proj.weight': [WIDTH, 3 * WIDTH], 'shortconv.out_proj.weight': [WIDTH, WIDTH] }),
    }),
  },
  mamba2: {
    vocabulary: 'bpe',
    metadata: { ...rms, ...ssm, 'attention.head_count': u32(0), 'feed_forward_length': u32(0) },
    layer: () => {
      const mixed = STATE.inner + 2 * STATE.groups * STATE.state;
      return {
        'attn_norm.weight': [WIDTH],
        'ssm_in.weight': [WIDTH, STATE.inner + mixed + STATE.ranks],
        'ssm_conv1d.weight': [STATE.kernel, mixed],
        'ssm_conv1d.bias': [mixed],
        'ssm_dt.bias': [STATE.ranks],
        ssm_a: [1, STATE.ranks],
        ssm_d: [1, STATE.ranks],
        'ssm_norm.weight': [STATE.inner / STATE.groups, STATE.groups],
        'ssm_out.weight': [STATE.inner, WIDTH],
      };
    },
  },
  qwen35: {
    vocabulary: 'bpe',
    metadata: { ...attention, ...headSizes, ...rms, ...dense, ...ssm, 'full_attention_interval': u32(2), 'rope.dimension_sections': numbers([4, 2, 2, 0]) },
    layer: (i) => ({
      'attn_norm.weight': [WIDTH],
      'post_attention_norm.weight': [WIDTH],
      ...feedForward,
      ...(i === 1
        ? { ...headNorms, ...attentionTensors, 'attn_q.weight': [WIDTH, 2 * HEADS * HEAD] }
        : {
            'attn_qkv.weight': [WIDTH, 2 * STATE.state * STATE.groups + DELTA],
            'attn_gate.weight': [WIDTH, DELTA],
            'ssm_conv1d.weight': [STATE.kernel, 2 * STATE.state * STATE.groups + DELTA],
            'ssm_dt.bias': [STATE.ranks],
            ssm_a: [STATE.ranks],
            'ssm_beta.weight': [WIDTH, STATE.ranks],
            'ssm_alpha.weight': [WIDTH, STATE.ranks],
            'ssm_norm.weight': [STATE.state],
            'ssm_out.weight': [DELTA, WIDTH],
          }),
    }),
  },
  bert: {
    vocabulary: 'wpm',
    hasNoOutput: true,
    metadata: { 'attention.head_count': u32(HEADS), ...dense, 'attention.layer_norm_epsilon': f32(1e-12), 'attention.causal': flag(false), pooling_type: u32(1) },
    tensors: { 'position_embd.weight': [WIDTH, 128], 'token_types.weight': [WIDTH, 2], ...normWithBias('token_embd_norm') },
    layer: () => ({
      ...Object.assign({}, ...['attn_q', 'attn_k', 'attn_v', 'attn_output'].map((name) => withBias(name, WIDTH, WIDTH))),
      ...normWithBias('attn_output_norm'),
      ...withBias('ffn_up', WIDTH, HIDDEN),
      ...withBias('ffn_down', HIDDEN, WIDTH),
      ...normWithBias('layer_output_norm'),
    }),
  },
}; // biome-ignore format: a table

/** Names of tiny models: an architecture, and its vocabulary where that is another one. */
export const MODEL_NAMES = [...Object.keys(MODELS), 'llama/bpe', 'llama/unigram'];

/** The file's bytes. */
export function tinyModel(name) {
  const [architecture, other] = name.split('/');
  const model = MODELS[architecture];
  const vocabulary = VOCABULARIES[other ?? model.vocabulary]();
  const size = vocabulary.tokens.items.length;
  const random = randomFrom(7);
  const metadata = {
    'general.architecture': text(architecture),
    'general.name': text('tiny'),
    ...named(architecture, {
      context_length: u32(128),
      embedding_length: u32(WIDTH),
      block_count: u32(LAYERS),
      vocab_size: u32(size),
      ...model.metadata,
    }),
    ...named('tokenizer.ggml', vocabulary),
    'tokenizer.chat_template': text(TEMPLATE),
  };
  const shapes = {
    'token_embd.weight': [WIDTH, size],
    ...(model.hasNoOutput ? {} : { [`${model.norm ?? 'output_norm'}.weight`]: [WIDTH] }),
    ...(model.isTied || model.hasNoOutput ? {} : { 'output.weight': [WIDTH, size] }),
    ...model.tensors,
  };
  for (let i = 0; i < LAYERS; i++) Object.assign(shapes, named(`blk.${i}`, model.layer(i)));
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
