/** GGUF files at the hub -> local files with only their headers and sizes, to read the facts of a model before it is downloaded. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { makeFolder, writeFlushed } from '../../common/index.ts';
import { MAX_HEADER_BYTES, parseHeader } from '../../engine/gguf/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { RemoteFile } from './download-file.ts';

const FIRST_BYTES = 2 ** 20;

/**
 * Writes the header of a file to `target`. The rest of `target` is a hole, so that its size is that of the whole file. Fails with
 * `MODEL_NOT_FOUND`, `MODEL_INVALID`, and with the errors of fetch.
 */
export async function fetchHeader(
  { url, token, signal }: Pick<RemoteFile, 'url' | 'token' | 'signal'>,
  target: string,
): Promise<void> {
  let bytes: Buffer = Buffer.alloc(0);
  for (let wanted = FIRST_BYTES; ; wanted *= 4) {
    const response = await fetch(url, {
      signal,
      headers: {
        'accept-encoding': 'identity',
        range: `bytes=${bytes.length}-${wanted - 1}`,
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
    });
    if (response.status === 404) throw new OnpolicyError('MODEL_NOT_FOUND', `the hub has no file ${url}`);
    if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
    const isPart = response.status === 206;
    if (!isPart) bytes = Buffer.alloc(0); // the server ignored the range and sends the whole file
    const size = sizeOf(response.headers, isPart);
    if (!Number.isSafeInteger(size)) throw new Error(`${url} does not say how large it is`);
    bytes = Buffer.concat([bytes, ...(await firstBytes(response.body, wanted - bytes.length))]);
    const header = parseHeader(path.basename(new URL(url).pathname), bytes, size);
    if (header !== null) {
      await makeFolder(path.dirname(target));
      await writeFlushed(target, [bytes]);
      return await fs.truncate(target, size);
    }
    if (bytes.length >= Math.min(size, MAX_HEADER_BYTES))
      throw new OnpolicyError('MODEL_INVALID', `${url} has a damaged or truncated GGUF header`);
  }
}

function sizeOf(headers: Headers, isPart: boolean): number {
  const size = isPart ? headers.get('content-range')?.split('/')[1] : headers.get('content-length');
  return Number(size ?? Number.NaN);
}

/** Reads this many bytes and ends the connection. */
async function firstBytes(body: ReadableStream<Uint8Array>, count: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let left = count;
  for await (const chunk of body) {
    chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) break; // leaving the loop cancels the body
  }
  return chunks;
}
