// A llama-shaped decoder's sizes and weights -> an ONNX graph in the layout of exported models: input_ids, attention_mask,
// position_ids and past_key_values.* in, logits and present.* out.
import { Graph } from './graph.mjs';
import { TYPES } from './proto.mjs';

const MASKED = -3.4e38;

/**
 * Writes the decoder.
 * @param file path of the .onnx file
 * @param shape { layers, width, heads, kvHeads, headSize, ffnWidth, vocabSize, contextLength, ropeBase, rmsEpsilon }
 * @param weights name -> how a matrix (outputs, inputs) or vector is written, see `floatWeights` and `int8Weights`
 * @param options attention: `plain` operators or the fused `grouped` one; positions: whether it takes position_ids;
 *   lastRows: whether it takes num_logits_to_keep; dataFiles: how many files beside the graph weights lie in;
 *   half: whether keys, values and logits are 16-bit floats; states: whether it gives last_hidden_state instead of logits
 */
export function writeLlama(file, shape, weights, options = {}) {
  const { attention = 'plain', positions = true, lastRows = false, dataFiles = 0, half = false } = options;
  const { states = false } = options;
  const graph = new Graph(file, { dataFiles });
  const ids = graph.input('input_ids', 'int64', ['batch_size', 'sequence_length']);
  const mask = graph.input('attention_mask', 'int64', ['batch_size', 'total_sequence_length']);
  const given = positions ? graph.input('position_ids', 'int64', ['batch_size', 'sequence_length']) : null;
  const kept = lastRows ? graph.input('num_logits_to_keep', 'int64', []) : null;
  const context = { graph, shape, weights, half };
  const attend =
    attention === 'grouped' ? groupedAttention(context, mask) : plainAttention(context, ids, mask, given);
  let hidden = weights.embedding(graph, ids, shape);
  for (let layer = 0; layer < shape.layers; layer++) hidden = block(context, hidden, layer, attend);
  hidden = norm(context, hidden, 'output_norm');
  if (kept !== null) {
    const start = graph.add('Unsqueeze', [graph.add('Neg', [kept]), graph.ints([0])]);
    hidden = graph.add('Slice', [hidden, start, graph.ints([2 ** 31]), graph.ints([1])]);
  }
  const type = half ? 'float16' : 'float32';
  const [result, name, size] = states
    ? [hidden, 'last_hidden_state', shape.width]
    : [weights.head(graph, hidden, shape), 'logits', shape.vocabSize];
  graph.add('Cast', [result], { to: TYPES[type] }, name);
  graph.output(name, type, ['batch_size', 'sequence_length', size]);
  graph.save();
}

function block(context, hidden, layer, attend) {
  const { graph } = context;
  const name = `blk.${layer}`;
  const normed = norm(context, hidden, `${name}.attn_norm`);
  const attended = linear(context, attend(normed, layer), `${name}.attn_output`);
  const middle = graph.add('Add', [hidden, attended]);
  const input = norm(context, middle, `${name}.ffn_norm`);
  const gate = linear(context, input, `${name}.ffn_gate`);
  const active = graph.add('Mul', [gate, graph.add('Sigmoid', [gate])]);
  const up = linear(context, input, `${name}.ffn_up`);
  return graph.add('Add', [middle, linear(context, graph.add('Mul', [active, up]), `${name}.ffn_down`)]);
}

const linear = ({ graph, shape, weights }, input, name) => weights.linear(graph, input, name, shape);

function norm({ graph, shape, weights }, input, name) {
  const mean = graph.add('ReduceMean', [graph.add('Mul', [input, input])], { axes: [-1], keepdims: 1 });
  const root = graph.add('Sqrt', [graph.add('Add', [mean, graph.float(shape.rmsEpsilon)])]);
  return graph.add('Mul', [graph.add('Div', [input, root]), weights.vector(graph, `${name}.weight`)]);
}

/** (context, headSize / 2) or, doubled, (context, headSize): cosines and sines of the rotary embedding. */
function rotaryTables({ graph, shape }, width) {
  const { contextLength, headSize, ropeBase } = shape;
  const half = headSize / 2;
  const cos = new Float32Array(contextLength * width);
  const sin = new Float32Array(contextLength * width);
  for (let position = 0; position < contextLength; position++)
    for (let i = 0; i < width; i++) {
      const angle = position * ropeBase ** (-(i % half) / half);
      cos[position * width + i] = Math.cos(angle);
      sin[position * width + i] = Math.sin(angle);
    }
  const table = (name, values) =>
    graph.weight(name, 'float32', [contextLength, width], Buffer.from(values.buffer));
  return [table('cos', cos), table('sin', sin)];
}

/** Past keys and values of a layer, and the names of those that come out. */
function cache({ graph, shape, half }, layer) {
  const type = half ? 'float16' : 'float32';
  const dims = ['batch_size', shape.kvHeads];
  const names = { past: [], present: [] };
  for (const part of ['key', 'value']) {
    const past = `past_key_values.${layer}.${part}`;
    names.past.push(graph.input(past, type, [...dims, 'past_sequence_length', shape.headSize]));
    names.present.push(`present.${layer}.${part}`);
    graph.output(names.present.at(-1), type, [...dims, 'total_sequence_length', shape.headSize]);
  }
  return names;
}

