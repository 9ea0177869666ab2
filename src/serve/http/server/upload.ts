/** A multipart body -> its fields, and its file passed on as it arrives. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorAt, messageOf, OnpolicyError } from '../../../errors.ts';
import { limitTime } from '../time-limits.ts';
import { NO_PARTS } from './body.ts';
import type { HandlerSettings } from './handler-options.ts';
import type { ServedRequest } from './wire.ts';

/** Limits of a form, above the needs of all supported APIs. */
const LIMITS = { files: 1, fields: 32, fieldSize: 64 * 1024, headerPairs: 32 };

/** The content of a form. */
export type UploadForm<Kept> = {
  readonly fields: ReadonlyMap<string, string>;
  readonly filename: string;
  /** Result of `keep` for the file. */
  readonly kept: Kept;
};

/** Callbacks that keep the file of a form. */
export type Keeper<Kept> = {
  /** Gets the bytes of the file. Resolves when all of them are read. An error that it throws ends the reading. */
  readonly keep: (bytes: Readable) => Promise<Kept>;
  /** Undoes `keep` if the rest of the form is invalid or missing. */
  readonly discard?: (kept: Kept) => Promise<void>;
};

/**
 * Reads a form with a `file`. If the form cannot be read to its end, the file is discarded.
 * @throws OnpolicyError `INVALID_REQUEST` for another body, `TIMEOUT`, `ABORTED`
 */
export async function readUpload<Kept>(
  { headers, body }: Pick<ServedRequest, 'headers' | 'body'>,
  { bodyTimeoutMs }: Pick<HandlerSettings, 'bodyTimeoutMs'>,
  { keep, discard }: Keeper<Kept>,
): Promise<UploadForm<Kept>> {
  const type = headers.get('content-type') ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type))
    throw invalid(
      `Content-Type: expected multipart/form-data with a boundary, got ${type.slice(0, 100) || 'nothing'}`,
    );
  const { Busboy } = await import('@fastify/busboy'); // needed by few programs
  const fields = new Map<string, string>();
  const stop = new AbortController();
  const parts = (body ?? NO_PARTS)[Symbol.asyncIterator]();
  type File = { readonly filename: string; readonly bytes: Readable; readonly kept: Promise<Kept> };
  const files: File[] = []; // at most one
  try {
    const form = new Busboy({ headers: { 'content-type': type }, limits: LIMITS });
    form.on('field', (name, value) => fields.set(name, value));
    form.on('file', (name, bytes, filename) => {
      if (name !== 'file') {
        bytes.resume();
        return;
      }
      let broken: unknown; // error if the form ends within the file
      bytes.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ABORT_ERR') broken = error; // other aborts come from `keep`, which reports the reason
      });
      const kept = keep(bytes);
      kept.catch((error: unknown) => stop.abort(broken ? noForm(broken) : error));
      files.push({ filename, bytes, kept });
    });
    await pipeline(Readable.from(inTime(parts, bodyTimeoutMs)), form, { signal: stop.signal });
  } catch (error) {
    void parts.return?.().catch(() => {}); // discards the rest
    const ofForm = error instanceof OnpolicyError ? error : noForm(error);
    const reason: unknown = stop.signal.aborted ? stop.signal.reason : ofForm; // read before destroying the file aborts `stop`
    for (const { bytes, kept } of files) {
      bytes.destroy(error as Error); // busboy does not close the file when the form is destroyed
      await kept.then(discard, () => {});
    }
    throw reason;
  }
  const [file] = files;
  if (!file) throw errorAt('file', 'INVALID_REQUEST', 'this field is required');
  return { fields, filename: file.filename ?? 'file', kept: await file.kept };
}

/** Yields the parts of a body. Throws if one of them takes longer than `ms` milliseconds. */
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

function noForm(error: unknown): OnpolicyError {
  return invalid(`the body is not a form: ${messageOf(error).slice(0, 200)}`);
}

function invalid(message: string): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', message);
}
