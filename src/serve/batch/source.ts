/** Rows as the caller gives them -> numbered lines of text or values, one by one. The input is never held in memory as a whole. */
import { createReadStream } from 'node:fs';
import fs from 'node:fs/promises';
import { Readable } from 'node:stream';
import { storeFailed } from '../../common/index.ts';
import { type BatchSource, fault, readingInput, throwFaults } from '../../protocol/index.ts';

/** Longest line that is read, in bytes: the same limit as for a request body over HTTP. */
const MOST_LINE_BYTES = 64 * 2 ** 20;
const READ_BYTES = 256 * 1024;
const NEWLINE = 0x0a;
const UTF8 = new TextDecoder('utf-8', { fatal: true }); // drops a byte order mark

/** One item of the input. */
export type SourceItem = {
  /** Number of the item, from 1. For a file it is the number of the line. */
  readonly line: number;
  /** Number of bytes that the item takes in the input, with its newline. */
  readonly bytes: number;
  readonly value: unknown;
  /** True if the value is text that must be parsed as JSON. */
  readonly isJson: boolean;
  /** Reason why the item cannot be read. Null if it can be read. */
  readonly problem: string | null;
};

/** The items of the input in order. */
export type RowSource = {
  /** Total bytes of the input. Null if unknown before the end. */
  readonly bytes: number | null;
  readonly items: AsyncIterator<readonly SourceItem[]>;
};

/**
 * Opens the rows of a batch. `hasTexts`: a text among rows that are given one by one is a row. Otherwise it is read as a line of a file.
 * @throws OnpolicyError `INVALID_REQUEST` if the source has no rows, `STORE_FAILED` for a file that cannot be read
 */
export async function openSource(source: BatchSource, hasTexts = false): Promise<RowSource> {
  if (typeof source === 'string') {
    const found = await fs.stat(source).catch((cause: unknown) => {
      throw storeFailed(`cannot read the input ${source}`, cause);
    });
    const stream = createReadStream(source, { highWaterMark: READ_BYTES });
    const bytes = found.isFile() ? found.size : null;
    return { bytes, items: linesOf(stream, `the input ${source}`) };
  }
  const isStream = readingInput(source, () => isByteStream(source));
  if (isStream) return { bytes: null, items: linesOf(source as AsyncIterable<unknown>, 'the input') };
  const given = (source ?? {}) as Partial<Iterable<unknown> & AsyncIterable<unknown>>;
  if (!given[Symbol.asyncIterator] && !given[Symbol.iterator])
    throwFaults([fault(['source'], 'type', 'a path, a stream or rows', source)]);
  return { bytes: null, items: rowsOf(given as AsyncIterable<unknown>, hasTexts) };
}

function isByteStream(source: Exclude<BatchSource, string>): boolean {
  return source instanceof Readable ? !source.readableObjectMode : source instanceof ReadableStream;
}

/** Yields the items of an iterable. */
async function* rowsOf(
  rows: AsyncIterable<unknown>,
  hasTexts: boolean,
): AsyncGenerator<readonly SourceItem[]> {
  let line = 0;
  for await (const value of rows) {
    line += 1;
    const isJson = typeof value === 'string' && !hasTexts;
    const bytes = typeof value === 'string' ? value.length : 0;
    if (!isJson || value.trim() !== '') yield [{ line, bytes, value, isJson, problem: null }];
  }
}

/** Yields the lines of a byte stream, all lines of one part at once. Blank lines are skipped. */
async function* linesOf(stream: AsyncIterable<unknown>, what: string): AsyncGenerator<readonly SourceItem[]> {
  let open: Uint8Array[] = []; // parts of the line whose end was not read yet
  let openBytes = 0;
  let line = 0;
  /** Adds a part to the open line. For a line that is too long only its length is kept. */
  const keep = (part: Uint8Array): void => {
    openBytes += part.length;
    if (openBytes > MOST_LINE_BYTES) open = [];
    else if (part.length > 0) open.push(part);
  };
  const finish = (newline: number): SourceItem[] => {
    line += 1;
    const item = toItem(line, open, openBytes, newline);
    open = [];
    openBytes = 0;
    return item ? [item] : [];
  };
  try {
    for await (const part of stream) {
      const bytes = typeof part === 'string' ? Buffer.from(part) : (part as Uint8Array);
      const items: SourceItem[] = [];
      let from = 0;
      for (let to = bytes.indexOf(NEWLINE); to >= 0; to = bytes.indexOf(NEWLINE, from)) {
        keep(bytes.subarray(from, to));
        items.push(...finish(1));
        from = to + 1;
      }
      keep(bytes.subarray(from));
      if (items.length > 0) yield items;
    }
  } catch (cause) {
    throw storeFailed(`cannot read ${what}`, cause);
  }
  if (openBytes > 0) yield finish(0);
}

/** `parts`: the bytes of a line without its newline. Returns null if the line is blank. */
function toItem(line: number, parts: Uint8Array[], length: number, newline: number): SourceItem | null {
  const item = { line, bytes: length + newline, isJson: true };
  if (length > MOST_LINE_BYTES) {
    const problem = `expected a line of at most ${MOST_LINE_BYTES} bytes, got ${item.bytes}`;
    return { ...item, value: '', problem };
  }
  try {
    const value = UTF8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
    return /^\s*$/.test(value) ? null : { ...item, value, problem: null };
  } catch {
    return { ...item, value: '', problem: 'expected UTF-8 text' };
  }
}
