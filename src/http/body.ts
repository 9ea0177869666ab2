/** A request's body -> JSON, within limits of size and time. */
import { OnpolicyError } from '../errors.ts';
import type { HandlerSettings } from './options.ts';

/** Reads and parses a body. Throws `TOO_LARGE`, `TIMEOUT`, `ABORTED`, and `INVALID_REQUEST` when it is no JSON. */
export async function readJson(
  request: Request,
  { maxBodyBytes, bodyTimeoutMs }: Pick<HandlerSettings, 'maxBodyBytes' | 'bodyTimeoutMs'>,
): Promise<unknown> {
  const type = request.headers.get('content-type');
  if (type !== null && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type))
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `Content-Type: expected application/json, got ${type.slice(0, 100)}`,
    );
  if (!/^(identity)?$/i.test(request.headers.get('content-encoding') ?? ''))
    throw new OnpolicyError('INVALID_REQUEST', 'Content-Encoding: a body must not be compressed');
  if (Number(request.headers.get('content-length')) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  const text = await readText(request, maxBodyBytes, bodyTimeoutMs);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `the body is not JSON: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

async function readText(request: Request, maxBytes: number, timeoutMs: number): Promise<string> {
  if (!request.body) return '';
  const reader = request.body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new OnpolicyError('TIMEOUT', `the body did not come within ${timeoutMs} ms`);
    timer = setTimeout(() => reject(error), timeoutMs);
  });
  try {
    let text = '';
    let bytes = 0;
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late]);
      if (done) return text + decode(decoder, undefined);
      bytes += value.byteLength;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      text += decode(decoder, value);
    }
  } catch (error) {
    void reader.cancel(error).catch(() => {}); // nobody reads the rest
    if (error instanceof OnpolicyError) throw error;
    throw new OnpolicyError('ABORTED', 'the body broke off', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function decode(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array | undefined): string {
  try {
    return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
  } catch {
    throw new OnpolicyError('INVALID_REQUEST', 'the body is not UTF-8 text');
  }
}

function tooLarge(maxBytes: number): OnpolicyError {
  return new OnpolicyError('TOO_LARGE', `the body is larger than ${maxBytes} bytes`);
}
