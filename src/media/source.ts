/** A media part of a message -> its bytes, within limits. Nothing is fetched. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { OnpolicyError } from '../errors.ts';
import { type ChatContentPart, fileBytes } from '../protocol/index.ts';
import type { MediaLimits } from './limits.ts';

/** Bytes of a file, and which part of the request they come from. */
export type MediaSource = {
  readonly kind: 'image' | 'audio';
  /** Path of the field, for errors. */
  readonly path: string;
  readonly bytes: Uint8Array;
};

/** Letters of base64 that are decoded in one turn of the event loop: whole groups of four. */
const DECODED_LETTERS = 2 ** 20;

/** A media part, and its path in the request. */
export type MediaPart = {
  readonly path: string;
  readonly part: Extract<ChatContentPart, { type: 'media' }>;
};

/** Where a part has its data: the field below the part, and what it holds. Of a film a part is one frame, and its path that of the data. */
const FIELDS: Readonly<Record<string, { kind: 'image' | 'audio'; field: readonly string[] }>> = {
  video: { kind: 'image', field: ['frame'] },
  image_url: { kind: 'image', field: ['image_url', 'url'] },
  input_audio: { kind: 'audio', field: ['input_audio', 'data'] },
  audio_url: { kind: 'audio', field: ['audio_url', 'url'] },
  file: { kind: 'image', field: ['file', 'file_data'] },
};

/** Which sense a part needs; null: none that any model has. */
export function senseOf(part: MediaPart['part']): 'image' | 'audio' | null {
  return FIELDS[part.kind]?.kind ?? null;
}

/** Reads the bytes of a part. Fails with `INVALID_REQUEST`, `UNSUPPORTED` or `TOO_LARGE`, naming the field. */
export async function readSource({ path: at, part }: MediaPart, limits: MediaLimits): Promise<MediaSource> {
  const { kind, field } = FIELDS[part.kind]!;
  const where = part.kind === 'video' ? at : `${at}.${field.join('.')}`;
  const value = field.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)?.[name], part.part);
  const bytes = await bytesOf(value, part.kind === 'input_audio', where, limits);
  if (bytes.length === 0) throw wrong(where, 'expected data, got none');
  return { kind, path: where, bytes };
}

async function bytesOf(
  value: unknown,
  isBare: boolean,
  where: string,
  limits: MediaLimits,
): Promise<Uint8Array> {
  const bytes = fileBytes(value)?.(); // of pixels a new file
  if (bytes) {
    checkSize(bytes.length, where, limits);
    return bytes === value ? bytes.slice() : bytes; // the caller may go on to change them
  }
  if (typeof value !== 'string') throw wrong(where, 'expected a data: URI or bytes');
  if (value.startsWith('data:')) return await fromDataUri(value, where, limits);
  if (isBare) return await fromBase64(value, where, limits);
  if (value.startsWith('file:')) return await fromFile(value, where, limits);
  throw new OnpolicyError(
    'UNSUPPORTED',
    `${where}: expected a data: URI, got ${JSON.stringify(value.slice(0, 60))}; this library fetches no address`,
    { param: where },
  );
}

async function fromDataUri(uri: string, where: string, limits: MediaLimits): Promise<Uint8Array> {
  const comma = uri.indexOf(',');
  if (comma < 0) throw wrong(where, 'expected a data: URI with a comma');
  if (uri.slice(0, comma).toLowerCase().endsWith(';base64'))
    return await fromBase64(uri.slice(comma + 1), where, limits);
  checkSize(uri.length - comma, where, limits);
  const bytes: number[] = [];
  for (let i = comma + 1; i < uri.length; i++) {
    const code = uri[i] === '%' ? Number.parseInt(uri.slice(i + 1, i + 3), 16) : uri.charCodeAt(i);
    if (uri[i] === '%') i += 2;
    if (!(code >= 0 && code < 256)) throw wrong(where, 'expected percent-encoded bytes');
    bytes.push(code);
  }
  return Uint8Array.from(bytes);
}

/** Strict: what is no base64 is a fault, not skipped. In pieces, with turns of the event loop between them. */
async function fromBase64(text: string, where: string, limits: MediaLimits): Promise<Uint8Array> {
  checkSize(Math.floor((text.length * 3) / 4), where, limits);
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = Buffer.alloc(Math.floor(((text.length - padding) * 3) / 4));
  let size = 0;
  for (let at = 0; at < text.length; at += DECODED_LETTERS) {
    if (at > 0) await setImmediate();
    size += bytes.write(text.slice(at, at + DECODED_LETTERS), size, 'base64');
  }
  if (size !== bytes.length) throw wrong(where, 'expected base64');
  return bytes;
}

async function fromFile(uri: string, where: string, limits: MediaLimits): Promise<Uint8Array> {
  const refused = (): OnpolicyError =>
    wrong(where, 'expected a file below one of the folders of the option media.folders');
  if (limits.folders.length === 0) throw refused();
  let file: string;
  let folders: string[];
  try {
    file = await fs.realpath(fileURLToPath(uri));
    folders = await Promise.all(limits.folders.map((folder) => fs.realpath(folder)));
  } catch {
    throw refused(); // the same answer for a file that is not there: nobody learns which files are
  }
  if (!folders.some((folder) => file.startsWith(folder + path.sep))) throw refused();
  const handle = await fs.open(file);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw refused();
    checkSize(stat.size, where, limits);
    const bytes = Buffer.alloc(stat.size);
    const { bytesRead } = await handle.read(bytes, 0, stat.size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function checkSize(bytes: number, where: string, { maxBytes }: MediaLimits): void {
  if (bytes <= maxBytes) return;
  throw new OnpolicyError('TOO_LARGE', `${where}: expected at most ${maxBytes} bytes, got ${bytes}`, {
    param: where,
  });
}

function wrong(where: string, reason: string): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', `${where}: ${reason}`, { param: where });
}
