/** Files of one JSON value per line -> their values. Memory use does not depend on the size of a file. */
import { createReadStream } from 'node:fs';
import fs from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { ifMissing } from '../../common/index.ts';
import { fromNative } from '../../errors.ts';
import type { Home } from './home.ts';

const BUFFER_BYTES = 256 * 1024;

/** Start (inclusive) and end (exclusive) of a range, in bytes. */
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
