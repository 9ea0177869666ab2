/** What a caller gives as rows -> lines of text or values, one by one, with their numbers. Never read whole. */
import { createReadStream } from 'node:fs';
import fs from 'node:fs/promises';
import { Readable } from 'node:stream';
import { storeFailed } from '../common/index.ts';
import { type BatchSource, fault, throwFaults } from '../protocol/index.ts';

/** Longest line that is read: as long as the body of a request over HTTP. */
const MOST_LINE_BYTES = 64 * 2 ** 20;
const READ_BYTES = 256 * 1024;
const NEWLINE = 0x0a;
const UTF8 = new TextDecoder('utf-8', { fatal: true }); // drops a byte order mark

/** A row as it came. */
export type SourceItem = {
  /** Its number, from 1: of the line in a file. */
  readonly line: number;
  /** What it takes of the input. */
  readonly bytes: number;
  /** A text of JSON, or a value. */
  readonly value: unknown;
  /** Why it cannot be read; null: it can. */
  readonly problem: string | null;
};

/** Rows in their order. */
export type Source = {
  /** Bytes of all rows; null: not known before the end. */
  readonly bytes: number | null;
  readonly items: AsyncIterator<readonly SourceItem[]>;
};

/**
 * Opens the rows of a batch.
 * @throws OnpolicyError `INVALID_REQUEST` for what has no rows, `STORE_FAILED` for a file that cannot be read
 */
export async function openSource(source: BatchSource): Promise<Source> {
  if (typeof source === 'string') {
    const found = await fs.stat(source).catch((cause: unknown) => {
      throw storeFailed(`cannot read the input ${source}`, cause);
    });
    const stream = createReadStream(source, { highWaterMark: READ_BYTES });
    const bytes = found.isFile() ? found.size : null;
    return { bytes, items: linesOf(stream, `the input ${source}`) };
  }
  const isStream = source instanceof Readable ? !source.readableObjectMode : source instanceof ReadableStream;
  if (isStream) return { bytes: null, items: linesOf(source as AsyncIterable<unknown>, 'the input') };
  const given = (source ?? {}) as Partial<Iterable<unknown> & AsyncIterable<unknown>>;
  if (!given[Symbol.asyncIterator] && !given[Symbol.iterator])
    throwFaults([fault(['source'], 'type', 'a path, a stream or rows', source)]);
  return { bytes: null, items: rowsOf(given as AsyncIterable<unknown>) };
}

/** Items with the same meaning as lines: texts are lines, all else is a row. */
async function* rowsOf(rows: AsyncIterable<unknown>): AsyncGenerator<readonly SourceItem[]> {
  let line = 0;
  for await (const value of rows) {
    line += 1;
    const isBlank = typeof value === 'string' && value.trim() === '';
    const bytes = typeof value === 'string' ? value.length : 0;
    if (!isBlank) yield [{ line, bytes, value, problem: null }];
  }
}

/** The lines of a stream of bytes, as many at once as a part of it has. Blank ones are left out. */
async function* linesOf(stream: AsyncIterable<unknown>, what: string): AsyncGenerator<readonly SourceItem[]> {
  const reader = new LineReader();
  try {
    for await (const part of stream) {
      const items = reader.push(typeof part === 'string' ? Buffer.from(part) : (part as Uint8Array));
      if (items.length > 0) yield items;
    }
  } catch (cause) {
    throw storeFailed(`cannot read ${what}`, cause);
  }
  const last = reader.end();
  if (last.length > 0) yield last;
}

/** Bytes -> the lines that they complete. */
class LineReader {
  #open: Uint8Array[] = []; // parts of a line whose end has not come
  #openBytes = 0;
  #line = 0;

  push(bytes: Uint8Array): SourceItem[] {
    const items: SourceItem[] = [];
    let from = 0;
    for (let to = bytes.indexOf(NEWLINE); to >= 0; to = bytes.indexOf(NEWLINE, from)) {
      this.#keep(bytes.subarray(from, to));
      this.#finish(items, 1);
      from = to + 1;
    }
    this.#keep(bytes.subarray(from));
    return items;
  }

  end(): SourceItem[] {
    const items: SourceItem[] = [];
    if (this.#openBytes > 0) this.#finish(items, 0);
    return items;
  }

  /** Of a line that is too long only the length is kept. */
  #keep(part: Uint8Array): void {
    this.#openBytes += part.length;
    if (this.#openBytes > MOST_LINE_BYTES) this.#open = [];
    else if (part.length > 0) this.#open.push(part);
  }

  #finish(items: SourceItem[], newline: number): void {
    const bytes = this.#openBytes + newline;
    const parts = this.#open;
    this.#line += 1;
    this.#open = [];
    this.#openBytes = 0;
    const item = { line: this.#line, bytes };
    if (bytes > MOST_LINE_BYTES + newline) {
      const problem = `expected a line of at most ${MOST_LINE_BYTES} bytes, got ${bytes}`;
      items.push({ ...item, value: '', problem });
      return;
    }
    try {
      const value = UTF8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
      if (!/^\s*$/.test(value)) items.push({ ...item, value, problem: null });
    } catch {
      items.push({ ...item, value: '', problem: 'expected UTF-8 text' });
    }
  }
}
