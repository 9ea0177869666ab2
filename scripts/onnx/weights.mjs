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
