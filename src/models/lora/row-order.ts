/** A layer's matrix -> the positions in the GGUF file of the rows and columns of Hugging Face's model. */
import type { GgufHeader } from '../../engine/gguf/index.ts';

/** Architectures whose GGUF files store the two numbers that rotate together next to each other, in queries and keys. */
const PAIRED = new Set(['llama', 'mistral3', 'arcee', 'smollm3', 'granite', 'granitemoe', 'olmo', 'xverse']);

/** Returns true if rows of queries and keys are ordered differently in GGUF files than in Hugging Face's. */
export function hasPairedRows(architecture: string): boolean {
  return PAIRED.has(architecture);
}

/** Architectures whose GGUF files interleave value heads: consecutive value heads read consecutive key heads. */
const TILED = new Set(['qwen35', 'qwen35moe']);

/** Numbers of heads of a gated delta net: of queries and keys, and of values. */
export type DeltaNetHeads = { readonly keyHeads: number; readonly valueHeads: number };

/** Returns the heads of a model's gated delta nets. Returns null if it has none. */
export function deltaNetHeads(header: GgufHeader): DeltaNetHeads | null {
  const { architecture } = header;
  if (!architecture.startsWith('qwen3')) return null;
  const keyHeads = header.number(`${architecture}.ssm.group_count`) ?? 0;
  const valueHeads = header.number(`${architecture}.ssm.time_step_rank`) ?? 0;
  return keyHeads > 0 && valueHeads > 0 ? { keyHeads, valueHeads } : null;
}

/** Facts that decide the order. */
export type RowFacts = {
  readonly architecture: string;
  readonly headCount: number;
  readonly kvHeadCount: number;
  /** Heads of its gated delta nets. Null if it has none. */
  readonly deltaNet?: DeltaNetHeads | null;
};

/** (rows) position in the GGUF file of each row of Hugging Face's model. Null if the order is the same. */
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

/** Does the same as {@link rowPlaces} for columns. */
export function columnPlaces(
  kind: string,
  columns: number,
  { architecture, deltaNet }: RowFacts,
): Int32Array | null {
  return deltaNet && TILED.has(architecture) && kind === 'ssm_out' ? tiledPlaces(0, columns, deltaNet) : null;
}

/**
 * Returns the positions within heads: a GGUF file of such an architecture stores the two numbers that rotate together next to each other
 * ("pairs"); Hugging Face stores the first of all pairs, then the second of all ("halves").
 */
function pairedPlaces(rows: number, heads: number): Int32Array {
  const size = rows / heads;
  return Int32Array.from({ length: rows }, (_, row) => {
    const inHead = row % size; // in halves
    return row - inHead + (inHead % (size / 2)) * 2 + Math.floor(inHead / (size / 2));
  });
}

/**
 * Returns the positions of value heads. Those that read the same key head are consecutive in Hugging Face's models, and one round apart in
 * GGUF files. `first`: index of the first row of value heads.
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

/** Returns rows of `size` numbers in the order of `places`. */
export function pickRows(values: Float32Array, size: number, places: Int32Array | null): Float32Array {
  if (!places) return values;
  const result = new Float32Array(values.length);
  for (const [row, from] of places.entries())
    result.set(values.subarray(from * size, (from + 1) * size), row * size);
  return result;
}

/** Does the same as {@link pickRows} for the columns of all rows. */
export function pickColumns(values: Float32Array, places: Int32Array | null): Float32Array {
  if (!places) return values;
  const columns = places.length;
  return Float32Array.from(values, (_, i) => values[i - (i % columns) + places[i % columns]!]!);
}
