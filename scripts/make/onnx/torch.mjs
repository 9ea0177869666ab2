// A llama-shaped decoder's sizes and weights -> an ONNX graph as torch's exporter writes it, with sizes computed by chains of
// small operators; or two of them merged, one for an empty cache and one for a single token, chosen by `use_cache_branch`.
import { Graph } from './graph.mjs';
import { TYPES } from './proto.mjs';
import { attention, causalMask, merelyPadding, rotary } from './torch-attention.mjs';

/** Opset that such exports declare. */
const OPSET = 14;

/**
 * Writes the decoder.
 * @param options type: float32, or float16 for everything; positions: whether it takes position_ids; lastRows: whether it takes
 *   num_logits_to_keep; isMerged: two decoders in one; isScaledFirst: attention as `scaled_dot_product_attention`, or written
 *   out; dataFiles: how many files beside the graph weights lie in; takesEmbeddings: inputs_embeds in the place of input_ids
 */
export function writeTorch(file, shape, weights, options = {}) {
  const { type = 'float32', positions = true, lastRows = false, isMerged = false, dataFiles = 0 } = options;
  const graph = new Graph(file, { dataFiles, opset: OPSET, hasConstantNodes: true });
  const { takesEmbeddings = false } = options;
  const ids = takesEmbeddings
    ? graph.input('inputs_embeds', type, ['batch_size', 'sequence_length', shape.width])
    : graph.input('input_ids', 'int64', ['batch_size', 'sequence_length']);
  const mask = graph.input('attention_mask', 'int64', [
    'batch_size',
    'past_sequence_length + sequence_length',
  ]);
  const given = positions ? graph.input('position_ids', 'int64', ['batch_size', 'sequence_length']) : null;
  const kept = lastRows ? graph.input('num_logits_to_keep', 'int64', []) : null;
  const cacheDims = ['batch_size', shape.kvHeads, 'past_sequence_length', shape.headSize];
  const past = Array.from({ length: shape.layers }, (_, layer) =>
    ['key', 'value'].map((part) => graph.input(`past_key_values.${layer}.${part}`, type, cacheDims)),
  );
  const context = {
    graph,
    shape,
    weights,
    type,
    takesEmbeddings,
    isScaledFirst: options.isScaledFirst ?? true,
  };
  const inputs = { ids, mask, given, kept };
  if (isMerged) {
    const branch = graph.input('use_cache_branch', 'bool', [1]);
    graph.choose(
      branch,
      () => decode(context, inputs, past, merelyPadding),
      () => decode(context, inputs, null, causalMask),
    );
  } else decode(context, inputs, past, causalMask);
  graph.save();
}

/** Builds the graph from ids to logits. `past`: the cache of each layer, or null if no cache is read. */
function decode(context, { ids, mask, given, kept }, past, makeMask) {
  const { graph, shape, weights, type, takesEmbeddings } = context;
  if (takesEmbeddings) weights.table(graph, shape); // the head's
  let hidden = takesEmbeddings ? ids : weights.embedding(graph, ids, shape);
  const length = size(graph, ids, 1);
  const before = past ? size(graph, past[0][0], 2) : graph.ints([0], []);
  const total = graph.add('Add', [before, length]);
  const places = graph.add('Range', [before, total, graph.ints([1], [])]);
  const bias = makeMask(context, { ids, mask, length, places });
  const angles = rotary(context, given ?? graph.add('Unsqueeze', [places, graph.ints([0])]));
  for (let layer = 0; layer < shape.layers; layer++) {
    const name = `blk.${layer}`;
    const normed = norm(context, hidden, `${name}.attn_norm`);
    const attended = attention(context, { hidden: normed, layer, past: past?.[layer], bias, angles });
    const middle = graph.add('Add', [hidden, weights.linear(graph, attended, `${name}.attn_output`)]);
    const input = norm(context, middle, `${name}.ffn_norm`);
    const gate = weights.linear(graph, input, `${name}.ffn_gate`);
    const active = graph.add('Mul', [gate, graph.add('Sigmoid', [gate])]);
    const product = graph.add('Mul', [active, weights.linear(graph, input, `${name}.ffn_up`)]);
    hidden = graph.add('Add', [middle, weights.linear(graph, product, `${name}.ffn_down`)]);
  }
  hidden = norm(context, hidden, 'output_norm');
  if (kept !== null) {
    const start = graph.add('Unsqueeze', [graph.add('Neg', [kept]), graph.ints([0])]);
    const rest = [graph.ints([LAST]), graph.ints([1]), graph.ints([1])];
    hidden = graph.add('Slice', [hidden, start, ...rest]);
  }
  const logits = weights.head(graph, hidden, shape);
  graph.add('Cast', [logits], { to: TYPES[type] }, 'logits');
  graph.output('logits', type, ['batch_size', 'sequence_length', shape.vocabSize]);
}

const LAST = 2n ** 63n - 1n;

const size = (graph, tensor, axis) =>
  graph.add('Gather', [graph.add('Shape', [tensor]), graph.ints([axis], [])], { axis: 0 });

function norm({ graph, shape, weights, type }, input, name) {
  const square = graph.add('Pow', [input, graph.float(2, type)]);
  const mean = graph.add('ReduceMean', [square], { axes: [-1], keepdims: 1 });
  const root = graph.add('Sqrt', [graph.add('Add', [mean, graph.float(shape.rmsEpsilon, type)])]);
  const scaled = graph.add('Mul', [input, graph.add('Div', [graph.float(1, type), root])]);
  return graph.add('Mul', [weights.vector(graph, `${name}.weight`), scaled]);
}
