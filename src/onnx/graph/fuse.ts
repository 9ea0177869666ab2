/**
 * Attention as an exporter writes it, about thirty operators per layer -> rotary embedding of queries and keys, and one
 * `GroupQueryAttention`. Only some operators are matched; those between them are known from the architecture.
 */

import type { DecoderSizes } from '../messages.ts';
import { FLOAT32, type FreshGraph, GROUPED } from './fresh.ts';
import { attributeOf, type GraphFile, type GraphNode, MICROSOFT, makeNode } from './graph-file.ts';
import { Links, needed } from './links.ts';
import { simplify } from './simplify.ts';

/** Architectures whose attention is causal, over all tokens, of rotated queries and keys, scaled by the root of a head's size. */
const ARCHITECTURES = new Set(['llama', 'mistral', 'qwen2', 'qwen3']);
/** Opset of the operators that are added. */
const OPSET = 13;
const INT32 = 6;

/** Inputs of one layer's attention, as tensors of (rows, tokens, heads * size). */
type Layer = {
  readonly query: Rotated;
  readonly key: Rotated;
  readonly value: string;
  readonly output: string;
};
type Rotated = { readonly input: string; readonly cos: string; readonly sin: string };

/**
 * Returns the same graph with fused attention, which outputs keys and values of new tokens only. Returns null if its structure is unknown.
 */
export function fuseAttention(file: GraphFile, sizes: DecoderSizes): FreshGraph | null {
  const { inputs } = file;
  const isKnown = ARCHITECTURES.has(sizes.architecture) && !sizes.hasWindow && sizes.headSize % 16 === 0;
  if (!isKnown || file.hasBranches || file.opset < OPSET) return null;
  if (!inputs.has('position_ids') || !inputs.has('attention_mask')) return null;
  if (inputs.get('past_key_values.0.key') !== FLOAT32 || sizes.queryHeads % sizes.heads !== 0) return null;
  const links = new Links(file.nodes);
  const added: GraphNode[] = [...lengthNodes()];
  const tables = new Map<string, GraphNode[]>(); // by the angles that they are computed from
  const freshOf = new Map<string, string>();
  for (let index = 0; file.outputs.has(`present.${index}.key`); index++) {
    const layer = findLayer(links, index);
    if (!layer) return null;
    const made = attentionNodes(layer, index, sizes);
    for (const { cos, sin } of [layer.query, layer.key])
      for (const angles of [cos, sin]) tables.set(angles, tableNodes(angles, sizes.headSize));
    added.push(...made.nodes);
    freshOf.set(`present.${index}.key`, made.freshKey);
    // The numbers are the same before heads are split from each other.
    const { value } = layer;
    freshOf.set(`present.${index}.value`, links.maker(value, 'Reshape')?.inputs[0] ?? value);
  }
  const outputs = [...file.outputs.keys()].map((name) => freshOf.get(name) ?? name);
  const replaced = new Set(added.flatMap((node) => node.outputs));
  const kept = file.nodes.filter((node) => !node.outputs.some((output) => replaced.has(output)));
  const all = [...kept, ...added, ...[...tables.values()].flat()];
  const nodes = needed(simplify(all, file, FLAT), outputs);
  // Other nodes that read the past or the mask would find it in another form.
  const strangers = nodes.filter(
    (node) => node.opType !== GROUPED && node.inputs.some((name) => name.startsWith('past_key_values.')),
  );
  return strangers.length === 0 ? { nodes, outputs, freshOf, layout: 'tokens' } : null;
}

/** Finds the inputs of a layer's attention. */
function findLayer(links: Links, index: number): Layer | null {
  const [keys, values] = ['key', 'value'].map((part) => {
    const join = links.maker(`present.${index}.${part}`, 'Concat');
    return join?.inputs[0] === `past_key_values.${index}.${part}` ? join : null;
  });
  if (!keys || !values) return null;
  const scores = links.after(keys.outputs[0]!, 'MatMul');
  const softmax = scores && links.after(scores.outputs[0]!, 'Softmax');
  const mixed = softmax && links.after(softmax.outputs[0]!, 'MatMul');
  if (!mixed || links.after(values.outputs[0]!, 'MatMul') !== mixed) return null;
  const turned = links.before(scores.inputs[0]!, 'Concat'); // halves of the query, swapped
  const query = turned && findRotatedWith(links, turned);
  const key = findRotated(links, keys.inputs[1]!);
  const value = splitOf(links, values.inputs[1]!);
  const output = joinedOf(links, mixed.outputs[0]!);
  return query && key && value && output ? { query, key, value, output } : null;
}

/** Returns the rotated tensor that `turned` is a part of. */
function findRotatedWith(links: Links, turned: GraphNode): Rotated | null {
  for (const matmul of links.users(turned.outputs[0]!))
    for (const sum of links.users(matmul.outputs[0]!)) {
      const found = findRotated(links, sum.outputs[0]!);
      if (found) return found;
    }
  return null;
}

