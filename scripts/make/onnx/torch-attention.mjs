// Masks, rotary embedding and attention as torch's exporter writes them: every size is taken from a tensor's shape.
import { TYPES } from './proto.mjs';

const LOWEST = { float32: -3.4028234663852886e38, float16: -65504 };
const LAST = 2n ** 63n - 1n;

const size = (graph, tensor, axis) =>
  graph.add('Gather', [graph.add('Shape', [tensor]), graph.ints([axis], [])], { axis: 0 });

/** A shape of numbers and of scalars that were computed. */
function dims(graph, ...sizes) {
  const parts = sizes.map((one) =>
    typeof one === 'number' ? graph.ints([one]) : graph.add('Unsqueeze', [one, graph.ints([0])]),
  );
  return graph.add('Concat', parts, { axis: 0 });
}

/** torch's `expand`, in which -1 keeps a size. */
function expand(graph, tensor, ...sizes) {
  const wanted = dims(graph, ...sizes);
  const ones = graph.add('Expand', [graph.ints([1]), graph.add('Shape', [wanted])]);
  const isKept = graph.add('Equal', [wanted, graph.add('Mul', [ones, graph.ints([-1])])]);
  return graph.add('Expand', [tensor, graph.add('Where', [isKept, ones, wanted])]);
}

const slice = (graph, tensor, from, to, axis) =>
  graph.add('Slice', [tensor, from, to, graph.ints([axis]), graph.ints([1])]);

/** The mask of recent versions: a triangle from the places of new tokens, into which padding is written. */
export function causalMask({ graph, type }, { ids, mask, length, places }) {
  const rows = size(graph, ids, 0);
  const width = size(graph, mask, 1);
  const lowest = graph.float(LOWEST[type], type);
  const full = graph.add('Expand', [lowest, dims(graph, length, width)]);
  const triangle = graph.add('Trilu', [full, graph.ints([1], [])], { upper: 1 });
  const columns = graph.add('Range', [graph.ints([0], []), width, graph.ints([1], [])]);
  const isLater = graph.add('Greater', [columns, graph.add('Reshape', [places, graph.ints([-1, 1])])]);
  const masked = graph.add('Mul', [triangle, graph.add('Cast', [isLater], { to: TYPES[type] })]);
  const planes = graph.add('Unsqueeze', [graph.add('Unsqueeze', [masked, graph.ints([0])]), graph.ints([1])]);
  const causal = expand(graph, planes, rows, 1, -1, -1);
  const end = graph.add('Unsqueeze', [width, graph.ints([0])]);
  const seen = slice(graph, causal, graph.ints([0]), end, 3);
  const given = graph.add('Unsqueeze', [graph.add('Unsqueeze', [mask, graph.ints([1])]), graph.ints([2])]);
  const sum = graph.add('Add', [seen, graph.add('Cast', [given], { to: TYPES[type] })]);
  const isPadding = graph.add('Equal', [sum, graph.float(0, type)]);
  const filled = graph.add('Where', [isPadding, lowest, seen]);
  const all = graph.add('Range', [graph.ints([0], []), rows, graph.ints([1], [])]);
  return graph.add('ScatterND', [causal, graph.add('Unsqueeze', [all, graph.ints([1])]), filled]);
}

/** The mask of a decoder that was traced with one new token: it hides padding alone. */
export function merelyPadding({ graph, type }, { ids, mask, length }) {
  const given = graph.add('Unsqueeze', [graph.add('Unsqueeze', [mask, graph.ints([1])]), graph.ints([2])]);
  const wide = expand(graph, given, size(graph, ids, 0), 1, length, size(graph, mask, 1));
  const inverted = graph.add('Sub', [graph.float(1, type), graph.add('Cast', [wide], { to: TYPES[type] })]);
  const isHidden = graph.add('Cast', [inverted], { to: TYPES.bool });
  return graph.add('Where', [isHidden, graph.float(LOWEST[type], type), inverted]);
}

