/** Values <-> files of one JSON value per line. Memory use does not depend on the size of a file. */
import { createReadStream } from 'node:fs';
import fs from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { ifMissing, writing } from '../common/index.ts';
import { fromNative } from '../errors.ts';
import type { Home } from './home.ts';

/** Appends a line. First ends a line that a crash left incomplete, so that it does not damage the next one. */
export async function appendLine(file: string, value: unknown, options: { flush: boolean }): Promise<void> {
  await writing(file, async () => {
    await using handle = await fs.open(file, 'a+');
    const start = (await isLineOpen(handle)) ? '\n' : '';
    await handle.appendFile(`${start}${JSON.stringify(value)}\n`);
    if (options.flush) await handle.sync();
  });
}

const BUFFER_BYTES = 256 * 1024;

/** Writes lines through a small buffer. */
export class LineWriter {
  readonly #handle: fs.FileHandle;
  #waiting: string[] = [];
  #waitingLength = 0;
  #bytes: number;

  private constructor(handle: fs.FileHandle, bytes: number) {
    this.#handle = handle;
    this.#bytes = bytes;
  }

  /** Opens a file to continue after its first `bytes`; truncates the rest. */
  static async open(file: string, bytes: number): Promise<LineWriter> {
    const handle = await fs.open(file, bytes === 0 ? 'w' : 'r+');
    try {
      if (bytes > 0) await handle.truncate(bytes);
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new LineWriter(handle, bytes);
  }

  /** Length of the file in bytes, buffered lines included. */
  get bytes(): number {
    return this.#bytes;
  }

  async write(value: unknown): Promise<void> {
    const line = `${JSON.stringify(value)}\n`;
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    this.#bytes += Buffer.byteLength(line);
    if (this.#waitingLength >= BUFFER_BYTES) await this.#empty();
  }

  /** Writes the buffer and syncs the file to the disk. */
  async flush(): Promise<void> {
    await this.#empty();
    await this.#handle.datasync();
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #empty(): Promise<void> {
    const bytes = Buffer.from(this.#waiting.join(''));
    this.#waiting = [];
    this.#waitingLength = 0;
    const position = this.#bytes - bytes.length;
    for (let written = 0; written < bytes.length; ) {
      const { bytesWritten } = await this.#handle.write(
        bytes,
        written,
        bytes.length - written,
        position + written,
      );
      written += bytesWritten;
    }
  }
}

/** Where to start (inclusive) and end (exclusive), in bytes. */
export type ByteRange = { readonly start?: number; readonly end?: number };

/** The values of a file, in order; none for a missing file. Reports and skips damaged lines. */
export async function* readLines<Value>(
  home: Home,
  file: string,
  { start = 0, end = Number.POSITIVE_INFINITY }: ByteRange = {},
): AsyncGenerator<Value> {
  if (end <= start || !(await fs.stat(file).catch(ifMissing(null)))) return;
  const stream = createReadStream(file, { start, end: end - 1, highWaterMark: BUFFER_BYTES });
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
      const value = line === '' ? undefined : parse<Value>(home, file, line);
      if (value !== undefined) yield value;
    }
  } catch (error) {
    throw fromNative(error);
  } finally {
    stream.destroy();
  }
}

function parse<Value>(home: Home, file: string, line: string): Value | undefined {
  try {
    return JSON.parse(line) as Value;
  } catch (error) {
    home.report(file, error);
    return undefined;
  }
}

async function isLineOpen(handle: fs.FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return false;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== 0x0a;
}
