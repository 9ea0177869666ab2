/** Files of one JSON value per line: appended to, and read without holding the whole. */
import { createReadStream } from 'node:fs';
import fs from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { type Home, ifMissing } from './home.ts';

/** Appends a line. What a crash left without its end is closed first, so that it damages no more than itself. */
export async function appendLine(file: string, value: unknown, options: { flush: boolean }): Promise<void> {
  const handle = await fs.open(file, 'a+');
  try {
    const start = (await isLineOpen(handle)) ? '\n' : '';
    await handle.appendFile(`${start}${JSON.stringify(value)}\n`);
    if (options.flush) await handle.sync();
  } finally {
    await handle.close();
  }
}

const BUFFER_BYTES = 256 * 1024;

/** Writes lines one after the other, holding only a little of them. */
export class LineWriter {
  readonly #handle: fs.FileHandle;
  #waiting: string[] = [];
  #waitingLength = 0;
  #bytes: number;

  private constructor(handle: fs.FileHandle, bytes: number) {
    this.#handle = handle;
    this.#bytes = bytes;
  }

  /** Opens a file to go on after its first `bytes`; what lies beyond is cut off. */
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

  /** Length of the file with everything written so far. */
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

  /** Makes sure that everything is on the disk. */
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

/** Where to start and stop reading, in bytes. */
export type ByteRange = { readonly start?: number; readonly end?: number };

/** The values of a file, in order; none when there is no file. A damaged line is reported and skipped. */
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
