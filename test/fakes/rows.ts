/** Rows as records <-> the columns of sampled rows. */

import type { SampledRows } from '../../src/engine/native/index.ts';
import { ROW_STATUS } from '../../src/engine/native/row-status.ts';

/** A token with its log-probability. */
export type Alternative = readonly [id: number, logprob: number];
/** A token with its score and the model's own log-probability. */
export type Candidate = readonly [id: number, score: number, logprob: number];

/** One row of {@link SampledRows}. */
export type Row = {
  readonly status: number;
  readonly token: number;
  readonly isFinal: boolean;
  readonly logprob: number;
  readonly rank: number;
  readonly top: readonly Alternative[];
  readonly forced: readonly number[];
  readonly drafts: readonly number[];
  readonly candidates: readonly Candidate[];
};

/** A row without a token. */
export const EMPTY_ROW: Row = {
  status: ROW_STATUS.SAMPLED,
  token: -1,
  isFinal: false,
  logprob: 0,
  rank: 0,
  top: [],
  forced: [],
  drafts: [],
  candidates: [],
};

/** Columns of rows. Forced tokens, drafts and candidates are absent where no row has any. */
export function toColumns(rows: readonly Row[]): SampledRows {
  const top = rows.flatMap((row) => row.top);
  const tokenLists = (name: 'forced' | 'drafts') => {
    const ids = Int32Array.from(rows.flatMap((row) => row[name]));
    return ids.length > 0 ? { [name]: { offsets: offsetsOf(rows.map((row) => row[name])), ids } } : {};
  };
  const candidates = rows.flatMap((row) => row.candidates);
  return {
    status: Uint8Array.from(rows, ({ status }) => status),
    tokens: Int32Array.from(rows, ({ token }) => token),
    isFinal: Uint8Array.from(rows, ({ isFinal }) => Number(isFinal)),
    logprobs: Float32Array.from(rows, ({ logprob }) => logprob),
    ranks: Int32Array.from(rows, ({ rank }) => rank),
    topOffsets: offsetsOf(rows.map((row) => row.top)),
    topIds: Int32Array.from(top, ([id]) => id),
    topLogprobs: Float32Array.from(top, ([, logprob]) => logprob),
    ...tokenLists('forced'),
    ...tokenLists('drafts'),
    ...(candidates.length > 0
      ? {
          candidates: {
            offsets: offsetsOf(rows.map((row) => row.candidates)),
            ids: Int32Array.from(candidates, ([id]) => id),
            scores: Float32Array.from(candidates, ([, score]) => score),
            logprobs: Float32Array.from(candidates, ([, , logprob]) => logprob),
          },
        }
      : {}),
  };
}

/** The rows behind columns. */
export function toRows(columns: SampledRows): Row[] {
  const { topOffsets, topIds, topLogprobs, forced, drafts, candidates } = columns;
  return Array.from(columns.status, (status, row) => ({
    status,
    token: columns.tokens[row]!,
    isFinal: columns.isFinal[row] === 1,
    logprob: columns.logprobs[row]!,
    rank: columns.ranks[row]!,
    top: placesOf(topOffsets, row).map((at) => [topIds[at]!, topLogprobs[at]!] as const),
    forced: placesOf(forced?.offsets, row).map((at) => forced!.ids[at]!),
    drafts: placesOf(drafts?.offsets, row).map((at) => drafts!.ids[at]!),
    candidates: placesOf(candidates?.offsets, row).map(
      (at) => [candidates!.ids[at]!, candidates!.scores[at]!, candidates!.logprobs[at]!] as const,
    ),
  }));
}

function offsetsOf(lists: readonly (readonly unknown[])[]): Int32Array {
  const offsets = new Int32Array(lists.length + 1);
  for (const [row, { length }] of lists.entries()) offsets[row + 1] = offsets[row]! + length;
  return offsets;
}

function placesOf(offsets: Int32Array | undefined, row: number): number[] {
  if (!offsets) return [];
  return Array.from({ length: offsets[row + 1]! - offsets[row]! }, (_, i) => offsets[row]! + i);
}
