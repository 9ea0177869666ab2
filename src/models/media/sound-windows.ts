/** A sound of any length -> WAV files of overlapping windows, each as long as the sounds that models are trained on. */
import { setImmediate } from 'node:timers/promises';
import { loadAddon, openDecoder } from '../../engine/native/index.ts';
import { errorAt, fromNative } from '../../errors.ts';
import { type Complete, readSound } from '../../protocol/index.ts';

/** Length of a window, as encoders of speech are trained with, and overlap with the next one, which is longer than a word. */
const WINDOW_S = 30;
const OVERLAP_S = 4;
/** Sample rate of encoders of speech. */
const RATE_HZ = 16_000;
const HEADER_BYTES = 44;
const FLOAT = 3;
const FLOAT_BYTES = 4;

/** Returns the windows of a sound; `file` is the field that contains it. Fails as a message part does, naming the field. */
export async function soundWindows(
  file: string | Uint8Array,
  limits: Complete['MediaOptions'],
): Promise<Uint8Array[]> {
  const bytes = await readSound(file, 'file', limits);
  await openDecoder();
  const samples = await decode(bytes, limits).catch((cause: unknown) => {
    const { code, message } = fromNative(cause);
    throw errorAt('file', code, message, cause);
  });
  const windows: Uint8Array[] = [];
  const step = (WINDOW_S - OVERLAP_S) * RATE_HZ;
  for (let at = 0; ; at += step) {
    windows.push(toWav(samples.subarray(at, at + WINDOW_S * RATE_HZ)));
    if (at + WINDOW_S * RATE_HZ >= samples.length) return windows;
    await setImmediate();
  }
}

async function decode(
  bytes: Uint8Array,
  { maxPixels, maxSeconds }: Complete['MediaOptions'],
): Promise<Float32Array> {
  const { handle, samples } = await loadAddon().decodeMedia({
    kind: 'audio',
    bytes,
    pixels: maxPixels,
    seconds: maxSeconds,
    timeMs: 0, // it applies to pictures
    sampleRate: RATE_HZ,
  });
  const heard = new Float32Array(samples);
  await loadAddon().copySamples(handle, heard);
  return heard;
}

function toWav(samples: Float32Array): Uint8Array {
  const bytes = FLOAT_BYTES * samples.length;
  const file = Buffer.alloc(HEADER_BYTES + bytes);
  for (const [at, name] of [
    [0, 'RIFF'],
    [8, 'WAVEfmt '],
    [36, 'data'],
  ] as const)
    file.write(name, at, 'latin1');
  const words = { 4: file.length - 8, 16: 16, 24: RATE_HZ, 28: FLOAT_BYTES * RATE_HZ, 40: bytes };
  for (const [at, value] of Object.entries(words)) file.writeUInt32LE(value, Number(at));
  const halves = { 20: FLOAT, 22: 1, 32: FLOAT_BYTES, 34: 8 * FLOAT_BYTES };
  for (const [at, value] of Object.entries(halves)) file.writeUInt16LE(value, Number(at));
  file.set(new Uint8Array(samples.buffer, samples.byteOffset, bytes), HEADER_BYTES);
  return file;
}
