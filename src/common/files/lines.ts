/** Values -> a file of one JSON value per line, many of them or one. */
import fs from 'node:fs/promises';
import { writing } from './durable-files.ts';

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
    if (bytes > 0) await fs.truncate(file, bytes);
    return new LineWriter(await fs.open(file, bytes === 0 ? 'w' : 'a'), bytes);
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
    const text = this.#waiting.join('');
    this.#waiting = [];
    this.#waitingLength = 0;
    await this.#handle.appendFile(text);
  }
}

/** Appends a line. First ends a line that a crash left incomplete, so that it does not damage the next one. */
export async function appendLine(file: string, value: unknown, options: { flush: boolean }): Promise<void> {
  await writing(file, async () => {
    await using handle = await fs.open(file, 'a+');
    const start = (await isLineOpen(handle)) ? '\n' : '';
    await handle.appendFile(`${start}${JSON.stringify(value)}\n`);
    if (options.flush) await handle.sync();
  });
}

async function isLineOpen(handle: fs.FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return false;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== 0x0a;
}
