/** Rows in the order of the input -> rows in the order that they are asked for in: those with the same beginning follow each other. */
import { type FaultyRow, orderOf, type Row, type RowOrder } from './row.ts';

/** Bytes of rows that are read ahead at most. */
const MOST_BYTES = 64 * 2 ** 20;

/** Rows with one beginning. */
type Group = { readonly beginning: string; longest: number; readonly rows: Ordered[] };
type Ordered = Omit<RowOrder, 'beginning'> & { readonly row: Row };

/** Reads rows ahead and orders them. Rows that are none come as they are read. */
export class RowWindow {
  readonly #parts: AsyncIterator<readonly (Row | FaultyRow)[]>;
  readonly #size: number;
  #part: readonly (Row | FaultyRow)[] = [];
  #at = 0; // of the part
  #ready: Row[] = []; // in reverse: the next one last

  /** `parts`: rows, as many at once as were read. */
  constructor(parts: AsyncIterator<readonly (Row | FaultyRow)[]>, size: number) {
    this.#parts = parts;
    this.#size = size;
  }

  /** The next row; null after the last. One call at a time. */
  async next(): Promise<Row | FaultyRow | null> {
    return this.#ready.pop() ?? (await this.#fill());
  }

  async #fill(): Promise<Row | FaultyRow | null> {
    const groups = new Map<string, Group>();
    for (let [bytes, count] = [0, 0]; count < this.#size && bytes < MOST_BYTES; count++) {
      const row = this.#part[this.#at] ?? (await this.#read());
      if (!row) break;
      this.#at += 1;
      if ('error' in row) {
        this.#ready = inOrder(groups);
        return row;
      }
      bytes += row.bytes;
      const { beginning, ...order } = orderOf(row);
      const group = groups.get(beginning) ?? { beginning, longest: 0, rows: [] };
      group.longest = Math.max(group.longest, order.length);
      group.rows.push({ ...order, row });
      groups.set(beginning, group);
    }
    this.#ready = inOrder(groups);
    return this.#ready.pop() ?? null;
  }

  /** The first row of the next part that has one. */
  async #read(): Promise<Row | FaultyRow | undefined> {
    for (;;) {
      const { done, value } = await this.#parts.next();
      if (done) return undefined;
      [this.#part, this.#at] = [value, 0];
      if (value.length > 0) return value[0];
    }
  }
}

/** Groups with the longest answers first; in a group long answers first, then by the rest. In reverse. */
function inOrder(groups: ReadonlyMap<string, Group>): Row[] {
  const sorted = [...groups.values()].sort(
    (a, b) => a.longest - b.longest || compareTexts(b.beginning, a.beginning),
  );
  const compare = (a: Ordered, b: Ordered): number =>
    a.length - b.length || compareTexts(b.rest, a.rest) || b.row.line - a.row.line;
  return sorted.flatMap(({ rows }) => rows.sort(compare).map(({ row }) => row));
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
