/** Values <-> files of one JSON value per line, whole or line by line. Memory use does not depend on the size of a file. */
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
