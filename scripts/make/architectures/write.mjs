// The name of an architecture or of a real shape -> its model with random weights, as a GGUF file.
import fs from 'node:fs';
import { int32Array, meta, readKeyValues, TENSOR_TYPES, writeGguf } from '../../../bench/model/gguf.mjs';
import { MODELS_FOLDER } from '../../../bench/model/make.mjs';
import { extractVocabulary } from '../../../bench/model/vocabulary.mjs';
import { loadAddon } from '../../../dist/engine/native/index.js';
import { ARRAY, STRING } from '../../fuzz/files/gguf.mjs';
import { VOCABULARIES } from '../../fuzz/files/vocabularies.mjs';
import { createRandom } from '../model/random.mjs';
import { describe } from './table.mjs';
import { wantedTensors } from './tensors.mjs';
import { drawnValue, FAINT, isSpoken } from './weights.mjs';

const TEMPLATE = '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:';
/** Values that are drawn one by one; those of larger tensors repeat at random places. */
const POOL = 2 ** 20;
const CHUNK = 2 ** 24;
const MIXED = 'q4_k_m';

/** Writes it. `type`: that of the matrices whose rows are whole blocks of it; others are f32. */
export async function writeArchitecture(file, { name, type = 'f32', width, seed = 1 }) {
  const types = [...Object.keys(TENSOR_TYPES), MIXED];
  if (!types.includes(type)) throw new Error(`type: expected one of ${types.join(', ')}, got ${type}`);
  const model = describe(name, width);
  const small = VOCABULARIES[model.isReal ? 'bpe' : model.vocabulary]();
  const shapes = await wantedTensors(keyValuesOf(model, tinyVocabulary(small)), model.wanted);
  const vocabulary = model.isReal ? realVocabulary(model.vocabulary) : tinyVocabulary(small);
  const size = small.tokens.items.length;
  const spoken = spokenTokens(vocabulary, small, model.isReal);
  const isTied = !shapes.has('output.weight');
  const tensors = [...shapes].map(([tensor, dims]) => {
    const hasTokens = /^(token_embd|output|per_layer_token_embd)\.weight$/.test(tensor) && dims[1] === size;
    const rows = hasTokens ? [dims[0], spoken.length] : dims;
    const isOutput = tensor === 'output.weight' || (isTied && tensor === 'token_embd.weight');
    const toValue = drawnValue(tensor, rows, { isOutput, isTied, scale: model.scale });
    return tensorOf(tensor, rows, typeOf(tensor, rows, type), {
      seed,
      toValue,
      spoken: isOutput ? spoken : null,
    });
  });
  writeGguf(file, keyValuesOf(model, vocabulary), tensors);
}

/**
 * Returns the type of a tensor. Tensors that are not multiplied with a batch stay f32, as in quantizers; `q4_k_m` uses six bits for the
 * tensors that profit most.
 */
function typeOf(name, dims, wanted) {
  const isSmall =
    /norm|conv|ffn_gate_inp|time_mix_(first|lerp|w\d|a\d|v\d|g\d|decay_w)|ssm_(a|d|x|dt)\b|altup|router|\.bias/;
  const isFiner = /^(token_embd|output)\.|attn_v\.|ffn_down/;
  const type = wanted === MIXED ? (isFiner.test(name) ? 'q6_k' : 'q4_k') : wanted;
  const isMatrix = dims.length > 1 && dims[0] > 1 && dims[1] > 1 && !isSmall.test(name);
  return isMatrix && dims[0] % TENSOR_TYPES[type].blockElements === 0 ? type : 'f32';
}

function keyValuesOf({ architecture, keys, bare }, vocabulary) {
  const entries = [
    ['general.architecture', meta.string(architecture)],
    ['general.name', meta.string('random weights')],
    ...Object.entries(keys).map(([key, value]) => [`${architecture}.${key}`, metaOf(value)]),
    ...Object.entries(bare).map(([key, value]) => [key, metaOf(value)]),
    ...vocabulary,
    ['tokenizer.chat_template', meta.string(TEMPLATE)],
  ];
  return new Map(entries);
}

