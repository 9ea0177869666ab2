// A GGUF file of a llama-shaped model -> a folder as model hubs hold it: config, tokenizer and onnx/model.onnx with 32-bit weights.
import fs from 'node:fs';
import path from 'node:path';
import { readGgufFileInfo } from 'node-llama-cpp';
import { readKeyValues, writeGguf } from '../../bench/model/gguf.mjs';
import { writeLlama } from './llama.mjs';
import { writeTokenizer } from './tokenizer.mjs';
import { float32Weights, int4Weights } from './weights.mjs';

const F32 = 0;
const F16 = 1;

/** Writes the folder; `weights`: float32, q4, or rounded (to four bits, kept as floats); `options` are those of `writeLlama`. */
export async function convertGguf(file, folder, { weights = 'float32', ...options }) {
  const { metadata, fullTensorInfo } = await readGgufFileInfo(file);
  const architecture = metadata.general.architecture;
  if (architecture !== 'llama')
    throw new Error(`${file}: expected a model of architecture llama, got ${architecture}`);
  const shape = readShape(metadata);
  const bytes = fs.readFileSync(file);
  const tensors = new Map(fullTensorInfo.map((info) => [info.name, info]));
  const sizes = (name) => tensors.get(name).dimensions.map(Number);
  const values = (name) => readValues(bytes, tensors.get(name));
  const chunks = (name, isTurned) => {
    const heads = /attn_q\.weight$/.test(name)
      ? shape.heads
      : /attn_k\.weight$/.test(name)
        ? shape.kvHeads
        : 0;
    const straight = heads > 0 ? unpermute(values(name), sizes(name), heads) : values(name);
    return [Buffer.from((isTurned ? turn(straight, sizes(name)) : straight).buffer)];
  };
  fs.mkdirSync(path.join(folder, 'onnx'), { recursive: true });
  const isRounded = weights === 'rounded';
  const written =
    weights === 'float32' ? float32Weights({ chunks, sizes }) : int4Weights({ chunks, sizes, isRounded });
  writeLlama(path.join(folder, 'onnx', 'model.onnx'), shape, written, options);
  writeConfig(folder, shape, metadata.tokenizer.ggml);
  writeTokenizer(folder, metadata.tokenizer);
}

/** Writes the same model as a GGUF file with 32-bit weights: what it computes is not rounded to 16 bits on the way. */
export async function widenGguf(file, out) {
  const { fullTensorInfo } = await readGgufFileInfo(file);
  const bytes = fs.readFileSync(file);
  const tensors = fullTensorInfo.map((info) => ({
    name: info.name,
    type: 'f32',
    dims: info.dimensions.map(Number),
    chunks: () => [Buffer.from(readValues(bytes, info).buffer)],
  }));
  writeGguf(out, readKeyValues(file), tensors);
}

function readShape({ llama, tokenizer }) {
  const heads = Number(llama.attention.head_count);
  return {
    layers: Number(llama.block_count),
    width: Number(llama.embedding_length),
    heads,
    kvHeads: Number(llama.attention.head_count_kv),
    headSize: Number(llama.rope.dimension_count ?? llama.embedding_length / heads),
    ffnWidth: Number(llama.feed_forward_length),
    vocabSize: tokenizer.ggml.tokens.length,
    contextLength: Number(llama.context_length),
    ropeBase: Number(llama.rope.freq_base),
    rmsEpsilon: Number(llama.attention.layer_norm_rms_epsilon),
  };
}

function readValues(bytes, { ggmlType, dimensions, fileOffset }) {
  const count = dimensions.reduce((product, dim) => product * Number(dim), 1);
  const at = bytes.byteOffset + Number(fileOffset);
  if (ggmlType === F32) return new Float32Array(bytes.buffer.slice(at, at + 4 * count));
  if (ggmlType !== F16) throw new Error(`expected tensors of type F32 or F16, got ${ggmlType}`);
  return Float32Array.from(new Uint16Array(bytes.buffer.slice(at, at + 2 * count)), fromHalf);
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** GGUF lays the pairs that turn together side by side; exported models lay them half a head apart. */
function unpermute(values, [inputs, outputs], heads) {
  const half = outputs / heads / 2;
  const result = new Float32Array(values.length);
  for (let row = 0; row < outputs; row++) {
    const [head, place] = [Math.floor(row / (2 * half)), row % (2 * half)];
    const source = head * 2 * half + 2 * (place % half) + Math.floor(place / half);
    result.set(values.subarray(source * inputs, (source + 1) * inputs), row * inputs);
  }
  return result;
}

/** (outputs, inputs) -> (inputs, outputs) */
function turn(values, [inputs, outputs]) {
  const result = new Float32Array(values.length);
  for (let row = 0; row < outputs; row++)
    for (let column = 0; column < inputs; column++)
      result[column * outputs + row] = values[row * inputs + column];
  return result;
}

/** `config.json`, with `more` in it, and `generation_config.json`. */
export function writeConfig(folder, shape, { bos_token_id: bos, eos_token_id: eos }, more = {}) {
  const write = (name, value) =>
    fs.writeFileSync(path.join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
  write('config.json', {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: shape.width,
    intermediate_size: shape.ffnWidth,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    head_dim: shape.headSize,
    max_position_embeddings: shape.contextLength,
    rope_theta: shape.ropeBase,
    rms_norm_eps: shape.rmsEpsilon,
    vocab_size: shape.vocabSize,
    hidden_act: 'silu',
    tie_word_embeddings: true,
    torch_dtype: 'float32',
    bos_token_id: bos,
    eos_token_id: eos,
    ...more,
  });
  write('generation_config.json', {
    bos_token_id: bos,
    eos_token_id: [...new Set([eos, bos])],
    pad_token_id: bos,
  });
}
