/**
 * Matmuls of one tensor with several matrices -> one matmul with concatenated matrices, split again. Threads wait for each other at every
 * matmul. onnxruntime concatenates the matrices once, when it loads the graph.
 */
import { type GraphNode, MICROSOFT, makeNode, type WeightShape } from './graph-file.ts';
import { Links } from './links.ts';

/** Fewest matmuls to join, such as queries, keys and values. With two, splitting the results of a prompt costs as much as is gained. */
const FEWEST = 3;
/** Number of inputs of `MatMulIntegerToFloat` before its bias. */
const BYTE_INPUTS = 6;

/** Returns the same nodes with fewer matmuls. `weights`: the shapes of constants. */
export function joinMatmuls(
  nodes: readonly GraphNode[],
  weights: ReadonlyMap<string, WeightShape>,
): GraphNode[] {
  const links = new Links(nodes);
  const groups = new Map<string, GraphNode[]>();
  for (const node of nodes) {
    const kind = kindOf(node, links, weights);
    if (kind !== null) groups.set(kind, [...(groups.get(kind) ?? []), node]);
  }
  const joined = new Map<GraphNode, GraphNode[]>();
  for (const group of groups.values())
    if (group.length >= FEWEST)
      for (const node of group) joined.set(node, node === group[0] ? join(group, weights) : []);
  return nodes.flatMap((node) => joined.get(node) ?? [node]);
}

/** Returns a text that is equal for matmuls that can be joined. Returns null for one that cannot be joined. */
function kindOf(node: GraphNode, links: Links, weights: ReadonlyMap<string, WeightShape>): string | null {
  const { opType, inputs } = node;
  const { type, sizes = [] } = weights.get(inputs[1] ?? '') ?? {};
  if (sizes.length !== 2) return null;
  const [height, width] = sizes;
  if (opType === 'MatMul') return [opType, inputs[0], type, height].join();
  if (opType !== 'MatMulIntegerToFloat' || inputs.length > BYTE_INPUTS) return null;
  const [bytes, , scale, factor, zero, origin] = inputs;
  const quantized = links.maker(bytes, 'DynamicQuantizeLinear');
  if (!quantized || scale !== quantized.outputs[1] || (zero ?? '') !== quantized.outputs[2]) return null;
  const isPerColumn = (name: string): boolean => {
    const { sizes: of } = weights.get(name) ?? {};
    return of !== undefined && (of.length === 0 || (of.length === 1 && (of[0] === 1 || of[0] === width)));
  };
  if (!isPerColumn(factor!) || (origin && !isPerColumn(origin))) return null;
  return [opType, quantized.inputs[0], type, height, origin ? 'origins' : ''].join();
}

/** Returns one matmul that replaces several. */
function join(group: readonly GraphNode[], weights: ReadonlyMap<string, WeightShape>): GraphNode[] {
  const { opType, inputs } = group[0]!;
  const name = (part: string): string => `joined/${group[0]!.outputs[0]}/${part}`;
  const widths = group.map((node) => weights.get(node.inputs[1]!)!.sizes[1]!);
  const made: GraphNode[] = [makeNode('Constant', [], [name('widths')], { value_ints: widths })];
  const joinedInputs = [...inputs];
  const put = (place: number, parts: readonly string[], axis: number): void => {
    joinedInputs[place] = name(`${place}`);
    made.push(makeNode('Concat', parts, [name(`${place}`)], { axis }));
  };
  put(
    1,
    group.map((node) => node.inputs[1]!),
    1,
  );
  for (const place of [3, 5]) {
    if (!inputs[place]) continue; // scales and zero points, one per column
    const parts = group.map((node, i) => {
      const [size, part] = [name(`${place}/size/${i}`), name(`${place}/${i}`)];
      made.push(
        makeNode('Constant', [], [size], { value_ints: [widths[i]!] }),
        makeNode('Expand', [node.inputs[place]!, size], [part]),
      );
      return part;
    });
    put(place, parts, 0);
  }
  const outputs = group.map((node) => node.outputs[0]!);
  return [
    ...made,
    makeNode(opType, joinedInputs, [name('matmul')], {}, opType === 'MatMul' ? '' : MICROSOFT),
    makeNode('Split', [name('matmul'), name('widths')], outputs, { axis: -1 }),
  ];
}
