/** Adapters of separate GGUF matrices that are one matrix in Hugging Face's model <-> one adapter of that matrix. */
import type { AdapterWeights, LoraFactors } from '../../engine/native/index.ts';
import type { DeltaNetHeads, RowFacts } from './row-order.ts';

type Model = Pick<RowFacts, 'architecture' | 'deltaNet'> & { readonly rank: number };
/** Name of the fused adapter in a GGUF file, and the end of its path in Hugging Face's model. */
export const FUSED = { kind: 'ssm_in', path: 'in_proj_qkvz' } as const;
const PARTS = ['attn_qkv', 'attn_gate'] as const;

/** Returns the inner size of a module's factors. */
export function rankOf(name: string, { rank }: Model): number {
  return name.endsWith(FUSED.kind) ? PARTS.length * rank : rank;
}

/** Returns the position of a module's adapter in a fused one. Returns null if the module is not fused. */
function fusedPlace(name: string, { architecture, deltaNet }: Model): { whole: string; part: string } | null {
  const [, layer, part] = /^(blk\.\d+)\.(attn_qkv|attn_gate)$/.exec(name) ?? [];
  if (!part || architecture !== 'qwen3next' || !deltaNet) return null;
  return { whole: `${layer}.${FUSED.kind}`, part };
}

/** Returns the names of {@link fuse}'s result. */
export function fusedNames(names: readonly string[], model: Model): string[] {
  return [...new Set(names.map((name) => fusedPlace(name, model)?.whole ?? name))];
}

/** Fuses the adapters of both matrices as blocks: each part of the input factor only reaches the output of its own matrix. */
export function fuse(weights: AdapterWeights, model: Model): AdapterWeights {
  const { rank, deltaNet } = model;
  const result: Record<string, LoraFactors> = {};
  for (const [name, factors] of Object.entries(weights)) {
    const place = fusedPlace(name, model);
    if (!place) {
      result[name] = factors;
      continue;
    }
    const { whole, part } = place;
    const columns = factors.a.length / rank;
    const places = rowsOf(part, factors.b.length / rank, deltaNet!);
    const total = places.total * PARTS.length * rank;
    result[whole] ??= { a: new Float32Array(PARTS.length * rank * columns), b: new Float32Array(total) };
    const { a, b } = result[whole];
    const first = PARTS.indexOf(part as (typeof PARTS)[number]) * rank;
    a.set(factors.a, first * columns);
    for (const [row, there] of places.rows.entries())
      b.set(factors.b.subarray(row * rank, (row + 1) * rank), there * PARTS.length * rank + first);
  }
  return result;
}

/** Splits a fused adapter, the reverse of {@link fuse}. Returns null if the factors are not two adapters as blocks. */
export function split(
  layer: string,
  { a, b }: LoraFactors,
  model: Model,
  given: number,
): AdapterWeights | null {
  const { rank, deltaNet } = model;
  if (!deltaNet) return null;
  const total = b.length / given;
  const columns = a.length / given;
  const { keyHeads, valueHeads } = deltaNet;
  const size = total / (2 * keyHeads + 2 * valueHeads);
  const result: Record<string, LoraFactors> = {};
  for (const [index, part] of PARTS.entries()) {
    // Adapters made in Python have one input factor for both.
    const first = given === rank ? 0 : index * rank;
    const own = a.slice(first * columns, (first + rank) * columns);
    if (own.every((value) => value === 0)) continue; // it was not trained
    const count = size * (part === 'attn_gate' ? valueHeads : 2 * keyHeads + valueHeads);
    const rows = new Float32Array(count * rank);
    for (const [row, there] of rowsOf(part, count, deltaNet).rows.entries()) {
      const whole = b.subarray(there * given, (there + 1) * given);
      if (whole.some((value, at) => value !== 0 && (at < first || at >= first + rank))) return null;
      rows.set(whole.subarray(first, first + rank), row * rank);
    }
    result[`${layer}.${part}`] = { a: own, b: rows };
  }
  return result;
}

/**
 * (rows) position of each row of a part in the fused matrix: Hugging Face's model has the queries, keys, values and gates of each key head
 * in turn.
 */
function rowsOf(
  part: string,
  count: number,
  { keyHeads, valueHeads }: DeltaNetHeads,
): { rows: Int32Array; total: number } {
  const size = count / (part === 'attn_gate' ? valueHeads : 2 * keyHeads + valueHeads);
  const perKey = (size * valueHeads) / keyHeads;
  const group = 2 * size + 2 * perKey;
  const place = (row: number): number => {
    if (part === 'attn_gate') return Math.floor(row / perKey) * group + 2 * size + perKey + (row % perKey);
    const queries = size * keyHeads;
    if (row >= 2 * queries) {
      const value = row - 2 * queries;
      return Math.floor(value / perKey) * group + 2 * size + (value % perKey);
    }
    const inKind = row % queries;
    return Math.floor(inKind / size) * group + (row < queries ? 0 : size) + (inKind % size);
  };
  return { rows: Int32Array.from({ length: count }, (_, row) => place(row)), total: group * keyHeads };
}
