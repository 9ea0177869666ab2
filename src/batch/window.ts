/** Rows in the order of the input -> rows in the order that they are asked for in: those with the same beginning follow each other. */
import { type FaultyRow, orderOf, type Row, type RowOrder } from './row.ts';

/** Bytes of rows that are read ahead at most. */
const MOST_BYTES = 64 * 2 ** 20;

type Ordered = RowOrder & { readonly row: Row };

/** Reads rows ahead and orders them. Rows that are none come as they are read. */
export class RowWindow {
  readonly #rows: AsyncIterator<Row | FaultyRow>;
  readonly #size: number;
  #ready: Row[] = []; // in reverse: the next one last

  constructor(rows: AsyncIterator<Row | FaultyRow>, size: number) {
    this.#rows = rows;
    this.#size = size;
  }

  /** The next row; null after the last. One call at a time. */
  async next(): Promise<Row | FaultyRow | null> {
    return this.#ready.pop() ?? (await this.#fill());
  }

  async #fill(): Promise<Row | FaultyRow | null> {
    const read: Ordered[] = [];
    for (let bytes = 0; read.length < this.#size && bytes < MOST_BYTES; ) {
      const { done, value } = await this.#rows.next();
      if (done) break;
      if ('error' in value) {
        this.#ready = inOrder(read);
        return value;
      }
      bytes += value.bytes;
      read.push({ ...orderOf(value), row: value });
    }
    this.#ready = inOrder(read);
    return this.#ready.pop() ?? null;
  }
}

/** Groups of one beginning, those with the longest answers first; in a group long answers first, then by the rest. In reverse. */
function inOrder(rows: Ordered[]): Row[] {
  const longest = new Map<string, number>();
  for (const { beginning, length } of rows)
    longest.set(beginning, Math.max(longest.get(beginning) ?? 0, length));
  const compare = (a: Ordered, b: Ordered): number =>
    longest.get(a.beginning)! - longest.get(b.beginning)! ||
    compareTexts(b.beginning, a.beginning) ||
    a.length - b.length ||
    compareTexts(b.rest, a.rest) ||
    b.row.line - a.row.line;
  return rows.sort(compare).map(({ row }) => row);
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
