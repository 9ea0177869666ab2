/** A layer's matrix -> where its rows and columns of Hugging Face's model lie in the GGUF file. */
import type { GgufHeader } from '../gguf/index.ts';

/** Architectures whose GGUF files have the two numbers that rotate together side by side, in queries and keys. */
const PAIRED = new Set(['llama', 'mistral3', 'arcee', 'smollm3', 'granite', 'granitemoe', 'olmo', 'xverse']);

/** Whether rows of queries and keys are in another order in GGUF files than in Hugging Face's. */
export function hasPairedRows(architecture: string): boolean {
  return PAIRED.has(architecture);
}

/** Architectures whose GGUF files have heads of values that read the same head of keys one round after the other. */
const TILED = new Set(['qwen35', 'qwen35moe']);

/** Heads of a gated delta net: of queries and keys, and of values. */
export type DeltaNetHeads = { readonly keyHeads: number; readonly valueHeads: number };

/** Those of a model; null: it has none. */
export function deltaNetHeads(header: GgufHeader): DeltaNetHeads | null {
  const { architecture } = header;
  if (!architecture.startsWith('qwen3')) return null;
  const keyHeads = header.number(`${architecture}.ssm.group_count`) ?? 0;
  const valueHeads = header.number(`${architecture}.ssm.time_step_rank`) ?? 0;
  return keyHeads > 0 && valueHeads > 0 ? { keyHeads, valueHeads } : null;
}

/** What the order depends on. */
export type RowFacts = {
  readonly architecture: string;
  readonly headCount: number;
  readonly kvHeadCount: number;
  /** Heads of its gated delta nets; null: it has none. */
  readonly deltaNet?: DeltaNetHeads | null;
};

/** (rows) the row in the GGUF file of each row there is in Hugging Face's; null: the same. */
export function rowPlaces(kind: string, rows: number, model: RowFacts): Int32Array | null {
  const { architecture, headCount, kvHeadCount, deltaNet } = model;
  if (hasPairedRows(architecture) && kind === 'attn_q') return pairedPlaces(rows, headCount);
  if (hasPairedRows(architecture) && kind === 'attn_k') return pairedPlaces(rows, kvHeadCount);
  if (!deltaNet || !TILED.has(architecture)) return null;
  if (kind === 'attn_gate' || kind === 'ssm_alpha' || kind === 'ssm_beta')
    return tiledPlaces(0, rows, deltaNet);
  const { keyHeads, valueHeads } = deltaNet;
  if (kind === 'attn_qkv')
    return tiledPlaces((2 * keyHeads * rows) / (2 * keyHeads + valueHeads), rows, deltaNet);
  return null;
}

/** The same of columns. */
export function columnPlaces(
  kind: string,
  columns: number,
  { architecture, deltaNet }: RowFacts,
): Int32Array | null {
  return deltaNet && TILED.has(architecture) && kind === 'ssm_out' ? tiledPlaces(0, columns, deltaNet) : null;
}

/**
 * Within each head, a GGUF file of such an architecture lays the two numbers that rotate together side by side ("pairs"); Hugging Face
 * keeps the first of all pairs, then the second of all ("halves").
 */
function pairedPlaces(rows: number, heads: number): Int32Array {
  const size = rows / heads;
  return Int32Array.from({ length: rows }, (_, row) => {
    const inHead = row % size; // in halves
    return row - inHead + (inHead % (size / 2)) * 2 + Math.floor(inHead / (size / 2));
  });
}

/**
 * Heads of values that read the same head of keys lie side by side in Hugging Face's models, one round after the other in GGUF files.
 * `first`: where heads of values begin.
 */
function tiledPlaces(first: number, count: number, { keyHeads, valueHeads }: DeltaNetHeads): Int32Array {
  const size = (count - first) / valueHeads;
  const perKey = valueHeads / keyHeads;
  return Int32Array.from({ length: count }, (_, at) => {
    if (at < first) return at;
    const head = Math.floor((at - first) / size);
    const there = (head % perKey) * keyHeads + Math.floor(head / perKey);
    return first + there * size + ((at - first) % size);
  });
}

export function inverse(places: Int32Array | null): Int32Array | null {
  if (!places) return null;
  const result = new Int32Array(places.length);
  for (const [here, there] of places.entries()) result[there] = here;
  return result;
}

/** Rows of `size` numbers, in the order of `places`. */
export function pickRows(values: Float32Array, size: number, places: Int32Array | null): Float32Array {
  if (!places) return values;
  const result = new Float32Array(values.length);
  for (const [row, from] of places.entries())
    result.set(values.subarray(from * size, (from + 1) * size), row * size);
  return result;
}

/** The same of the columns of all rows. */
export function pickColumns(values: Float32Array, places: Int32Array | null): Float32Array {
  if (!places) return values;
  const columns = places.length;
  return Float32Array.from(values, (_, i) => values[i - (i % columns) + places[i % columns]!]!);
}
