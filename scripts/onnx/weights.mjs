// How matrices stand in the graph: as 32-bit floats, or as bytes with activations quantized on the way.

/**
 * 32-bit weights.
 * @param chunks name of a tensor -> Buffers of its values; matrices are (outputs, inputs), turned ones (inputs, outputs)
 */
export function float32Weights({ chunks, sizes }) {
  const embeddingName = 'token_embd.weight';
  const embedding = (graph, { vocabSize, width }) =>
    graph.weight(embeddingName, 'float32', [vocabSize, width], chunks(embeddingName, false));
  return {
    embedding: (graph, ids, shape) => graph.add('Gather', [embedding(graph, shape), ids]),
    vector: (graph, name) => graph.weight(name, 'float32', [sizes(name)[0]], chunks(name, false)),
    linear: (graph, input, name) => {
      const [inputs, outputs] = sizes(`${name}.weight`);
      const weight = graph.weight(
        `${name}.weight`,
        'float32',
        [inputs, outputs],
        chunks(`${name}.weight`, true),
      );
      return graph.add('MatMul', [input, weight]);
    },
    // The embedding once more: kept once, and turned by the operator itself.
    head: (graph, hidden, { width, vocabSize }) => {
      const rows = graph.add('Reshape', [hidden, graph.ints([-1, width])]);
      const scores = graph.add('Gemm', [rows, embeddingName], { transB: 1 });
      const front = graph.add('Slice', [graph.add('Shape', [hidden]), graph.ints([0]), graph.ints([2])]);
      return graph.add('Reshape', [
        scores,
        graph.add('Concat', [front, graph.ints([vocabSize])], { axis: 0 }),
      ]);
    },
  };
}

/** Weights of a block share a scale. */
const BLOCK = 32;
const ZERO = 8;

/** Four bits a weight, two to a byte, (outputs, blocks, 16), and a scale for each block: (outputs, blocks). */
function toBlocks(values, inputs) {
  const perRow = Math.ceil(inputs / BLOCK);
  const outputs = values.length / inputs;
  const bytes = new Uint8Array(outputs * perRow * (BLOCK / 2)).fill(ZERO * 17);
  const scales = new Float32Array(outputs * perRow);
  const rounded = new Float32Array(values.length);
  for (let row = 0; row < outputs; row++)
    for (let block = 0; block < perRow; block++) {
      const start = row * inputs + block * BLOCK;
      const part = values.subarray(start, Math.min(start + BLOCK, (row + 1) * inputs));
      const scale = part.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 7 || 1;
      const place = row * perRow + block;
      scales[place] = scale;
      for (const [i, value] of part.entries()) {
        const level = Math.round(value / scales[place]);
        rounded[start + i] = level * scales[place];
        const at = place * (BLOCK / 2) + (i >> 1);
        const shift = 4 * (i % 2);
        bytes[at] = (bytes[at] & ~(15 << shift)) | ((level + ZERO) << shift);
      }
    }
  return { bytes, scales, rounded, perRow };
}

/**
 * Weights of four bits in `MatMulNBits`, or `isRounded`: the same values as 32-bit floats. The embedding keeps 32 bits.
 * @param chunks as for `float32Weights`
 */
export function int4Weights({ chunks, sizes, isRounded }) {
  const blocks = (name, inputs) => {
    const [{ buffer, byteOffset, byteLength }] = chunks(`${name}.weight`, false);
    return toBlocks(new Float32Array(buffer, byteOffset, byteLength / 4), inputs);
  };
  return {
    ...float32Weights({ chunks, sizes }),
    linear: (graph, input, name) => {
      const [inputs, outputs] = sizes(`${name}.weight`);
      const { bytes, scales, rounded, perRow } = blocks(name, inputs);
      const buffer = (array) => Buffer.from(array.buffer);
      if (isRounded) {
        const weight = graph.weight(`${name}.weight`, 'float32', [outputs, inputs], buffer(rounded));
        return graph.add('MatMul', [input, graph.add('Transpose', [weight], { perm: [1, 0] })]);
      }
      const weight = graph.weight(`${name}.q4`, 'uint8', [outputs, perRow, BLOCK / 2], buffer(bytes));
      const scale = graph.weight(`${name}.scales`, 'float32', [outputs * perRow], buffer(scales));
      const settings = { K: inputs, N: outputs, bits: 4, block_size: BLOCK };
      graph.addMany('MatMulNBits', [input, weight, scale], [`${name}.out`], settings, 'com.microsoft');
      return `${name}.out`;
    },
  };
}

/**
 * Signed bytes with one scale per matrix.
 * @param chunks name of a tensor -> Buffers: bytes of a matrix (inputs, outputs), 32-bit floats of a vector
 * @param scale name of a matrix -> what one step of a byte stands for
 */
export function int8Weights({ chunks, sizes, scale }) {
  const times = (graph, input, name, dims) => {
    const weight = graph.weight(`${name}.bytes`, 'int8', dims, chunks(name));
    const outputs = [`${name}.quantized`, `${name}.input_scale`, `${name}.input_zero`];
    graph.addMany('DynamicQuantizeLinear', [input], outputs);
    const product = graph.add('MatMulInteger', [outputs[0], weight, outputs[2]]);
    const factor = graph.add('Mul', [outputs[1], graph.float(scale(name))]);
    return graph.add('Mul', [graph.add('Cast', [product], { to: 1 }), factor]);
  };
  return {
    embedding: (graph, ids, { vocabSize, width }) => {
      const name = 'token_embd.weight';
      const rows = graph.weight(`${name}.rows`, 'int8', [vocabSize, width], chunks(name));
      const found = graph.add('Cast', [graph.add('Gather', [rows, ids])], { to: 1 });
      return graph.add('Mul', [found, graph.float(scale(name))]);
    },
    vector: (graph, name) => graph.weight(name, 'float32', [sizes(name)[0]], chunks(name)),
    linear: (graph, input, name) => times(graph, input, `${name}.weight`, sizes(`${name}.weight`)),
    head: (graph, hidden, { width, vocabSize }) =>
      times(graph, hidden, 'token_embd.weight', [width, vocabSize]),
  };
}
