/** A media part of a message -> its bytes, within limits. Nothing is fetched. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { errorAt, type OnpolicyError } from '../errors.ts';
import { type ChatContentPart, type Complete, fileBytes } from '../protocol/index.ts';

type MediaLimits = Pick<Complete['MediaOptions'], 'maxBytes' | 'folders'>;

/** Bytes of a file, and which part of the request they come from. */
type MediaSource = {
  readonly kind: 'image' | 'audio';
  /** Path of the field, for errors. */
  readonly path: string;
  readonly bytes: Uint8Array;
};

/** Letters that are decoded in one turn of the event loop: of base64 whole groups of four. */
const DECODED_LETTERS = 2 ** 20;
const PERCENT = 0x25;

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
  return { kind, path: where, bytes: await bytesOf(value, part.kind === 'input_audio', where, limits) };
}

/** Reads a sound that is base64 text, a `data:` URI or bytes; `where` is its field. */
export async function readSound(
  file: string | Uint8Array,
  where: string,
  limits: MediaLimits,
): Promise<Uint8Array> {
  return await bytesOf(file, true, where, limits);
}

async function bytesOf(
  value: unknown,
  isBare: boolean,
  where: string,
  limits: MediaLimits,
): Promise<Uint8Array> {
  const bytes = await readBytes(value, isBare, where, limits);
  if (bytes.length === 0) throw wrong(where, 'expected data, got none');
  return bytes;
}

async function readBytes(
  value: unknown,
  isBare: boolean,
  where: string,
  limits: MediaLimits,
): Promise<Uint8Array> {
  const bytes = fileBytes(value)?.(); // of pixels a new file
  if (bytes) {
    checkSize(bytes.length, where, limits);
    return bytes === value ? bytes.slice() : bytes; // the caller may change them later
  }
  if (typeof value !== 'string') throw wrong(where, 'expected a data: URI or bytes');
  if (value.startsWith('data:')) return await fromDataUri(value, where, limits);
  if (isBare) return await fromBase64(value, where, limits);
  if (value.startsWith('file:')) return await fromFile(value, where, limits);
  throw errorAt(
    where,
    'UNSUPPORTED',
    `expected a data: URI, got ${JSON.stringify(value.slice(0, 60))}; this library fetches no address`,
  );
}

async function fromDataUri(uri: string, where: string, limits: MediaLimits): Promise<Uint8Array> {
  const comma = uri.indexOf(',');
  if (comma < 0) throw wrong(where, 'expected a data: URI with a comma');
  const decode = uri.slice(0, comma).toLowerCase().endsWith(';base64') ? fromBase64 : fromPercentEncoded;
  return await decode(uri.slice(comma + 1), where, limits);
}

/** Letters are bytes, and so is `%` with two digits. In pieces, like base64. */
async function fromPercentEncoded(text: string, where: string, limits: MediaLimits): Promise<Uint8Array> {
  checkSize(Math.ceil(text.length / 3), where, limits);
  const bytes = new Uint8Array(text.length);
  let size = 0;
  for (let at = 0, end = 0; at < text.length; ) {
    if (at > 0) await setImmediate();
    for (end += DECODED_LETTERS; at < Math.min(end, text.length); at++) {
      let code = text.charCodeAt(at);
      if (code === PERCENT) code = 16 * digit(text.charCodeAt(++at)) + digit(text.charCodeAt(++at));
      if (!(code < 256)) throw wrong(where, 'expected percent-encoded bytes');
      bytes[size++] = code;
    }
  }
  checkSize(size, where, limits);
  return bytes.slice(0, size);
}

/** The value of a hexadecimal digit, NaN for what is none. */
function digit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : Number.NaN;
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
  throw errorAt(where, 'TOO_LARGE', `expected at most ${maxBytes} bytes, got ${bytes}`);
}

function wrong(where: string, reason: string): OnpolicyError {
  return errorAt(where, 'INVALID_REQUEST', reason);
}

/** vLLM's form of a film: frames as JPEG files in base64, with commas between them. */
const FRAMES_URI = /^data:video\/jpeg;base64,/i;

/** The frames of a film, as parts of the same kind; any other part alone. Fails with `UNSUPPORTED` for a film that would have to be decoded. */
export function framesOf(part: MediaPart): MediaPart[] {
  const { path, part: given } = part;
  if (given.kind === 'video')
    return (given.part['video'] as unknown[]).map((value, at) => toFrame(`${path}.video.${at}`, value));
  if (given.kind !== 'video_url') return [part];
  const where = `${path}.video_url.url`;
  const url = (given.part['video_url'] as { url: unknown }).url;
  if (typeof url !== 'string' || !FRAMES_URI.test(url))
    throw errorAt(
      where,
      'UNSUPPORTED',
      `expected data:video/jpeg;base64, with frames between commas, or a part of type video with frames; films are not decoded`,
    );
  const frames = url.slice(url.indexOf(',') + 1).split(',');
  return frames.map((frame) => toFrame(where, `data:image/jpeg;base64,${frame}`));
}

function toFrame(path: string, frame: unknown): MediaPart {
  return { path, part: { type: 'media', kind: 'video', part: { frame } } };
}
