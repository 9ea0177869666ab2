// 8-bit matrices -> products with activations that are quantized at run time.

/** Quantizes an input once for all its products: its bytes, scale and zero point. */
function quantize(graph, input) {
  const outputs = ['quantized', 'scale', 'zero'].map((part) => `${input}.${part}`);
  graph.once(outputs[0], () => graph.addMany('DynamicQuantizeLinear', [input], outputs));
  return outputs;
}

/**
 * Signed bytes with one scale per matrix.
 * @param chunks name of a tensor -> Buffers: bytes of a matrix (inputs, outputs), 32-bit floats of a vector
 * @param scale name of a matrix -> the value of one step of a byte
 */
export function int8Weights({ chunks, sizes, scale }) {
  const times = (graph, input, name, dims) => {
    const weight = graph.weight(`${name}.bytes`, 'int8', dims, chunks(name));
    const [bytes, inputScale, zero] = quantize(graph, input);
    const product = graph.add('MatMulInteger', [bytes, weight, zero]);
    const factor = graph.add('Mul', [inputScale, graph.float(scale(name))]);
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

/**
 * Unsigned bytes with a scale and a zero per matrix, as onnxruntime's dynamic quantization writes them.
 * @param chunks name of a tensor -> Buffers of its 32-bit floats, as for `floatWeights`
 */
export function uint8Weights({ chunks, sizes }) {
  const quantized = (graph, name, dims, isTurned) => {
    const [{ buffer, byteOffset, byteLength }] = [...chunks(name, isTurned)];
    const values = new Float32Array(buffer, byteOffset, byteLength / 4);
    const low = values.reduce((least, value) => Math.min(least, value), 0);
    const high = values.reduce((most, value) => Math.max(most, value), 0);
    const scale = Math.fround((high - low) / 255);
    const zero = Math.round(-low / scale);
    const bytes = Uint8Array.from(values, (value) =>
      Math.min(255, Math.max(0, Math.round(value / scale) + zero)),
    );
    const put = (part, type, size, data) =>
      graph.weight(`${name}_${part}`, type, size, Buffer.from(data.buffer));
    const place = isTurned ? `turned_` : '';
    return [
      put(`${place}quantized`, 'uint8', dims, bytes),
      put(`${place}scale`, 'float32', [], Float32Array.of(scale)),
      put(`${place}zero_point`, 'uint8', [], Uint8Array.of(zero)),
    ];
  };
  const times = (graph, input, name, dims) => {
    const [weight, scale, zero] = quantized(graph, name, dims, true);
    const [bytes, inputScale, inputZero] = quantize(graph, input);
    const product = graph.add('Cast', [graph.add('MatMulInteger', [bytes, weight, inputZero, zero])], {
      to: 1,
    });
    return graph.add('Mul', [product, graph.add('Mul', [inputScale, scale])]);
  };
  return {
    embedding: (graph, ids, { vocabSize, width }) => {
      const [rows, scale, zero] = quantized(graph, 'token_embd.weight', [vocabSize, width], false);
      return graph.add('DequantizeLinear', [graph.add('Gather', [rows, ids]), scale, zero]);
    },
    vector: (graph, name) => graph.weight(name, 'float32', [sizes(name)[0]], chunks(name, false)),
    linear: (graph, input, name) => times(graph, input, `${name}.weight`, sizes(`${name}.weight`)),
    head: (graph, hidden, { width, vocabSize }) =>
      times(graph, hidden, 'token_embd.weight', [width, vocabSize]),
  };
}
