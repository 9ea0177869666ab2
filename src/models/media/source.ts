/** A media part of a message -> its bytes, within limits. It never downloads anything. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorAt, type OnpolicyError } from '../../errors.ts';
import {
  type ChatContentPart,
  type Complete,
  checkSize,
  inlineBytes,
  requireData,
} from '../../protocol/index.ts';

type MediaLimits = Pick<Complete['MediaOptions'], 'maxBytes' | 'folders'>;

/** Bytes of a file, and the field of the request that they come from. */
type MediaSource = {
  readonly kind: 'image' | 'audio';
  /** Path of the field, for errors. */
  readonly path: string;
  readonly bytes: Uint8Array;
};

export type MediaPart = {
  readonly path: string;
  readonly part: Extract<ChatContentPart, { type: 'media' }>;
};

/**
 * Position of the data in each kind of part: the field below the part, and its sense. A part of a film is one frame, and its path is that
 * of the data.
 */
const FIELDS: Readonly<Record<string, { kind: 'image' | 'audio'; field: readonly string[] }>> = {
  video: { kind: 'image', field: ['frame'] },
  image_url: { kind: 'image', field: ['image_url', 'url'] },
  input_audio: { kind: 'audio', field: ['input_audio', 'data'] },
  audio_url: { kind: 'audio', field: ['audio_url', 'url'] },
  file: { kind: 'image', field: ['file', 'file_data'] },
};

/** Returns the sense that a part needs. Returns null if no model has it. */
export function senseOf(part: MediaPart['part']): 'image' | 'audio' | null {
  return FIELDS[part.kind]?.kind ?? null;
}

/** Reads the bytes of a part. Fails with `INVALID_REQUEST`, `UNSUPPORTED` or `TOO_LARGE`, naming the field. */
export async function readSource({ path: at, part }: MediaPart, limits: MediaLimits): Promise<MediaSource> {
  const { kind, field } = FIELDS[part.kind]!;
  const where = part.kind === 'video' ? at : `${at}.${field.join('.')}`;
  const value = field.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)?.[name], part.part);
  const inline = await inlineBytes(value, part.kind === 'input_audio', where, limits);
  return {
    kind,
    path: where,
    bytes: requireData(inline ?? (await fromUri(value as string, where, limits)), where),
  };
}

async function fromUri(value: string, where: string, limits: MediaLimits): Promise<Uint8Array> {
  if (value.startsWith('file:')) return await fromFile(value, where, limits);
  throw errorAt(
    where,
    'UNSUPPORTED',
    `expected a data: URI, got ${JSON.stringify(value.slice(0, 60))}; this library fetches no address`,
  );
}

async function fromFile(uri: string, where: string, limits: MediaLimits): Promise<Uint8Array> {
  const refused = (): OnpolicyError =>
    errorAt(where, 'INVALID_REQUEST', 'expected a file below one of the folders of the option media.folders');
  if (limits.folders.length === 0) throw refused();
  let file: string;
  let folders: string[];
  try {
    file = await fs.realpath(fileURLToPath(uri));
    folders = await Promise.all(limits.folders.map((folder) => fs.realpath(folder)));
  } catch {
    throw refused(); // the error is the same for a missing file, so that callers cannot probe which files exist
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

/** vLLM's form of a film: frames as JPEG files in base64, separated by commas. */
const FRAMES_URI = /^data:video\/jpeg;base64,/i;

/**
 * Returns the frames of a film as parts of the same kind, and any other part unchanged. Fails with `UNSUPPORTED` for a film that would have
 * to be decoded.
 */
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
