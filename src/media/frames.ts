/** A media part -> the pictures and sounds that it stands for: of a film its frames. */
import { errorAt } from '../errors.ts';
import type { MediaPart } from './source.ts';

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
