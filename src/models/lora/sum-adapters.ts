/** Adapters of one model -> one adapter that equals their sum, made by concatenating their factors. */
import type { AdapterWeights, LoraFactors } from '../../engine/native/index.ts';

/** An adapter, and a factor for its output in addition to alpha / rank. Without an alpha, alpha / rank counts as 1. */
export type CountedAdapter = {
  readonly alpha: number;
  readonly weights: AdapterWeights;
  readonly gain: number;
};

type Part = LoraFactors & { readonly rank: number; readonly scale: number };

/**
 * Sums adapters. Every layer has the rank of the largest sum, padded with zeros. The factors include their scales.
 * @param widths number of inputs of each layer
 */
export function sumAdapters(
  adapters: readonly CountedAdapter[],
  widths: (module: string) => number,
): { readonly rank: number; readonly weights: AdapterWeights } {
  const parts = new Map<string, Part[]>();
  for (const { alpha, weights, gain } of adapters)
    for (const [module, { a, b, experts = 1 }] of Object.entries(weights)) {
      const rank = a.length / widths(module) / experts;
      const scale = gain * (alpha === 0 ? 1 : alpha / rank);
      parts.set(module, [...(parts.get(module) ?? []), { a, b, experts, rank, scale }]);
    }
  const ranks = [...parts.values()].map((list) => list.reduce((sum, { rank }) => sum + rank, 0));
  const rank = Math.max(...ranks);
  const weights = [...parts].map(([module, list]): [string, LoraFactors] => [
    module,
    sideBySide(list, widths(module), rank),
  ]);
  return { rank, weights: Object.fromEntries(weights) };
}

function sideBySide(parts: readonly Part[], width: number, rank: number): LoraFactors {
  const { experts = 1 } = parts[0]!;
  const rows = parts[0]!.b.length / parts[0]!.rank; // rows of all experts
  const a = new Float32Array(experts * rank * width);
  const b = new Float32Array(rows * rank);
  let first = 0;
  for (const part of parts) {
    const size = part.rank * width;
    for (let expert = 0; expert < experts; expert++)
      a.set(part.a.subarray(expert * size, (expert + 1) * size), (expert * rank + first) * width);
    for (let row = 0; row < rows; row++)
      for (let r = 0; r < part.rank; r++)
        b[row * rank + first + r] = part.scale * part.b[row * part.rank + r]!;
    first += part.rank;
  }
  return { a, b, ...(experts > 1 ? { experts } : {}) };
}
