// Weights of train.py -> a text model and its projector, as GGUF files.
import fs from 'node:fs';
import { meta, readKeyValues, writeGguf } from '../../../bench/model/gguf.mjs';
import { toHalf } from '../onnx/half.mjs';
import { PATCH, SIDE } from './scenes.mjs';

const CONTEXT = 1024;

/** Sizes of the two networks. */
export const EYES = { width: 96, heads: 3, layers: 4, ffn: 384 };
export const TEXT = { width: 96, heads: 3, layers: 3, ffn: 256 };

/** Tensors of a file of weights: { name, dims, values }, dims innermost first. */
function readWeights(file) {
  const bytes = fs.readFileSync(file);
  const start = bytes.indexOf('\n') + 1;
  let at = start;
  return JSON.parse(bytes.toString('utf8', 0, start)).map(([name, shape]) => {
    const count = shape.reduce((product, size) => product * size, 1);
    const values = new Float32Array(
      bytes.buffer.slice(bytes.byteOffset + at, bytes.byteOffset + at + 4 * count),
    );
    at += 4 * count;
    return { name, dims: shape.toReversed(), values };
  });
}

/** Matrices in 16 bits, vectors and positions, which are added, in 32. */
function toTensor({ name, dims, values }) {
  const isHalf = dims.length > 1 && !name.includes('position');
  const bytes = Buffer.from(isHalf ? toHalf(values).buffer : values.buffer);
  return { name, dims, type: isHalf ? 'f16' : 'f32', chunks: () => [bytes] };
}

/** Writes both files. `vocabulary`: a GGUF file whose tokenizer and template the text model has. */
export function writePair(weights, { model, mmproj, vocabulary, name }) {
  const tensors = readWeights(weights).map(toTensor);
  const isEyes = (tensor) => /^(v|mm)\./.test(tensor.name);
  writeGguf(
    model,
    textMetadata(vocabulary, name),
    tensors.filter((tensor) => !isEyes(tensor)),
  );
  writeGguf(mmproj, eyesMetadata(name), tensors.filter(isEyes));
}

function textMetadata(vocabulary, name) {
  const { width, heads, layers, ffn } = TEXT;
  const tokenizer = [...readKeyValues(vocabulary)].filter(([key]) => key.startsWith('tokenizer.'));
  return new Map([
    ['general.architecture', meta.string('llama')],
    ['general.name', meta.string(name)],
    ['general.file_type', meta.uint32(1)],
    ['llama.block_count', meta.uint32(layers)],
    ['llama.context_length', meta.uint32(CONTEXT)],
    ['llama.embedding_length', meta.uint32(width)],
    ['llama.feed_forward_length', meta.uint32(ffn)],
    ['llama.attention.head_count', meta.uint32(heads)],
    ['llama.attention.head_count_kv', meta.uint32(heads)],
    ['llama.attention.layer_norm_rms_epsilon', meta.float32(1e-5)],
    ['llama.rope.dimension_count', meta.uint32(width / heads)],
    ['llama.rope.freq_base', meta.float32(10_000)],
    ...tokenizer,
  ]);
}

function eyesMetadata(name) {
  const { width, heads, layers, ffn } = EYES;
  return new Map([
    ['general.architecture', meta.string('clip')],
    ['general.name', meta.string(name)],
    ['general.file_type', meta.uint32(1)],
    ['clip.has_vision_encoder', meta.bool(true)],
    ['clip.projector_type', meta.string('janus_pro')],
    ['clip.use_gelu', meta.bool(true)],
    ['clip.vision.image_size', meta.uint32(SIDE)],
    ['clip.vision.patch_size', meta.uint32(PATCH)],
    ['clip.vision.embedding_length', meta.uint32(width)],
    ['clip.vision.feed_forward_length', meta.uint32(ffn)],
    ['clip.vision.projection_dim', meta.uint32(TEXT.width)],
    ['clip.vision.block_count', meta.uint32(layers)],
    ['clip.vision.attention.head_count', meta.uint32(heads)],
    ['clip.vision.attention.layer_norm_epsilon', meta.float32(1e-6)],
    ['clip.vision.image_mean', meta.float32Array([0.5, 0.5, 0.5])],
    ['clip.vision.image_std', meta.float32Array([0.5, 0.5, 0.5])],
  ]);
}
