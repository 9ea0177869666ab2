// A GGUF file of a llama-shaped model -> a folder as model hubs hold it: config, tokenizer and a graph under `onnx`.
import fs from 'node:fs';
import path from 'node:path';
import { readGgufFileInfo } from 'node-llama-cpp';
import { readKeyValues, writeGguf } from '../../../bench/model/gguf.mjs';
import { uint8Weights } from './byte-weights.mjs';
import { writeGrouped } from './grouped.mjs';
import { fromHalf } from './half.mjs';
import { writeLlama } from './llama.mjs';
import { writeTokenizer } from './tokenizer.mjs';
import { writeTorch } from './torch.mjs';
import { writeVision } from './vision.mjs';
import { floatWeights, int4Weights, tiedHead } from './weights.mjs';

const F32 = 0;
const F16 = 1;

/** Kinds of weights: the ending of the file's name, the type of all else, and what writes them. */
const KINDS = {
  float32: { ending: '', type: 'float32', make: floatWeights },
  float16: { ending: '_fp16', type: 'float16', make: floatWeights },
  q8: { ending: '_quantized', type: 'float32', make: uint8Weights },
  q4: { ending: '_q4', type: 'float32', make: int4Weights },
  q4f16: { ending: '_q4f16', type: 'float16', make: int4Weights },
  rounded: { ending: '', type: 'float32', make: (settings) => int4Weights({ ...settings, isRounded: true }) },
};

/** Writers of each layout, and the beginning of the file's name. */
const LAYOUTS = {
  own: { write: writeLlama, name: 'model' },
  torch: { write: writeTorch, name: 'model', head: tiedHead },
  merged: { write: writeTorch, name: 'decoder_model_merged', head: tiedHead },
  grouped: { write: writeGrouped, name: 'model', head: tiedHead },
};

/**
 * Writes the folder. `weights`: one of KINDS; `layout`: one of LAYOUTS; `hasZeros`: blocks of four bits have zeros of their own; `vision`: the processor of a
 * model that sees, or none;
 * `hasFourBitHead`: and the head has four bits, too; `options` are those of the layout.
 */
export async function convertGguf(file, folder, { weights = 'float32', layout = 'own', ...options }) {
  const { metadata, fullTensorInfo } = await readGgufFileInfo(file);
  const architecture = metadata.general.architecture;
  if (architecture !== 'llama')
    throw new Error(`${file}: expected a model of architecture llama, got ${architecture}`);
  const shape = readShape(metadata);
  const { ending, type, make } = KINDS[weights];
  const { write, name, head } = LAYOUTS[layout];
  const { hasZeros = false, hasFourBitHead = false, vision = null, ...rest } = options;
  const chosenHead = hasFourBitHead ? { head: 'blocks' } : head ? { head } : {};
  const source = readTensors(file, fullTensorInfo, shape);
  const written = make({ ...source, type, isEven: !hasZeros, ...chosenHead });
  fs.mkdirSync(path.join(folder, 'onnx'), { recursive: true });
  const isMerged = layout === 'merged';
  write(path.join(folder, 'onnx', `${name}${ending}.onnx`), shape, written, {
    type,
    isMerged,
    takesEmbeddings: vision !== null,
    ...rest,
  });
  writeConfig(folder, shape, metadata.tokenizer.ggml);
  writeTokenizer(folder, metadata.tokenizer);
  if (vision !== null) writeVision(folder, vision, shape, written);
}

/** Sizes and values by name; `blk.N.attn_qkv.weight` is what queries, keys and values are made with. */
function readTensors(file, infos, shape) {
  const bytes = fs.readFileSync(file);
  const tensors = new Map(infos.map((info) => [info.name, info]));
  const parts = (name) => ['q', 'k', 'v'].map((part) => name.replace('attn_qkv', `attn_${part}`));
  const isPacked = (name) => name.includes('attn_qkv');
  const sizes = (name) => {
    if (!isPacked(name)) return tensors.get(name).dimensions.map(Number);
    return [shape.width, parts(name).reduce((sum, part) => sum + sizes(part)[1], 0)];
  };
  const values = (name) => {
    if (isPacked(name)) return Float32Array.from(parts(name).flatMap((part) => [...values(part)]));
    const straight = readValues(bytes, tensors.get(name));
    const heads = { q: shape.heads, k: shape.kvHeads }[/attn_(.)\.weight$/.exec(name)?.[1]];
    return heads ? unpermute(straight, sizes(name), heads) : straight;
  };
  const chunks = (name, isTurned) => [
    Buffer.from((isTurned ? turn(values(name), sizes(name)) : values(name)).buffer),
  ];
  return { sizes, chunks };
}

/** Writes the same model as a GGUF file with 32-bit weights: what it computes is not rounded to 16 bits on the way. */
export async function widenGguf(file, out, more = {}) {
  const { fullTensorInfo } = await readGgufFileInfo(file);
  const bytes = fs.readFileSync(file);
  const tensors = fullTensorInfo.map((info) => ({
    name: info.name,
    type: 'f32',
    dims: info.dimensions.map(Number),
    chunks: () => [Buffer.from(readValues(bytes, info).buffer)],
  }));
  writeGguf(out, new Map([...readKeyValues(file), ...Object.entries(more)]), tensors);
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
