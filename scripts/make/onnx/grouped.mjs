// A llama-shaped decoder's sizes and weights -> an ONNX graph as onnxruntime's own model builder writes it: fused norms, and
// one attention operator a layer that takes the lengths of the rows.
import { Graph } from './graph.mjs';

const OPSET = 21;

/**
 * Writes the decoder.
 * @param options type: float32, or float16 for everything; positions: whether it takes position_ids, and queries and keys are
 *   turned by an operator of their own; isPacked: one matrix gives queries, keys and values; lastRows: whether it takes
 *   num_logits_to_keep; dataFiles: how many files beside the graph weights lie in
 */
export function writeGrouped(file, shape, weights, options = {}) {
  const { type = 'float32', positions = false, isPacked = false, lastRows = false, dataFiles = 0 } = options;
  const graph = new Graph(file, { dataFiles, opset: OPSET });
  const ids = graph.input('input_ids', 'int64', ['batch_size', 'sequence_length']);
  const mask = graph.input('attention_mask', 'int64', ['batch_size', 'total_sequence_length']);
  const given = positions ? graph.input('position_ids', 'int64', ['batch_size', 'sequence_length']) : null;
  const kept = lastRows ? graph.input('num_logits_to_keep', 'int64', []) : null;
  const tables = rotaryTables(graph, shape, type);
  const context = { graph, shape, weights, type, isPacked, given, tables, ...lengths(graph, mask) };
  const norm = (input, name) =>
    graph.add(
      'SimplifiedLayerNormalization',
      [input, weights.vector(graph, `${name}.weight`)],
      normSettings(shape),
    );
  let sum = weights.embedding(graph, ids, shape);
  let normed = norm(sum, 'blk.0.attn_norm');
  const addAndNorm = (added, name) => {
    const outputs = [`${name}.out`, '', '', `${name}.sum`];
    const inputs = [sum, added, weights.vector(graph, `${name}.weight`)];
    const { epsilon } = normSettings(shape);
    graph.addMany('SkipSimplifiedLayerNormalization', inputs, outputs, { epsilon }, 'com.microsoft');
    [normed, , , sum] = outputs;
  };
  for (let layer = 0; layer < shape.layers; layer++) {
    const name = `blk.${layer}`;
    addAndNorm(
      weights.linear(graph, attend(context, normed, layer), `${name}.attn_output`),
      `${name}.ffn_norm`,
    );
    const gate = weights.linear(graph, normed, `${name}.ffn_gate`);
    const active = graph.add('Mul', [gate, graph.add('Sigmoid', [gate])]);
    const product = graph.add('Mul', [active, weights.linear(graph, normed, `${name}.ffn_up`)]);
    const isLast = layer === shape.layers - 1;
    const next = isLast ? 'output_norm' : `blk.${layer + 1}.attn_norm`;
    addAndNorm(weights.linear(graph, product, `${name}.ffn_down`), next);
  }
  if (kept !== null) {
    const start = graph.add('Unsqueeze', [graph.add('Neg', [kept]), graph.ints([0])]);
    normed = graph.add('Slice', [normed, start, graph.ints([2n ** 63n - 1n]), graph.ints([1])]);
  }
  graph.add('Identity', [weights.head(graph, normed, shape)], {}, 'logits');
  graph.output('logits', type, ['batch_size', 'sequence_length', shape.vocabSize]);
  graph.save();
}

const normSettings = ({ rmsEpsilon }) => ({ axis: -1, epsilon: { float: rmsEpsilon }, stash_type: 1 });

/** Lengths of the rows less one, and the longest length. */
function lengths(graph, mask) {
  const counts = graph.add('ReduceSum', [mask, graph.ints([1])], { keepdims: 0 });
  const rows = graph.add('Cast', [graph.add('Sub', [counts, graph.ints([1])])], { to: 6 });
  const width = graph.add('Gather', [graph.add('Shape', [mask]), graph.ints([1], [])], { axis: 0 });
  return { rows, total: graph.add('Cast', [width], { to: 6 }) };
}

/** Cosines and sines, (context, headSize / 2). */
function rotaryTables(graph, { contextLength, headSize, ropeBase }, type) {
  const half = headSize / 2;
  return [Math.cos, Math.sin].map((of) => {
    const values = Float32Array.from({ length: contextLength * half }, (_, i) =>
      of(Math.floor(i / half) * ropeBase ** (-(i % half) / half)),
    );
    return graph.floats(of === Math.cos ? 'cos_cache' : 'sin_cache', type, [contextLength, half], values);
  });
}

function attend(context, input, layer) {
  const { graph, shape, weights, type, isPacked, given, tables, rows, total } = context;
  const { heads, kvHeads, headSize } = shape;
  const name = `blk.${layer}`;
  const parts = isPacked
    ? [weights.linear(graph, input, `${name}.attn_qkv`), '', '']
    : ['q', 'k', 'v'].map((part) => weights.linear(graph, input, `${name}.attn_${part}`));
  if (given !== null)
    for (const [i, count] of [heads, kvHeads].entries())
      parts[i] = graph.addFused('RotaryEmbedding', [parts[i], given, ...tables], { num_heads: count });
  const dims = ['batch_size', kvHeads];
  const [past, present] = [[], []];
  for (const part of ['key', 'value']) {
    past.push(
      graph.input(`past_key_values.${layer}.${part}`, type, [...dims, 'past_sequence_length', headSize]),
    );
    present.push(`present.${layer}.${part}`);
    graph.output(present.at(-1), type, [...dims, 'total_sequence_length', headSize]);
  }
  const output = `${name}.attention`;
  const settings = {
    num_heads: heads,
    kv_num_heads: kvHeads,
    scale: { float: headSize ** -0.5 },
    local_window_size: -1,
  };
  graph.addMany(
    'GroupQueryAttention',
    [...parts, ...past, rows, total, ...(given === null ? tables : [])],
    [output, ...present],
    { ...settings, do_rotary: given === null ? 1 : 0, rotary_interleaved: 0 },
    'com.microsoft',
  );
  return output;
}
