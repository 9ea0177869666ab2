// A shape's name -> its sizes, its vocabulary, its tensors and its metadata.
import { meta } from './gguf.mjs';

const QWEN3_06B = {
  architecture: 'qwen3',
  vocabulary: 'qwen2',
  layers: 28,
  width: 1024,
  heads: 16,
  kvHeads: 8,
  headSize: 128,
  ffnWidth: 3072,
  vocabSize: 151_936,
  contextLength: 40_960,
  ropeBase: 1e6,
  rmsEpsilon: 1e-6,
  bosId: 151_643,
  eosId: 151_645,
  padId: 151_643,
};

/** Public models' sizes. `vocabulary` is a vocabulary file of llama.cpp's own tree; embeddings are tied to the output. */
export const SHAPES = {
  'qwen3-0.6b': QWEN3_06B,
  /** Weights with which it repeats its prompt: `copying.mjs`. */
  'copying-0.6b': { ...QWEN3_06B, ropeBase: 1e9, copies: true },
  'qwen3-embedding-0.6b': {
    ...QWEN3_06B,
    contextLength: 32_768,
    pooling: 3, // the last token's state
  },
  'llama-135m': {
    architecture: 'llama',
    vocabulary: 'starcoder',
    layers: 30,
    width: 576,
    heads: 9,
    kvHeads: 3,
    headSize: 64,
    ffnWidth: 1536,
    vocabSize: 49_152,
    contextLength: 8192,
    ropeBase: 1e5,
    rmsEpsilon: 1e-5,
    bosId: 0,
    eosId: 0,
    padId: 0,
  },
};

// ChatML: one header line per message, its content, an end mark.
const CHAT_TEMPLATE = `{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\\n' }}
{%- endif -%}`;

/** Every tensor of the shape: name, type, dims (innermost first) and the standard deviation of its random values. */
export function tensorsOf(shape, matrixType, logitDeviation) {
  const { width, heads, kvHeads, headSize, ffnWidth } = shape;
  const norm = (name, size) => ({ name: `${name}.weight`, type: 'f32', dims: [size], norm: true });
  // Inputs are normed to size 1, so outputs of this deviation have size 1 again.
  const matrix = (name, inputs, outputs) => ({
    name: `${name}.weight`,
    type: matrixType,
    dims: [inputs, outputs],
    deviation: 1 / Math.sqrt(inputs),
  });
  const tensors = [
    { ...matrix('token_embd', width, shape.vocabSize), deviation: logitDeviation / Math.sqrt(width) },
    norm('output_norm', width),
  ];
  for (let layer = 0; layer < shape.layers; layer++) {
    const block = `blk.${layer}`;
    tensors.push(norm(`${block}.attn_norm`, width));
    tensors.push(matrix(`${block}.attn_q`, width, heads * headSize));
    tensors.push(matrix(`${block}.attn_k`, width, kvHeads * headSize));
    tensors.push(matrix(`${block}.attn_v`, width, kvHeads * headSize));
    tensors.push(matrix(`${block}.attn_output`, heads * headSize, width));
    if (shape.architecture === 'qwen3')
      tensors.push(norm(`${block}.attn_q_norm`, headSize), norm(`${block}.attn_k_norm`, headSize));
    tensors.push(norm(`${block}.ffn_norm`, width));
    tensors.push(matrix(`${block}.ffn_gate`, width, ffnWidth));
    tensors.push(matrix(`${block}.ffn_up`, width, ffnWidth));
    tensors.push(matrix(`${block}.ffn_down`, ffnWidth, width));
  }
  return tensors;
}

/** The metadata of a model of this shape; the tokenizer's part is copied from `vocabulary`. */
export function metadataOf(shape, name, matrixType, vocabulary) {
  const { architecture } = shape;
  const keyValues = new Map([
    ['general.architecture', meta.string(architecture)],
    ['general.name', meta.string(`${name}, random weights`)],
    ['general.file_type', meta.uint32({ f32: 0, f16: 1, q8_0: 7 }[matrixType])],
    [`${architecture}.block_count`, meta.uint32(shape.layers)],
    [`${architecture}.context_length`, meta.uint32(shape.contextLength)],
    [`${architecture}.embedding_length`, meta.uint32(shape.width)],
    [`${architecture}.feed_forward_length`, meta.uint32(shape.ffnWidth)],
    [`${architecture}.vocab_size`, meta.uint32(shape.vocabSize)],
    [`${architecture}.attention.head_count`, meta.uint32(shape.heads)],
    [`${architecture}.attention.head_count_kv`, meta.uint32(shape.kvHeads)],
    [`${architecture}.attention.key_length`, meta.uint32(shape.headSize)],
    [`${architecture}.attention.value_length`, meta.uint32(shape.headSize)],
    [`${architecture}.attention.layer_norm_rms_epsilon`, meta.float32(shape.rmsEpsilon)],
    [`${architecture}.rope.dimension_count`, meta.uint32(shape.headSize)],
    [`${architecture}.rope.freq_base`, meta.float32(shape.ropeBase)],
  ]);
  if (shape.pooling !== undefined) keyValues.set(`${architecture}.pooling_type`, meta.uint32(shape.pooling));
  for (const key of ['model', 'pre', 'tokens', 'token_type', 'merges'])
    keyValues.set(`tokenizer.ggml.${key}`, meta.raw(vocabulary.get(`tokenizer.ggml.${key}`)));
  keyValues.set('tokenizer.ggml.bos_token_id', meta.uint32(shape.bosId));
  keyValues.set('tokenizer.ggml.eos_token_id', meta.uint32(shape.eosId));
  keyValues.set('tokenizer.ggml.padding_token_id', meta.uint32(shape.padId));
  keyValues.set('tokenizer.ggml.add_bos_token', meta.bool(false));
  keyValues.set('tokenizer.chat_template', meta.string(CHAT_TEMPLATE));
  return keyValues;
}