function metaOf(value) {
  const [first] = Array.isArray(value) ? value : [];
  if (typeof first === 'boolean') return meta.boolArray(value);
  if (typeof first === 'object') return meta.float32Array(value.map(({ float }) => float));
  if (Array.isArray(value)) return meta.uint32Array(value);
  if (typeof value === 'object') return meta.float32(value.float);
  if (typeof value === 'boolean') return meta.bool(value);
  return typeof value === 'string' ? meta.string(value) : meta.uint32(value);
}

function tinyVocabulary(entries) {
  return Object.entries(entries).map(([key, { type, of, items }]) => [
    `tokenizer.ggml.${key}`,
    type === ARRAY
      ? meta.raw(
          Buffer.concat([words(ARRAY, of), longs(items.length), ...items.flatMap((item) => sized(of, item))]),
        )
      : meta.raw(Buffer.concat([words(type), ...sized(type, items[0])])),
  ]);
}

const words = (...values) => Buffer.from(Uint32Array.from(values).buffer);
const longs = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const sized = (type, bytes) => (type === STRING ? [longs(bytes.length), bytes] : [bytes]);

function realVocabulary(name) {
  fs.mkdirSync(MODELS_FOLDER, { recursive: true });
  return [...readKeyValues(extractVocabulary(name, MODELS_FOLDER))].filter(([key]) =>
    key.startsWith('tokenizer.ggml.'),
  );
}

/** (tokens) whether answers are made of it. */
function spokenTokens(vocabulary, small, isReal) {
  if (!isReal) return small.tokens.items.map((bytes) => isSpoken(bytes.toString()));
  const types = new Map(vocabulary).get('tokenizer.ggml.token_type');
  return Array.from(int32Array(types), (type) => type === 1);
}

function tensorOf(name, dims, type, { seed, toValue, spoken }) {
  const { normal, integer } = createRandom(hash(`${seed} ${name}`));
  const count = dims.reduce((product, length) => product * length, 1);
  const { blockElements, blockBytes } = TENSOR_TYPES[type];
  const rowBytes = (dims[0] / blockElements) * blockBytes;
  const chunks = function* () {
    const poolRows = Math.min(count / dims[0], Math.ceil(POOL / dims[0]));
    const values = Float32Array.from({ length: poolRows * dims[0] }, () => toValue(normal()));
    if (poolRows === spoken?.length) dampen(values, dims[0], spoken);
    const pool = Buffer.from(quantized(type, values, dims[0]));
    yield pool;
    const zeros = spoken && Buffer.from(quantized(type, new Float32Array(dims[0]), dims[0]));
    for (let row = poolRows; row < count / dims[0]; ) {
      const rows = Math.min(count / dims[0] - row, Math.ceil(CHUNK / rowBytes));
      const chunk = Buffer.alloc(rows * rowBytes);
      for (let i = 0; i < rows; i++, row++)
        if (spoken && !spoken[row]) zeros.copy(chunk, i * rowBytes);
        else {
          const from = integer(0, poolRows - 1) * rowBytes;
          pool.copy(chunk, i * rowBytes, from, from + rowBytes);
        }
      yield chunk;
    }
  };
  return { name, type, dims, chunks };
}

function quantized(type, values, rowSize) {
  return type === 'f32' ? values.buffer : loadAddon().quantizeRows(type.replace('_k', '_K'), values, rowSize);
}

function dampen(values, rowSize, spoken) {
  for (let row = 0; row < spoken.length; row++)
    if (!spoken[row]) for (let i = 0; i < rowSize; i++) values[row * rowSize + i] *= FAINT;
}

function hash(text) {
  let state = 0x811c9dc5;
  for (const letter of text) state = Math.imul(state ^ letter.codePointAt(0), 0x01000193);
  return state >>> 0;
}
