/** Root-mean-square norms as an exporter writes them, six operators -> one. */
import { type GraphNode, makeNode } from './graph-file.ts';
import { Links } from './links.ts';

/** Returns the same nodes with each norm fused into one node. `floats`: the values of constants. */
export function fuseNorms(nodes: readonly GraphNode[], floats: ReadonlyMap<string, number>): GraphNode[] {
  const links = new Links(nodes);
  return nodes.map((node) => {
    const found = node.opType === 'Mul' ? findNorm(links, node, floats) : null;
    if (!found) return node;
    const settings = { axis: -1, epsilon: { float: found.epsilon }, stash_type: 1 };
    return makeNode('SimplifiedLayerNormalization', [found.input, found.weight], node.outputs, settings);
  });
}

type Norm = { readonly input: string; readonly weight: string; readonly epsilon: number };

/** Matches weight * (x / sqrt(mean(x * x) + epsilon)), where the quotient may be a product with the reciprocal. */
function findNorm(links: Links, { inputs }: GraphNode, floats: ReadonlyMap<string, number>): Norm | null {
  for (const side of [0, 1]) {
    const weight = inputs[1 - side]!;
    if (!links.isConstant(weight)) continue;
    const scaled = links.maker(inputs[side], 'Div', 'Mul');
    if (!scaled) continue;
    for (const place of scaled.opType === 'Div' ? [0] : [0, 1]) {
      const input = scaled.inputs[place]!;
      const other = scaled.inputs[1 - place];
      const inverse = links.maker(other, 'Div', 'Reciprocal');
      const isOne = inverse?.opType === 'Reciprocal' || floats.get(inverse?.inputs[0] ?? '') === 1;
      if (scaled.opType === 'Mul' && !isOne) continue;
      const root = scaled.opType === 'Div' ? other : inverse!.inputs.at(-1);
      const epsilon = epsilonOf(links, root, input, floats);
      if (epsilon !== null) return { input, weight, epsilon };
    }
  }
  return null;
}

/** Returns the epsilon of a root of the mean square of `input`. */
function epsilonOf(
  links: Links,
  name: string | undefined,
  input: string,
  floats: ReadonlyMap<string, number>,
): number | null {
  const sum = links.maker(links.maker(name, 'Sqrt')?.inputs[0], 'Add');
  for (const side of [0, 1]) {
    const epsilon = floats.get(sum?.inputs[side] ?? '');
    const mean = links.maker(sum?.inputs[1 - side], 'ReduceMean');
    const square = links.maker(mean?.inputs[0], 'Pow', 'Mul');
    if (epsilon === undefined || square?.inputs[0] !== input) continue;
    const isSquare =
      square.opType === 'Mul' ? square.inputs[1] === input : floats.get(square.inputs[1]!) === 2;
    if (isSquare) return epsilon;
  }
  return null;
}
