/** A request's body -> parsed JSON, within limits of size and time. */
import { kMaxLength } from 'node:buffer';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { OnpolicyError } from '../../errors.ts';
import { limitTime } from '../time-limits.ts';
import type { HandlerSettings } from './handler-options.ts';
import type { WireBody, WireRequest } from './wire.ts';

/** Types of JSON; `text/plain` is what `fetch` adds where a caller gives no type. */
const JSON_TYPE = /^(application\/([\w.+-]+\+)?json|text\/plain)\s*(;|$)/i;

type Decompress = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>;

/** Releases of Node from 22.15 have it. */
const { zstdDecompress } = zlib as { zstdDecompress?: typeof zlib.gunzip };

/** What a body may be compressed with. */
const ENCODINGS: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', promisify(zlib.gunzip) as Decompress],
  ['x-gzip', promisify(zlib.gunzip) as Decompress],
  ['deflate', promisify(zlib.inflate) as Decompress],
  ['br', promisify(zlib.brotliDecompress) as Decompress],
  ...(zstdDecompress ? [['zstd', promisify(zstdDecompress) as Decompress] as const] : []),
]);

/** Reads and parses a body. Throws `TOO_LARGE`, `TIMEOUT`, `ABORTED`, and `INVALID_REQUEST` if it is not JSON. */
export async function readJson(
  { header, body }: Pick<WireRequest, 'header' | 'body'>,
  { maxBodyBytes, bodyTimeoutMs }: Pick<HandlerSettings, 'maxBodyBytes' | 'bodyTimeoutMs'>,
): Promise<unknown> {
  const type = header('content-type');
  if (type && type !== 'application/json' && !JSON_TYPE.test(type))
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `Content-Type: expected application/json, got ${type.slice(0, 100)}`,
    );
  const encoding = header('content-encoding')?.trim().toLowerCase() || 'identity';
  const decompress = ENCODINGS.get(encoding);
  if (!decompress && encoding !== 'identity')
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `Content-Encoding: expected ${[...ENCODINGS.keys()].join(', ')} or identity, got ${encoding.slice(0, 100)}`,
    );
  if (Number(header('content-length')) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  const sent = await readBytes(body, maxBodyBytes, bodyTimeoutMs);
  const text = decode(decompress ? await inflate(sent, decompress, maxBodyBytes) : sent);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `the body is not JSON: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

async function readBytes(body: WireBody, maxBytes: number, timeoutMs: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  const onPart = (part: Uint8Array): void => {
    bytes += part.byteLength;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    parts.push(part);
  };
  let stopClock = (): void => {};
  try {
    await new Promise<void>((resolve, reject) => {
      const onLate = (): void =>
        reject(new OnpolicyError('TIMEOUT', `the body did not come within ${timeoutMs} ms`));
      stopClock = limitTime(timeoutMs, onLate);
      body.read(onPart).then(resolve, reject);
    });
  } catch (error) {
    body.stop();
    if (error instanceof OnpolicyError) throw error;
    throw new OnpolicyError('ABORTED', 'the body broke off', { cause: error });
  } finally {
    stopClock();
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, bytes);
}

async function inflate(sent: Uint8Array, decompress: Decompress, maxBytes: number): Promise<Uint8Array> {
  try {
    return await decompress(sent, { maxOutputLength: Math.min(maxBytes, kMaxLength) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes);
    throw new OnpolicyError('INVALID_REQUEST', 'the body is not compressed as Content-Encoding says', {
      cause: error,
    });
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new OnpolicyError('INVALID_REQUEST', 'the body is not UTF-8 text');
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function tooLarge(maxBytes: number): OnpolicyError {
  return new OnpolicyError('TOO_LARGE', `the body is larger than ${maxBytes} bytes`);
}
