// A shape's name -> a GGUF file of that exact shape with random weights and a real vocabulary, in bench/models/ (ignored by git).
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { progressBar } from '../lib/progress.mjs';
import { copyingChunks } from './copying.mjs';
import { int32Array, readKeyValues, TENSOR_TYPES, writeGguf } from './gguf.mjs';
import { metadataOf, SHAPES, tensorsOf } from './shapes.mjs';
import { embeddedVocabulary, extractVocabulary } from './vocabulary.mjs';
import { oneChunks, randomChunks, withFaintRows } from './weights.mjs';

export const MODELS_FOLDER = fileURLToPath(new URL('../models/', import.meta.url));
/** Spread of the logits: like a trained model's, so that samplers meet a realistic number of likely tokens. */
const LOGIT_DEVIATION = 2.5;
const NORMAL_TOKEN = 1;
const MATRIX_TYPES = ['f32', 'f16', 'q8_0'];

/**
 * Path of the model, written if absent. `type`: that of the matrices: q8_0, f16 or f32. `vocabulary`: `real`, of llama.cpp's sources, which
 * a clone has; or `embedded`, the embedded model's with unused tokens added.
 */
export function ensureModel({
  shape: name = 'qwen3-0.6b',
  type = 'q8_0',
  out,
  vocabulary: source = 'real',
  force = false,
} = {}) {
  const shape = SHAPES[name];
  if (!shape) throw new Error(`shape: expected one of ${Object.keys(SHAPES).join(', ')}, got ${name}`);
  if (!MATRIX_TYPES.includes(type))
    throw new Error(`type: expected one of ${MATRIX_TYPES.join(', ')}, got ${type}`);
  const file = out ?? path.join(MODELS_FOLDER, `${name}-${type}.gguf`);
  if (shape.copies && type !== 'q8_0') throw new Error(`type: expected q8_0 for ${name}, got ${type}`);
  if (fs.existsSync(file) && !force) return file;
  fs.mkdirSync(path.dirname(file), { recursive: true });

  const { vocabulary, ids } =
    source === 'embedded'
      ? embeddedVocabulary(shape.vocabSize)
      : { vocabulary: readKeyValues(extractVocabulary(shape.vocabulary, MODELS_FOLDER)), ids: {} };
  const tokenTypes = int32Array(vocabulary.get('tokenizer.ggml.token_type')); // (vocabulary)
  if (tokenTypes.length !== shape.vocabSize)
    throw new Error(
      `vocabulary ${shape.vocabulary}: ${tokenTypes.length} tokens, ${shape.vocabSize} expected`,
    );
  // Logits of control tokens are small, far below the best ones: no generation ends by itself. Rows of zeros would have gradients
  // that grow from layer to layer.
  const silentTokens = [...tokenTypes.keys()].filter((id) => tokenTypes[id] !== NORMAL_TOKEN);

  const tensors = tensorsOf(shape, type, LOGIT_DEVIATION).map((tensor) => {
    const copying = shape.copies ? copyingChunks(tensor, shape, silentTokens) : null;
    if (copying) return { ...tensor, chunks: () => copying };
    if (tensor.norm) return { ...tensor, chunks: () => oneChunks(tensor) };
    if (tensor.name !== 'token_embd.weight') return { ...tensor, chunks: () => randomChunks(tensor) };
    const { blockElements, blockBytes } = TENSOR_TYPES[type];
    const sizes = { rowBytes: (shape.width / blockElements) * blockBytes, keptBytes: blockBytes };
    return { ...tensor, chunks: () => withFaintRows(randomChunks(tensor), sizes, silentTokens) };
  });
  const near = path.relative(process.cwd(), file);
  const bar = progressBar(`writing ${near.startsWith('..') ? file : near}`);
  writeGguf(file, metadataOf({ ...shape, ...ids }, name, type, vocabulary), tensors, bar.update);
  bar.end();
  return file;
}
