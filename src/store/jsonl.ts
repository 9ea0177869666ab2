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

/** Where to start and stop reading, in bytes. */
export type ByteRange = { readonly start?: number; readonly end?: number };

/** The values of a file, in order; none when there is no file. A damaged line is reported and skipped. */
export async function* readLines<Value>(
  home: Home,
  file: string,
  { start = 0, end = Number.POSITIVE_INFINITY }: ByteRange = {},
): AsyncGenerator<Value> {
  if (end <= start || !(await fs.stat(file).catch(ifMissing(null)))) return;
  const stream = createReadStream(file, { start, end: end - 1, highWaterMark: 256 * 1024 });
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