/** Past and fresh tokens as one tensor of 32-bit floats, which is also given out. */
function append({ graph, half }, past, fresh, present) {
  if (!half) return graph.add('Concat', [past, fresh], { axis: 2 }, present);
  const rounded = graph.add('Cast', [fresh], { to: TYPES.float16 });
  const joined = graph.add('Concat', [past, rounded], { axis: 2 }, present);
  return graph.add('Cast', [joined], { to: TYPES.float32 });
}

/** Attention as standard operators: places are told apart by the mask, so rows of a batch may be padded on the left. */
function plainAttention(context, ids, mask, positions) {
  const { graph, shape } = context;
  const { heads, kvHeads, headSize } = shape;
  const size = (of, axis) => graph.add('Gather', [graph.add('Shape', [of]), graph.ints([axis], [])]);
  const [length, total] = [size(ids, 1), size(mask, 1)];
  const past = graph.add('Sub', [total, length]);
  const range = (from) => graph.add('Range', [from, total, graph.ints([1], [])]);
  const rows = graph.add('Unsqueeze', [range(past), graph.ints([1])]);
  const causal = graph.add('LessOrEqual', [
    graph.add('Unsqueeze', [range(graph.ints([0], [])), graph.ints([0])]),
    rows,
  ]);
  const present = graph.add('Cast', [graph.add('Unsqueeze', [mask, graph.ints([1, 2, 3])])], { to: 9 });
  const bias = graph.add('Where', [graph.add('And', [causal, present]), graph.float(0), graph.float(MASKED)]);
  const places = positions ?? graph.add('Unsqueeze', [range(past), graph.ints([0])]);
  const [cos, sin] = rotaryTables(context, headSize).map((table) =>
    graph.add('Unsqueeze', [graph.add('Gather', [table, places]), graph.ints([1])]),
  );
  const split = (input, count) =>
    graph.add('Transpose', [graph.add('Reshape', [input, graph.ints([0, 0, count, headSize])])], {
      perm: [0, 2, 1, 3],
    });
  const part = (input, from, to) =>
    graph.add('Slice', [input, graph.ints([from]), graph.ints([to]), graph.ints([-1])]);
  const rotate = (input) => {
    const halves = [graph.add('Neg', [part(input, headSize / 2, headSize)]), part(input, 0, headSize / 2)];
    const turned = graph.add('Mul', [graph.add('Concat', halves, { axis: -1 }), sin]);
    return graph.add('Add', [graph.add('Mul', [input, cos]), turned]);
  };
  const group = graph.ints([0, kvHeads, heads / kvHeads, -1, headSize]);
  return (input, layer) => {
    const name = `blk.${layer}`;
    const { past: before, present: after } = cache(context, layer);
    const query = rotate(split(linear(context, input, `${name}.attn_q`), heads));
    const key = rotate(split(linear(context, input, `${name}.attn_k`), kvHeads));
    const value = split(linear(context, input, `${name}.attn_v`), kvHeads);
    const [allKeys, allValues] = [key, value].map((fresh, i) => append(context, before[i], fresh, after[i]));
    const scaled = graph.add('Mul', [graph.add('Reshape', [query, group]), graph.float(headSize ** -0.5)]);
    const keys = graph.add('Unsqueeze', [
      graph.add('Transpose', [allKeys], { perm: [0, 1, 3, 2] }),
      graph.ints([2]),
    ]);
    const scores = graph.add('Add', [graph.add('MatMul', [scaled, keys]), bias]);
    const values = graph.add('Unsqueeze', [allValues, graph.ints([2])]);
    const mixed = graph.add('MatMul', [graph.add('Softmax', [scores], { axis: -1 }), values]);
    const joined = graph.add('Reshape', [mixed, graph.ints([0, heads, -1, headSize])]);
    const turned = graph.add('Transpose', [joined], { perm: [0, 2, 1, 3] });
    return graph.add('Reshape', [turned, graph.ints([0, 0, heads * headSize])]);
  };
}

/** The fused operator: lengths of the rows come from the mask, so rows of a batch are padded on the right. */
function groupedAttention(context, mask) {
  const { graph, shape } = context;
  const { heads, kvHeads } = shape;
  const int32 = (input) => graph.add('Cast', [input], { to: 6 });
  const counts = graph.add('ReduceSum', [mask, graph.ints([1])], { keepdims: 0 });
  const lengths = int32(graph.add('Sub', [counts, graph.ints([1])]));
  const total = int32(graph.add('Gather', [graph.add('Shape', [mask]), graph.ints([1], [])]));
  const tables = rotaryTables(context, shape.headSize / 2);
  return (input, layer) => {
    const name = `blk.${layer}`;
    const { past, present } = cache(context, layer);
    const parts = ['q', 'k', 'v'].map((part) => linear(context, input, `${name}.attn_${part}`));
    const output = `attention_${layer}`;
    graph.addMany(
      'GroupQueryAttention',
      [...parts, ...past, lengths, total, ...tables],
      [output, ...present],
      { num_heads: heads, kv_num_heads: kvHeads, do_rotary: 1, scale: { float: shape.headSize ** -0.5 } },
      'com.microsoft',
    );
    return output;
  };
}