/** x * cos + swapped(x) * sin, where the halves of x are swapped and the first one negated. */
function findRotated(links: Links, name: string): Rotated | null {
  const sum = links.maker(name, 'Add');
  for (const [i, j] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const straight = links.maker(sum?.inputs[i], 'Mul');
    const swapped = links.maker(sum?.inputs[j], 'Mul');
    for (const side of [0, 1]) {
      const turned = links.maker(swapped?.inputs[side], 'Concat');
      const negated = links.maker(turned?.inputs[0], 'Neg');
      const halves = [negated?.inputs[0], turned?.inputs[1]].map((half) =>
        links.maker(half, 'Slice', 'Split'),
      );
      const source = halves[0]?.inputs[0];
      if (!straight || !source || halves[1]?.inputs[0] !== source) continue;
      const input = splitOf(links, source);
      const place = straight.inputs.indexOf(source);
      if (input && place >= 0)
        return { input, cos: straight.inputs[1 - place]!, sin: swapped!.inputs[1 - side]! };
    }
  }
  return null;
}

/** Returns the tensor of (rows, tokens, ...) that was transposed to (rows, heads, tokens, size). */
function splitOf(links: Links, name: string): string | null {
  const transposed = links.maker(name, 'Transpose');
  if (attributeOf(transposed ?? NOTHING, 'perm').join() !== '0,2,1,3') return null;
  return transposed!.inputs[0]!;
}

const NOTHING = makeNode('', [], []);

/** Returns the last of the operators that concatenate heads. */
function joinedOf(links: Links, name: string): string | null {
  let [last, isTurned] = [name, false];
  for (;;) {
    const users = links.users(last);
    const [user] = users;
    if (users.length !== 1 || !['Reshape', 'Transpose'].includes(user!.opType)) break;
    isTurned ||= user!.opType === 'Transpose';
    last = user!.outputs[0]!;
  }
  return isTurned ? last : null;
}

const LENGTHS = 'fused/lengths';
const TOTAL = 'fused/total';
const PLACES = 'fused/places';
const FLAT = 'fused/flat';

/** Returns nodes that all layers share: lengths of the rows less one, the longest length, and a number for every new token. */
function lengthNodes(): GraphNode[] {
  const name = (part: string): string => `fused/${part}`;
  return [
    makeNode('Constant', [], [name('zero')], { value_int: 0 }),
    makeNode('Constant', [], [name('one')], { value_int: 1 }),
    makeNode('Constant', [], [name('columns')], { value_ints: [1] }),
    makeNode('Constant', [], [FLAT], { value_ints: [0, 0, -1] }),
    makeNode('ReduceSum', ['attention_mask', name('columns')], [name('counts')], { keepdims: 0 }),
    makeNode('Sub', [name('counts'), name('one')], [name('last')]),
    makeNode('Cast', [name('last')], [LENGTHS], { to: INT32 }),
    makeNode('Shape', ['attention_mask'], [name('mask_shape')]),
    makeNode('Gather', [name('mask_shape'), name('one')], [name('width')], { axis: 0 }),
    makeNode('Cast', [name('width')], [TOTAL], { to: INT32 }),
    makeNode('Size', ['position_ids'], [name('size')]),
    makeNode('Range', [name('zero'), name('size'), name('one')], [name('range')]),
    makeNode('Shape', ['position_ids'], [name('shape')]),
    makeNode('Reshape', [name('range'), name('shape')], [PLACES]),
  ];
}

/** Name of the table of cosines or sines of these angles. */
const tableOf = (angles: string): string => `fused/table/${angles}`;

/**
 * Returns nodes for tables with one row per new token, so that the graph's computation of angles does not matter. Both halves of a row are
 * equal.
 */
function tableNodes(angles: string, headSize: number): GraphNode[] {
  const name = (part: string): string => `${tableOf(angles)}/${part}`;
  return [
    makeNode('Constant', [], [name('rows')], { value_ints: [-1, headSize] }),
    makeNode('Constant', [], [name('start')], { value_ints: [0] }),
    makeNode('Constant', [], [name('end')], { value_ints: [headSize / 2] }),
    makeNode('Constant', [], [name('axis')], { value_ints: [1] }),
    makeNode('Reshape', [angles, name('rows')], [name('all')]),
    makeNode('Slice', ['all', 'start', 'end', 'axis'].map(name), [tableOf(angles)]),
  ];
}

function attentionNodes(
  { query, key, value, output }: Layer,
  index: number,
  { queryHeads, heads }: DecoderSizes,
): { nodes: GraphNode[]; freshKey: string } {
  const name = (part: string): string => `fused/${index}/${part}`;
  const flat = (input: string, part: string): GraphNode => makeNode('Reshape', [input, FLAT], [name(part)]);
  const rotate = (part: string, { cos, sin }: Rotated, count: number): GraphNode =>
    makeNode(
      'RotaryEmbedding',
      [name(`${part}/flat`), PLACES, tableOf(cos), tableOf(sin)],
      [name(part)],
      { num_heads: count },
      MICROSOFT,
    );
  const past = ['key', 'value'].map((part) => `past_key_values.${index}.${part}`);
  return {
    nodes: [
      flat(query.input, 'query/flat'),
      flat(key.input, 'key/flat'),
      flat(value, 'value'),
      rotate('query', query, queryHeads),
      rotate('key', key, heads),
      makeNode(
        GROUPED,
        [name('query'), name('key'), name('value'), ...past, LENGTHS, TOTAL],
        [output, name('keys'), name('values')],
        { num_heads: queryHeads, kv_num_heads: heads },
        MICROSOFT,
      ),
    ],
    freshKey: name('key'),
  };
}
