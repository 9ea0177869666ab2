/** A multipart body -> its fields, and its file passed on as it arrives. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorAt, messageOf, OnpolicyError } from '../../errors.ts';
import { limitTime } from '../time-limits.ts';
import type { HandlerSettings } from './handler-options.ts';
import type { WireRequest } from './wire.ts';

/** More than the forms of these APIs have. */
const LIMITS = { files: 1, fields: 32, fieldSize: 64 * 1024, headerPairs: 32 };

/** What a form had. */
export type UploadForm<Kept> = {
  readonly fields: ReadonlyMap<string, string>;
  readonly filename: string;
  /** What became of its file. */
  readonly kept: Kept;
};

/**
 * Reads a form with a `file`. `keep` gets its bytes; what it throws ends the reading.
 * @throws OnpolicyError `INVALID_REQUEST` for another body, `TIMEOUT`, `ABORTED`
 */
export async function readUpload<Kept>(
  { header, body }: Pick<WireRequest, 'header' | 'body'>,
  { bodyTimeoutMs }: Pick<HandlerSettings, 'bodyTimeoutMs'>,
  keep: (bytes: Readable) => Promise<Kept>,
): Promise<UploadForm<Kept>> {
  const type = header('content-type') ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type))
    throw invalid(
      `Content-Type: expected multipart/form-data with a boundary, got ${type.slice(0, 100) || 'nothing'}`,
    );
  const { Busboy } = await import('@fastify/busboy'); // needed by few programs
  const fields = new Map<string, string>();
  const stop = new AbortController();
  let file: { readonly filename: string; readonly kept: Promise<Kept> } | null = null;
  try {
    const form = new Busboy({ headers: { 'content-type': type }, limits: LIMITS });
    form.on('field', (name, value) => fields.set(name, value));
    form.on('file', (name, bytes, filename) => {
      if (name !== 'file') {
        bytes.resume();
        return;
      }
      const kept = keep(bytes);
      kept.catch((error: unknown) => stop.abort(error));
      file = { filename, kept };
    });
    const parts = Readable.from(inTime(body.parts(), bodyTimeoutMs));
    await pipeline(parts, form, { signal: stop.signal });
  } catch (error) {
    body.stop();
    if (stop.signal.aborted) throw stop.signal.reason;
    if (error instanceof OnpolicyError) throw error;
    throw invalid(`the body is not a form: ${messageOf(error).slice(0, 200)}`);
  }
  const { filename, kept } = (file ?? {}) as Partial<NonNullable<typeof file>>;
  if (!kept) throw errorAt('file', 'INVALID_REQUEST', 'this field is required');
  return { fields, filename: filename ?? 'file', kept: await kept };
}

/** The parts of a body, each within its time. */
async function* inTime(parts: AsyncIterator<Uint8Array>, ms: number): AsyncGenerator<Uint8Array> {
  for (;;) {
    let stopClock = (): void => {};
    const late = new Promise<never>((_, reject) => {
      stopClock = limitTime(ms, () =>
        reject(new OnpolicyError('TIMEOUT', `no part of the body came within ${ms} ms`)),
      );
    });
    const part = parts.next().catch((cause: unknown) => {
      throw new OnpolicyError('ABORTED', 'the body broke off', { cause });
    });
    try {
      const { done, value } = await Promise.race([part, late]);
      if (done) return;
      yield value;
    } finally {
      stopClock();
    }
  }
}

function invalid(message: string): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', message);
}
