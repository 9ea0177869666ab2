// Float tensors -> constants of the graph. Weights are objects of functions: `table`, `embedding`, `vector`, `linear` and `head`.
// `chunks`: name of a tensor -> Buffers of its float32 values; matrices are (outputs, inputs), transposed ones (inputs, outputs).
import { toHalf } from './half.mjs';

const EMBEDDING = 'token_embd.weight';

/** A tied head: the embedding is stored once and transposed by the operator. */
function gemmHead(graph, hidden, { width, vocabSize }) {
  const rows = graph.add('Reshape', [hidden, graph.ints([-1, width])]);
  const scores = graph.add('Gemm', [rows, EMBEDDING], { transB: 1 });
  const front = graph.add('Slice', [graph.add('Shape', [hidden]), graph.ints([0]), graph.ints([2])]);
  return graph.add('Reshape', [scores, graph.add('Concat', [front, graph.ints([vocabSize])], { axis: 0 })]);
}

/** A tied head with a Transpose node, as the exporters of torch write it. */
export function tiedHead(graph, hidden) {
  return graph.add('MatMul', [hidden, graph.add('Transpose', [EMBEDDING], { perm: [1, 0] })]);
}

/** Weights of 32 or 16 bits. */
export function floatWeights({ chunks, sizes, type = 'float32', head = gemmHead }) {
  const typed = (name, isTurned) =>
    type === 'float16' ? halves(chunks(name, isTurned)) : chunks(name, isTurned);
  const weight = (graph, name, dims, isTurned) => graph.weight(name, type, dims, typed(name, isTurned));
  const table = (graph, { vocabSize, width }) => weight(graph, EMBEDDING, [vocabSize, width], false);
  return {
    table,
    embedding: (graph, ids, shape) => graph.add('Gather', [table(graph, shape), ids]),
    vector: (graph, name) => weight(graph, name, [sizes(name)[0]], false),
    linear: (graph, input, name) =>
      graph.add('MatMul', [input, weight(graph, `${name}.weight`, sizes(`${name}.weight`), true)]),
    head,
  };
}

function* halves(chunks) {
  for (const { buffer, byteOffset, byteLength } of chunks)
    yield Buffer.from(toHalf(new Float32Array(buffer, byteOffset, byteLength / 4)).buffer);
}

/** All values of a tensor that is written in one chunk. */
function valuesOf([{ buffer, byteOffset, byteLength }]) {
  return new Float32Array(buffer, byteOffset, byteLength / 4);
}

const bytesOf = ({ buffer }) => Buffer.from(buffer);

/** Weights of a block share a scale. */
const BLOCK = 32;
const MIDDLE = 8;

/**
 * Four bits a weight, two to a byte, (outputs, blocks, 16), and for each block a scale: (outputs, blocks), and a zero, two to a
 * byte. `isEven`: zeros are all in the middle.
 */
function toBlocks(values, inputs, isEven) {
  const perRow = Math.ceil(inputs / BLOCK);
  const outputs = values.length / inputs;
  const bytes = new Uint8Array(outputs * perRow * (BLOCK / 2));
  const scales = new Float32Array(outputs * perRow);
  const zeros = new Uint8Array(outputs * Math.ceil(perRow / 2));
  const rounded = new Float32Array(values.length);
  const put = (array, row, place, level) => {
    array[row + (place >> 1)] |= level << (4 * (place % 2));
  };
  for (let row = 0; row < outputs; row++)
    for (let block = 0; block < perRow; block++) {
      const start = row * inputs + block * BLOCK;
      const part = values.subarray(start, Math.min(start + BLOCK, (row + 1) * inputs));
      const { scale, zero } = isEven ? evenScale(part) : unevenScale(part);
      const place = row * perRow + block;
      scales[place] = scale;
      put(zeros, row * Math.ceil(perRow / 2), block, zero);
      for (let i = 0; i < BLOCK; i++) {
        const level = Math.min(15, Math.max(0, Math.round((part[i] ?? 0) / scales[place]) + zero));
        if (i < part.length) rounded[start + i] = (level - zero) * scales[place];
        put(bytes, place * (BLOCK / 2), i, level);
      }
    }
  return { bytes, scales, zeros, rounded, perRow };
}

function evenScale(part) {
  return { scale: part.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 7 || 1, zero: MIDDLE };
}

function unevenScale(part) {
  const [low, high] = [Math.min(0, ...part), Math.max(0, ...part)];
  const scale = (high - low) / 15 || 1;
  return { scale, zero: Math.round(-low / scale) };
}

/**
 * Weights of four bits in `MatMulNBits`, or `isRounded`: the same values as 32-bit floats. The embedding keeps its type, and so
 * does a head given as a function; `head: 'blocks'` has four bits, too.
 */
export function int4Weights({
  chunks,
  sizes,
  isRounded = false,
  type = 'float32',
  isEven = true,
  head = gemmHead,
}) {
  const linear = (graph, input, name) => {
    const [inputs, outputs] = sizes(`${name}.weight`);
    const values = valuesOf([...chunks(`${name}.weight`, false)]);
    const { bytes, scales, zeros, rounded, perRow } = toBlocks(values, inputs, isEven);
    if (isRounded) {
      const weight = graph.weight(`${name}.weight`, 'float32', [outputs, inputs], bytesOf(rounded));
      return graph.add('MatMul', [input, graph.add('Transpose', [weight], { perm: [1, 0] })]);
    }
    const put = (ending, kind, dims, array) => graph.weight(`${name}.${ending}`, kind, dims, bytesOf(array));
    const weights = [
      put('q4', 'uint8', [outputs, perRow, BLOCK / 2], bytes),
      put('scales', type, [outputs * perRow], type === 'float16' ? toHalf(scales) : scales),
      ...(isEven ? [] : [put('zeros', 'uint8', [zeros.length], zeros)]),
    ];
    return graph.addFused('MatMulNBits', [input, ...weights], {
      K: inputs,
      N: outputs,
      bits: 4,
      block_size: BLOCK,
    });
  };
  const headOfBlocks = (graph, hidden) => linear(graph, hidden, EMBEDDING.replace('.weight', ''));
  return {
    ...floatWeights({ chunks, sizes, type }),
    linear,
    head: head === 'blocks' ? headOfBlocks : head,
  };
}
