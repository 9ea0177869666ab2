/** A request's body -> parsed JSON, within limits of size and time. */
import { OnpolicyError } from '../../errors.ts';
import { limitTime } from '../time-limits.ts';
import type { HandlerSettings } from './handler-options.ts';
import type { WireBody, WireRequest } from './wire.ts';

/** Types of JSON; `text/plain` is what `fetch` adds where a caller gives no type. */
const JSON_TYPE = /^(application\/([\w.+-]+\+)?json|text\/plain)\s*(;|$)/i;

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
  if (!/^(identity)?$/i.test(header('content-encoding') ?? ''))
    throw new OnpolicyError('INVALID_REQUEST', 'Content-Encoding: a body must not be compressed');
  if (Number(header('content-length')) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  const text = await readText(body, maxBodyBytes, bodyTimeoutMs);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `the body is not JSON: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

async function readText(body: WireBody, maxBytes: number, timeoutMs: number): Promise<string> {
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
  try {
    return UTF8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts, bytes));
  } catch {
    throw new OnpolicyError('INVALID_REQUEST', 'the body is not UTF-8 text');
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function tooLarge(maxBytes: number): OnpolicyError {
  return new OnpolicyError('TOO_LARGE', `the body is larger than ${maxBytes} bytes`);
}
