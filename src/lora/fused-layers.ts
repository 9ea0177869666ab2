/** Matrices of a GGUF file that are one in Hugging Face's model: their adapters <-> one adapter of that. */
import type { AdapterWeights, LoraFactors } from '../native/index.ts';
import type { DeltaNetHeads, RowFacts } from './row-order.ts';

type Model = Pick<RowFacts, 'architecture' | 'deltaNet'> & { readonly rank: number };
/** What one adapter of both would be called in a GGUF file, and the end of its path in Hugging Face's model. */
export const FUSED = { kind: 'ssm_in', path: 'in_proj_qkvz' } as const;
const PARTS = ['attn_qkv', 'attn_gate'] as const;

/** Inner size of a module's factors. */
export function rankOf(name: string, { rank }: Model): number {
  return name.endsWith(FUSED.kind) ? PARTS.length * rank : rank;
}

/** Where the adapter of a module is in a fused one; null: it stays alone. */
function fusedPlace(name: string, { architecture, deltaNet }: Model): { whole: string; part: string } | null {
  const [, layer, part] = /^(blk\.\d+)\.(attn_qkv|attn_gate)$/.exec(name) ?? [];
  if (!part || architecture !== 'qwen3next' || !deltaNet) return null;
  return { whole: `${layer}.${FUSED.kind}`, part };
}

/** The names of {@link fuse}'s result. */
export function fusedNames(names: readonly string[], model: Model): string[] {
  return [...new Set(names.map((name) => fusedPlace(name, model)?.whole ?? name))];
}

/** The adapters of both, side by side: one does not read what the other has made of the input. */
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

/** The other way round. Null: the factors are of no two adapters side by side. */
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
    // An adapter of Python has one factor for both.
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

/** (rows) where each row of a part lies among all: Hugging Face's model has queries, keys, values and gates of each head of keys in turn. */
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
