/** Rows in the order of the input -> rows in the order in which they are asked for: rows with the same beginning follow each other. */
import { type FaultyRow, orderOf, type Row, type RowOrder } from './row.ts';

/** Most bytes of rows that are read ahead. */
const MOST_BYTES = 64 * 2 ** 20;

/** Rows with the same beginning. */
type Group = { readonly beginning: string; longest: number; readonly rows: Ordered[] };
type Ordered = Omit<RowOrder, 'beginning'> & { readonly row: Row };

/** Reads up to `size` rows ahead and orders them. Invalid rows are passed on at once. */
export async function* inWindows(
  parts: AsyncIterable<readonly (Row | FaultyRow)[]>,
  size: number,
): AsyncGenerator<Row | FaultyRow> {
  const groups = new Map<string, Group>();
  let [count, bytes] = [0, 0];
  for await (const part of parts)
    for (const row of part) {
      if ('error' in row) {
        yield row;
        continue;
      }
      const { beginning, ...order } = orderOf(row);
      const group = groups.get(beginning) ?? { beginning, longest: 0, rows: [] };
      group.longest = Math.max(group.longest, order.length);
      group.rows.push({ ...order, row });
      groups.set(beginning, group);
      count += 1;
      bytes += row.bytes;
      if (count < size && bytes < MOST_BYTES) continue;
      yield* inOrder(groups);
      groups.clear();
      [count, bytes] = [0, 0];
    }
  yield* inOrder(groups);
}

/** Returns the rows ordered by group: groups with the longest answers first; within a group long answers first, then by the rest. */
function inOrder(groups: ReadonlyMap<string, Group>): Row[] {
  const sorted = [...groups.values()].sort(
    (a, b) => b.longest - a.longest || compareTexts(a.beginning, b.beginning),
  );
  const compare = (a: Ordered, b: Ordered): number =>
    b.length - a.length || compareTexts(a.rest, b.rest) || a.row.line - b.row.line;
  return sorted.flatMap(({ rows }) => rows.sort(compare).map(({ row }) => row));
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