/** Cosines and sines of the angles of these positions, (rows, 1, tokens, headSize). */
export function rotary({ graph, shape, type }, positions) {
  const half = shape.headSize / 2;
  const frequencies = Float32Array.from({ length: half }, (_, i) => shape.ropeBase ** (-i / half));
  const constant = graph.weight(
    'rotary_emb.inv_freq',
    'float32',
    [1, half, 1],
    Buffer.from(frequencies.buffer),
  );
  const wide = expand(graph, constant, size(graph, positions, 0), -1, 1);
  const numbers = graph.add('Cast', [graph.add('Unsqueeze', [positions, graph.ints([1])])], {
    to: TYPES.float32,
  });
  const turned = graph.add('Transpose', [graph.add('MatMul', [wide, numbers])], { perm: [0, 2, 1] });
  const angles = graph.add('Concat', [turned, turned], { axis: -1 });
  return ['Cos', 'Sin'].map((opType) => {
    const scaled = graph.add('Mul', [graph.add(opType, [angles]), graph.float(1)]);
    return graph.add('Unsqueeze', [graph.add('Cast', [scaled], { to: TYPES[type] }), graph.ints([1])]);
  });
}

function rotate(graph, input, [cos, sin]) {
  const whole = size(graph, input, 3);
  const middle = graph.add('Unsqueeze', [graph.add('Div', [whole, graph.ints([2], [])]), graph.ints([0])]);
  const first = slice(graph, input, graph.ints([0]), middle, 3);
  const second = slice(graph, input, middle, graph.ints([LAST]), 3);
  const swapped = graph.add('Concat', [graph.add('Neg', [second]), first], { axis: -1 });
  return graph.add('Add', [graph.add('Mul', [input, cos]), graph.add('Mul', [swapped, sin])]);
}

/** Attention of a layer, and its keys and values as outputs. */
export function attention(context, { hidden, layer, past, bias, angles }) {
  const { graph, shape, weights, type, isScaledFirst } = context;
  const { heads, kvHeads, headSize } = shape;
  const [rows, length] = [size(graph, hidden, 0), size(graph, hidden, 1)];
  const split = (part, count) => {
    const flat = weights.linear(graph, hidden, `blk.${layer}.attn_${part}`);
    const parted = graph.add('Reshape', [flat, dims(graph, rows, length, count, headSize)]);
    return graph.add('Transpose', [parted], { perm: [0, 2, 1, 3] });
  };
  const query = rotate(graph, split('q', heads), angles);
  const fresh = [rotate(graph, split('k', kvHeads), angles), split('v', kvHeads)];
  const [keys, values] = ['key', 'value'].map((part, i) => {
    const present = `present.${layer}.${part}`;
    graph.output(present, type, ['batch_size', kvHeads, 'past_sequence_length + sequence_length', headSize]);
    if (past) graph.add('Concat', [past[i], fresh[i]], { axis: -2 }, present);
    else graph.add('Identity', [fresh[i]], {}, present);
    return repeat(graph, past ? present : fresh[i], shape);
  });
  const seen = slice(
    graph,
    bias,
    graph.ints([0]),
    graph.add('Unsqueeze', [size(graph, keys, 2), graph.ints([0])]),
    3,
  );
  const scores = isScaledFirst ? scaledFirst(context, query, keys) : scaledAfter(context, query, keys);
  const shares = graph.add('Softmax', [graph.add('Add', [scores, seen])], { axis: -1 });
  const mixed = graph.add('Transpose', [graph.add('MatMul', [shares, values])], { perm: [0, 2, 1, 3] });
  return graph.add('Reshape', [mixed, dims(graph, rows, length, heads * headSize)]);
}

/** Each head of keys or values as often as queries look at it. */
function repeat(graph, tensor, { heads, kvHeads, headSize }) {
  const [rows, length] = [size(graph, tensor, 0), size(graph, tensor, 2)];
  const parted = graph.add('Unsqueeze', [tensor, graph.ints([2])]);
  const wide = expand(graph, parted, rows, kvHeads, heads / kvHeads, length, headSize);
  return graph.add('Reshape', [wide, dims(graph, rows, heads, length, headSize)]);
}

/** Both sides are multiplied with the root of the scale. */
function scaledFirst({ graph, type }, query, keys) {
  const last = slice(graph, graph.add('Shape', [query]), graph.ints([-1]), graph.ints([LAST]), 0);
  const width = graph.add('Sqrt', [graph.add('Cast', [last], { to: TYPES[type] })]);
  const root = graph.add('Sqrt', [graph.add('Div', [graph.float(1, type), width])]);
  const turned = graph.add('Transpose', [keys], { perm: [0, 1, 3, 2] });
  return graph.add('MatMul', [graph.add('Mul', [query, root]), graph.add('Mul', [turned, root])]);
}

function scaledAfter({ graph, shape, type }, query, keys) {
  const turned = graph.add('Transpose', [keys], { perm: [0, 1, 3, 2] });
  const product = graph.add('MatMul', [query, turned]);
  return graph.add('Div', [product, graph.float(shape.headSize ** 0.5, type)]);
}
