// A shape's name -> an ONNX folder of that exact shape with random weights, in bench/models/ (ignored by git).
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readGgufFileInfo } from 'node-llama-cpp';
import { int8Weights } from '../../scripts/make/onnx/byte-weights.mjs';
import { writeConfig } from '../../scripts/make/onnx/from-gguf.mjs';
import { writeLlama } from '../../scripts/make/onnx/llama.mjs';
import { writeTokenizer } from '../../scripts/make/onnx/tokenizer.mjs';
import { floatWeights } from '../../scripts/make/onnx/weights.mjs';
import { MODELS_FOLDER } from './make.mjs';
import { SHAPES, tensorsOf } from './shapes.mjs';
import { oneChunks, randomBytes, randomChunks } from './weights.mjs';

const FLOAT_BYTES = 4;
const VOCABULARY = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const LOGIT_DEVIATION = 2.5;
/** Standard deviation of a uniform signed byte. */
const BYTE_DEVIATION = 73.9;

/** File names of the kinds of weights, as exporters call them. */
const FILES = { fp32: 'model.onnx', q8: 'model_quantized.onnx' };

/** Path of the graph; the folder is written if absent. `type`: fp32, or q8 with signed bytes. */
export async function ensureOnnxModel({ shape: name = 'llama-135m', type = 'q8' } = {}) {
  const shape = SHAPES[name];
  const folder = path.join(MODELS_FOLDER, `${name}-onnx`);
  const file = path.join(folder, 'onnx', FILES[type]);
  if (fs.existsSync(file)) return file;
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const { metadata } = await readGgufFileInfo(VOCABULARY);
  writeTokenizer(folder, metadata.tokenizer);
  writeConfig(folder, shape, metadata.tokenizer.ggml, {
    'transformers.js_config': {
      use_external_data_format: { 'model.onnx': true, 'model_quantized.onnx': true },
    },
  });
  const tensors = new Map(tensorsOf(shape, 'f32', LOGIT_DEVIATION).map((tensor) => [tensor.name, tensor]));
  const sizes = (tensor) => tensors.get(tensor).dims;
  const floats = (tensor) => (tensors.get(tensor).norm ? oneChunks : randomChunks)(tensors.get(tensor));
  const bytes = (tensor) => (tensors.get(tensor).norm ? oneChunks : randomBytes)(tensors.get(tensor));
  const scale = (tensor) => tensors.get(tensor).deviation / BYTE_DEVIATION;
  const weights =
    type === 'fp32' ? floatWeights({ chunks: floats, sizes }) : int8Weights({ chunks: bytes, sizes, scale });
  writeLlama(file, shape, weights, { lastRows: true, dataFiles: 1 });
  return file;
}

/** Bytes of the matrices that one token is multiplied with. */
export function weightBytesPerToken({ shape: name = 'llama-135m', type }) {
  const matrices = tensorsOf(SHAPES[name], 'f32', LOGIT_DEVIATION).filter(({ norm }) => !norm);
  const numbers = matrices.reduce((sum, { dims: [inputs, outputs] }) => sum + inputs * outputs, 0);
  return numbers * (type === 'fp32' ? FLOAT_BYTES : 1);
}

/** The embedded model as a folder, written if absent. */
export function ensureTinyFolder() {
  const folder = path.join(MODELS_FOLDER, 'onpolicy-tiny-onnx');
  if (fs.existsSync(folder)) return folder;
  const script = fileURLToPath(new URL('../../scripts/make/make-onnx.mjs', import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, '--out', folder], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return folder;
}
