import { describe, expect, it } from 'vitest';
import { replaceRows } from '../../src/backends/replace-rows.ts';
import { ROW_STATUS } from '../../src/native/index.ts';
import { EMPTY_ROW, type Row, toColumns, toRows } from '../fakes/rows.ts';

/** A row of which every column differs from those of other tokens. */
const full = (token: number): Row => ({
  status: ROW_STATUS.COMPLETE,
  token,
  isFinal: true,
  logprob: -token,
  rank: token + 1,
  top: [
    [token, -token],
    [token + 1, -token - 1],
  ],
  forced: [token + 2, token + 3],
  drafts: [token + 6],
  candidates: [[token + 4, -token - 4, -token - 5]],
});
const plain = (token: number): Row => ({ ...EMPTY_ROW, token });
const waiting: Row = { ...EMPTY_ROW, status: ROW_STATUS.AWAITS_EDIT };

describe('replaceRows', () => {
  it.each<[string, rows: Row[], places: number[], others: Row[], expected: Row[]]>([
    ['carries every column', [plain(1), waiting, plain(2)], [1], [full(3)], [plain(1), full(3), plain(2)]],
    [
      'leaves the columns of other rows',
      [full(1), waiting, full(2)],
      [1],
      [plain(3)],
      [full(1), plain(3), full(2)],
    ],
    [
      'replaces several rows',
      [waiting, full(1), waiting],
      [0, 2],
      [full(2), full(3)],
      [full(2), full(1), full(3)],
    ],
    ['replaces some of those that wait', [waiting, waiting], [1], [full(1)], [waiting, full(1)]],
    ['replaces nothing', [full(1), waiting], [], [], [full(1), waiting]],
  ])('%s', (_, rows, places, others, expected) => {
    expect(toRows(replaceRows(toColumns(rows), places, toColumns(others)))).toEqual(expected);
  });
});
