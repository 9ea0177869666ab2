/** A request's body -> parsed JSON, within limits of size, time and memory. */
import type { Transform } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import zlib from 'node:zlib';
import { Queue } from '../../../common/index.ts';
import { OnpolicyError } from '../../../errors.ts';
import { limitTime } from '../time-limits.ts';
import type { HandlerSettings } from './handler-options.ts';
import { JsonCost, PIECE_BYTES, parseAtOnce, parseInPieces } from './parse-json.ts';
import type { ServedRequest } from './wire.ts';

/** Content types of JSON. `fetch` sends `text/plain` if its caller sets no type. */
const JSON_TYPE = /^(application\/([\w.+-]+\+)?json|text\/plain)\s*(;|$)/i;

/** Present in Node from 22.15. */
const { createZstdDecompress } = zlib as { createZstdDecompress?: typeof zlib.createGunzip };

/** Supported content encodings and their decompressors. */
const ENCODINGS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ['gzip', zlib.createGunzip],
  ['x-gzip', zlib.createGunzip],
  ['deflate', zlib.createInflate],
  ['br', zlib.createBrotliDecompress],
  ...(createZstdDecompress ? [['zstd', createZstdDecompress] as const] : []),
]);

/** Estimated bytes that the values of a body may take, as a multiple of the most bytes of a body. */
const MOST_COST = 4;

/** Bytes of all bodies that may be received or parsed at one time, as a multiple of the most bytes of one. */
const MOST_BODIES = 8;

type BodyLimits = Pick<HandlerSettings, 'maxBodyBytes' | 'bodyTimeoutMs'>;

/** Reads the request bodies of a server. Limits the bytes read at one time, and parses one large body at a time. */
export class Bodies {
  readonly #limits: BodyLimits;
  readonly #large = new Queue();
  #bytes = 0; // bytes that were received and not parsed yet

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /**
   * Reads and parses a body. Large ones are decompressed and parsed in pieces, one body at a time. Aborts while a body waits for others.
   * @throws OnpolicyError `TOO_LARGE`, `TIMEOUT`, `ABORTED`, `OVERLOADED`, and `INVALID_REQUEST` if it is not JSON
   */
  async readJson(
    { headers, body }: Pick<ServedRequest, 'headers' | 'body'>,
    signal: AbortSignal,
  ): Promise<unknown> {
    requireJson(headers);
    return await this.#received({ headers, body }, async (sent, decompressor) => {
      if (!decompressor && sent.length <= PIECE_BYTES) return parseAtOnce(sent);
      return await this.#parse(decompressor ? inflated(sent, decompressor) : slicesOf(sent), signal);
    });
  }

  /**
   * Reads a body as it is, decompressed.
   * @throws OnpolicyError `TOO_LARGE`, `TIMEOUT`, `ABORTED`, `OVERLOADED`, and `INVALID_REQUEST` for an unknown encoding
   */
  async readBytes(request: Pick<ServedRequest, 'headers' | 'body'>): Promise<Uint8Array> {
    return await this.#received(request, async (sent, decompressor) => {
      if (!decompressor) return sent;
      const parts: Uint8Array[] = [];
      let size = 0;
      for await (const part of inflated(sent, decompressor)) {
        size += part.length;
        if (size > this.#limits.maxBodyBytes) throw tooLarge(this.#limits.maxBodyBytes);
        parts.push(part);
      }
      return Buffer.concat(parts, size);
    });
  }

  /** Receives a body and reads it. Its bytes count until it was read. */
  async #received<Result>(
    { headers, body }: Pick<ServedRequest, 'headers' | 'body'>,
    read: (sent: Uint8Array, decompressor: (() => Transform) | null) => Promise<Result>,
  ): Promise<Result> {
    const { maxBodyBytes, bodyTimeoutMs } = this.#limits;
    const decompressor = decompressorOf(headers);
    if (Number(headers.get('content-length')) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    let held = 0;
    const onBytes = (count: number): void => {
      held += count;
      this.#bytes += count;
      if (held > maxBodyBytes) throw tooLarge(maxBodyBytes);
      if (this.#bytes > MOST_BODIES * maxBodyBytes) throw busy();
    };
    try {
      return await read(await readBytes(body, onBytes, bodyTimeoutMs), decompressor);
    } finally {
      this.#bytes -= held;
    }
  }

  async #parse(parts: AsyncGenerator<Uint8Array>, signal: AbortSignal): Promise<unknown> {
    const text = new PlainText(this.#limits);
    try {
      while (text.bytes <= PIECE_BYTES) {
        const { done, value } = await parts.next();
        if (done) return parseAtOnce(text.whole());
        text.add(value);
      }
      return await this.#large.run('', async () => {
        signal.throwIfAborted();
        for await (const part of parts) text.add(part);
        return await parseInPieces(text.whole());
      });
    } finally {
      await parts.return(undefined);
    }
  }
}

