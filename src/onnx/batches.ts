/** The tokens of a step -> runs of the graph, each a batch of rows that fit together. */
import type { Decoder } from './messages.ts';

/** New tokens of one slot in a step. */
export type Chunk = {
  readonly slot: number;
  /** Index of the first of them among the step's tokens. */
  readonly at: number;
  readonly count: number;
  /** Number of cached tokens of the slot. */
  readonly past: number;
};

/** Limit for the tokens of a batch with padding, relative to those of its rows. */
const MAX_PADDED_TOKENS = 1.25;
/** The same limit for the cache that is read: for prompts, and for batches with one token per slot. */
const MAX_PADDED_CACHE = 2;
const MAX_PADDED_DECODE_CACHE = 4;

/** Returns the runs of consecutive tokens of one slot. */
export function toChunks(sequences: Int32Array, positions: Int32Array): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = 0; at < sequences.length; ) {
    let end = at + 1;
    while (end < sequences.length && sequences[end] === sequences[at]) end += 1;
    chunks.push({ slot: sequences[at]!, at, count: end - at, past: positions[at]! });
    at = end;
  }
  return chunks;
}

/**
 * Returns chunks that may run together, round after round. In a graph with branches, the branch for tokens with a past was traced with a
 * single token and often does not hide later tokens. It therefore computes one token of each slot at a time.
 */
export function toRounds(chunks: readonly Chunk[], { hasBranch }: Decoder): Chunk[][] {
  if (!hasBranch) return [[...chunks]];
  const rounds: Chunk[][] = [];
  for (const chunk of chunks)
    for (const [i, part] of (chunk.past === 0 ? [chunk] : singleTokens(chunk)).entries())
      if (rounds[i]) rounds[i].push(part);
      else rounds.push([part]);
  return rounds;
}

function singleTokens({ slot, at, count, past }: Chunk): Chunk[] {
  return Array.from({ length: count }, (_, i) => ({ slot, at: at + i, count: 1, past: past + i }));
}

/** Batches chunks that can run together with little padding. */
export function toBatches(chunks: readonly Chunk[], decoder: Decoder): Chunk[][] {
  const sorted = [...chunks].sort((a, b) => b.count - a.count || b.past - a.past || a.slot - b.slot);
  const batches: Chunk[][] = [];
  for (const chunk of sorted) {
    const batch = batches.at(-1);
    if (batch && fits(batch, chunk, decoder)) batch.push(chunk);
    else batches.push([chunk]);
  }
  return batches;
}

function fits(batch: readonly Chunk[], chunk: Chunk, decoder: Decoder): boolean {
  const first = batch[0]!;
  if (decoder.padding === 'none') return first.count === chunk.count && first.past === chunk.past;
  if (decoder.isGrouped && first.count > 1) return false; // the operator takes prompts one by one
  if (first.count > 1 && chunk.count === 1) return false; // slots that generate stay together, step after step
  const rows = [...batch, chunk];
  const tokens = sum(rows.map(({ count }) => count));
  const cells = sum(rows.map(({ past, count }) => past + count));
  const columns = Math.max(...rows.map(({ past }) => past)) + first.count;
  const limit = first.count === 1 ? MAX_PADDED_DECODE_CACHE : MAX_PADDED_CACHE;
  return rows.length * first.count <= MAX_PADDED_TOKENS * tokens && rows.length * columns <= limit * cells;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
