/** The nodes of a decoder -> the rank of each tensor, as far as its operators determine it. */
import { GROUPED } from './fresh.ts';
import type { GraphNode } from './graph-file.ts';
import { Links } from './links.ts';

/** Rank of (rows, tokens, numbers). */
export const HIDDEN_RANK = 3;

/** Operators whose outputs have as many dimensions as their first input. */
const KEEPING = new Set([
  'Cast',
  'DynamicQuantizeLinear',
  'MatMul',
  'MatMulInteger',
  'MatMulIntegerToFloat',
  'MatMulNBits',
  'Sigmoid',
  'SimplifiedLayerNormalization',
  'SkipSimplifiedLayerNormalization',
  'Split',
]);

/** Returns a function for the rank of a tensor that depends on token ids or their embeddings. It returns 0 if unknown. */
export function ranksOf(nodes: readonly GraphNode[]): (name: string) => number {
  const links = new Links(nodes);
  const known = new Map([
    ['input_ids', HIDDEN_RANK - 1],
    ['inputs_embeds', HIDDEN_RANK],
  ]);
  const rankOf = (name: string): number => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const rank = compute(name);
    known.set(name, rank);
    return rank;
  };
  const compute = (name: string): number => {
    const { opType = '', inputs = [] } = links.maker(name) ?? {};
    if (opType === GROUPED) return HIDDEN_RANK;
    if (KEEPING.has(opType)) return rankOf(inputs[0]!);
    // Biases and factors have at most as many dimensions as the other operand.
    if (opType === 'Add' || opType === 'Mul') return Math.max(...inputs.map(rankOf));
    if (opType !== 'Gather' || !links.isConstant(inputs[0]!) || inputs[1] !== 'input_ids') return 0;
    return HIDDEN_RANK; // rows of a matrix
  };
  return rankOf;
}
