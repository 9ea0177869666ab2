/** Operators of a decoder -> fewer operators: each costs some microseconds at every token. */
import { type GraphFile, type GraphNode, MICROSOFT, makeNode } from './graph-file.ts';
import { Links } from './links.ts';
import { joinMatmuls } from './matmuls.ts';
import { fuseNorms } from './norms.ts';
import { HIDDEN_RANK, ranksOf } from './ranks.ts';

/** Returns the same nodes, simplified. `flat`: the name of the shape that merges the last dimensions. */
export function simplify(
  nodes: readonly GraphNode[],
  { floats, weights }: GraphFile,
  flat: string,
): GraphNode[] {
  const matmuls = joinMatmuls(fuseMatmuls(nodes), weights);
  return dropReshapes(fuseNorms(matmuls, floats), flat);
}

/** Fuses scaled products of bytes: four operators become one. */
function fuseMatmuls(nodes: readonly GraphNode[]): GraphNode[] {
  const links = new Links(nodes);
  return nodes.map((node) => {
    if (node.opType !== 'Mul') return node;
    for (const side of [0, 1]) {
      const matmul = links.maker(links.maker(node.inputs[side], 'Cast')?.inputs[0], 'MatMulInteger');
      const scales = links.maker(node.inputs[1 - side], 'Mul')?.inputs;
      const quantized = links.maker(matmul?.inputs[0], 'DynamicQuantizeLinear')?.outputs;
      const place = scales?.indexOf(quantized?.[1] ?? '') ?? -1;
      if (!matmul || place < 0) continue;
      const [left, right, ...zeros] = matmul.inputs as [string, string];
      const inputs = [left, right, scales![place]!, scales![1 - place]!, ...zeros];
      return makeNode('MatMulIntegerToFloat', inputs, node.outputs, {}, MICROSOFT);
    }
    return node;
  });
}

/** Drops pairs of reshapes that split a tensor into heads and merge them again. */
function dropReshapes(nodes: readonly GraphNode[], flat: string): GraphNode[] {
  const links = new Links(nodes);
  const rankOf = ranksOf(nodes);
  const sources = new Map<string, string>();
  for (const { opType, inputs, outputs } of nodes) {
    const source = opType === 'Reshape' && inputs[1] === flat && links.maker(inputs[0], 'Reshape')?.inputs[0];
    if (source && rankOf(source) === HIDDEN_RANK) sources.set(outputs[0]!, source);
  }
  return nodes.map((node) => ({ ...node, inputs: node.inputs.map((name) => sources.get(name) ?? name) }));
}