/** Collects the decompressed parts of a body. Throws `TOO_LARGE` once they exceed a limit. */
class PlainText {
  bytes = 0;
  readonly #maxBytes: number;
  readonly #cost = new JsonCost();
  readonly #parts: Uint8Array[] = [];

  constructor({ maxBodyBytes }: BodyLimits) {
    this.#maxBytes = maxBodyBytes;
  }

  add(part: Uint8Array): void {
    this.bytes += part.length;
    if (this.bytes > this.#maxBytes) throw tooLarge(this.#maxBytes);
    this.#cost.add(part);
    const most = MOST_COST * this.#maxBytes;
    if (this.#cost.bytes > most)
      throw new OnpolicyError(
        'TOO_LARGE',
        `the body has more objects, lists and values than ${most} bytes of memory hold`,
      );
    this.#parts.push(part);
  }

  whole(): Uint8Array {
    return this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts, this.bytes);
  }
}

/** Throws `INVALID_REQUEST` if the content type is not JSON. */
function requireJson(headers: ServedRequest['headers']): void {
  const type = headers.get('content-type');
  if (type && type !== 'application/json' && !JSON_TYPE.test(type))
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `Content-Type: expected application/json, got ${type.slice(0, 100)}`,
    );
}

/** Throws `INVALID_REQUEST` if the encoding is unknown. Returns null if the body is not compressed. */
function decompressorOf(headers: ServedRequest['headers']): (() => Transform) | null {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() || 'identity';
  const decompressor = ENCODINGS.get(encoding) ?? null;
  if (!decompressor && encoding !== 'identity')
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `Content-Encoding: expected ${[...ENCODINGS.keys()].join(', ')} or identity, got ${encoding.slice(0, 100)}`,
    );
  return decompressor;
}

/** The body of a request that has none. */
export const NO_PARTS: AsyncIterable<Uint8Array> = { async *[Symbol.asyncIterator]() {} };

/** Reads a body. `onBytes` is called with the bytes of each part; an error that it throws ends the reading. */
async function readBytes(
  body: ServedRequest['body'],
  onBytes: (count: number) => void,
  timeoutMs: number,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const iterator = (body ?? NO_PARTS)[Symbol.asyncIterator]();
  const read = async (): Promise<void> => {
    for (let part = await iterator.next(); !part.done; part = await iterator.next()) {
      onBytes(part.value.byteLength);
      parts.push(part.value);
    }
  };
  let stopClock = (): void => {};
  try {
    await new Promise<void>((resolve, reject) => {
      const onLate = (): void =>
        reject(new OnpolicyError('TIMEOUT', `the body did not come within ${timeoutMs} ms`));
      stopClock = limitTime(timeoutMs, onLate);
      read().then(resolve, reject);
    });
  } catch (error) {
    void iterator.return?.().catch(() => {}); // discards the rest
    if (error instanceof OnpolicyError) throw error;
    throw new OnpolicyError('ABORTED', 'the body broke off', { cause: error });
  } finally {
    stopClock();
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

async function* inflated(sent: Uint8Array, decompressor: () => Transform): AsyncGenerator<Uint8Array> {
  const stream = decompressor();
  stream.end(sent);
  try {
    for await (const part of stream) yield part as Uint8Array;
  } catch (cause) {
    const message = 'the body is not compressed as Content-Encoding says';
    throw new OnpolicyError('INVALID_REQUEST', message, { cause });
  }
}

/** Yields the parts of a large body, each in its own turn of the event loop. */
async function* slicesOf(sent: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < sent.length; from += PIECE_BYTES) {
    yield sent.subarray(from, from + PIECE_BYTES);
    await nextTurn();
  }
}

function busy(): OnpolicyError {
  return new OnpolicyError('OVERLOADED', 'the server reads as many bytes of bodies as it may at one time', {
    retryAfterMs: 1000,
  });
}

function tooLarge(maxBytes: number): OnpolicyError {
  return new OnpolicyError('TOO_LARGE', `the body is larger than ${maxBytes} bytes`);
}
