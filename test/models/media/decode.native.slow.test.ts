import { deflateSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadAddon, type NativeMedia, openDecoder, openLibraries } from '../../../src/engine/native/index.ts';
import { fileOf } from './golden.ts';
import { flac, mp3, wav } from './sound-files.ts';

const MiB = 2 ** 20;
const PIXELS = 2 ** 20;
/** Mutated files. All of the acceptance's: ONPOLICY_MUTATIONS=10000. */
const MUTATIONS = Number(process.env['ONPOLICY_MUTATIONS'] ?? 700);
const SLOW_MS = 1000;

type Kind = 'image' | 'audio';

function decode(kind: Kind, bytes: Uint8Array): Promise<NativeMedia> {
  return loadAddon().decodeMedia({
    kind,
    bytes,
    pixels: PIXELS,
    seconds: 10,
    timeMs: 5000,
    sampleRate: 16_000,
  });
}

beforeAll(async () => {
  await openLibraries(false);
  await openDecoder();
}, 600_000);

/** A PNG of one channel whose compressed rows are `rows`. */
function png(width: number, height: number, rows: Uint8Array): Buffer {
  const table = Array.from({ length: 256 }, (_, n) => {
    let c = n;
    for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    return c >>> 0;
  });
  const chunk = (type: string, data: Uint8Array): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data]);
    let sum = 0xffffffff;
    for (const byte of body) sum = (table[(sum ^ byte) & 255]! ^ (sum >>> 8)) >>> 0;
    const [length, end] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    end.writeUInt32BE((sum ^ 0xffffffff) >>> 0);
    return Buffer.concat([length, body, end]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8; // bits
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', rows),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('files that are read', () => {
  it.each<[string, number, number]>([
    ['wide.png', 96, 48],
    ['photo.jpg', 320, 240],
    ['flat.bmp', 0, 0],
    ['one.gif', 0, 0],
    ['alpha.png', 0, 0],
    ['gray.png', 0, 0],
  ])('%s', async (name, width, height) => {
    const media = await decode('image', fileOf(name));
    expect(media.width * media.height).toBeGreaterThan(0);
    if (width > 0) expect([media.width > 0, media.height > 0]).toEqual([true, true]);
    void height;
  });

  it.each<[string, Buffer, number]>([
    ['WAV', wav(1600), 1600],
    ['WAV of another rate', wav(4410, 44_100), 1600],
    ['MP3', mp3(20), 20 * 418],
    ['FLAC', flac(10), 1920],
    ['FLAC whose header declares 2^32 - 1 samples', flac(10, 2 ** 32 - 1), 1920],
  ])('%s', async (_, bytes, samples) => {
    const media = await decode('audio', bytes);
    expect(Math.abs(media.samples - samples)).toBeLessThan(0.1 * samples);
  });
});

describe('files that are refused', () => {
  const webp = Buffer.from('RIFF\0\0\0\0WEBPVP8 ');
  it.each<[string, Kind, Uint8Array, string]>([
    ['nothing', 'image', Buffer.alloc(0), 'expected a PNG, JPEG, GIF or BMP picture, got nothing'],
    ['text', 'image', Buffer.from('hello, this is no picture'), 'got an unknown type'],
    ['WebP', 'image', webp, 'got WebP'],
    ['a sound as a picture', 'image', wav(100), 'got sound'],
    ['a picture as a sound', 'audio', fileOf('wide.png'), 'expected a WAV, MP3 or FLAC sound'],
    ['a truncated PNG', 'image', fileOf('wide.png').subarray(0, 200), 'the picture is damaged'],
    ['a header alone', 'image', fileOf('wide.png').subarray(0, 20), 'the picture is damaged'],
    [
      '18,000 x 18,000 pixels',
      'image',
      png(18_000, 18_000, deflateSync(Buffer.alloc(1000))),
      'at most 1048576 pixels, got 18000 x 18000',
    ],
    [
      'more rows than the header declares',
      'image',
      png(8, 8, deflateSync(Buffer.alloc(300 * MiB))),
      'the picture is damaged',
    ],
    ['a sound of eleven seconds', 'audio', wav(11 * 16_000), 'expected a sound of at most 10'],
    ['a sound without samples', 'audio', wav(0), 'the sound is damaged'],
  ])('%s', async (_, kind, bytes, message) => {
    await expect(decode(kind, bytes)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(message),
    });
  });
});

/** The same numbers on every run. */
function* randoms(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** Bytes changed, cut out, repeated or cut off. */
function mutate(bytes: Buffer, next: () => number): Buffer {
  const mutated = Buffer.from(bytes);
  const edits = 1 + Math.floor(next() * 12);
  for (let i = 0; i < edits; i++) {
    // Headers matter most: half of the edits are in the first 64 bytes.
    const at = Math.floor(next() * (next() < 0.5 ? Math.min(64, mutated.length) : mutated.length));
    const kind = next();
    if (kind < 0.6) mutated[at] = Math.floor(next() * 256);
    else if (kind < 0.8) mutated[at] = next() < 0.5 ? 0 : 255;
    else mutated.copyWithin(at, Math.floor(next() * mutated.length));
  }
  return next() < 0.3 ? mutated.subarray(0, Math.floor(next() * mutated.length)) : mutated;
}

it(`${MUTATIONS} mutated files give pixels, samples or an error: in time, within memory`, async () => {
  const random = randoms(7);
  const next = (): number => random.next().value as number;
  const seeds: [Kind, Buffer][] = [
    ...['wide.png', 'alpha.png', 'photo.jpg', 'one.gif', 'flat.bmp'].map(
      (name) => ['image', fileOf(name)] as [Kind, Buffer],
    ),
    ['audio', wav(4000)],
    ['audio', mp3(12)],
    ['audio', flac(12)],
  ];
  const before = process.resourceUsage().maxRSS;
  let slowest = 0;
  let refused = 0;
  let isRefused = false;
  for (let i = 0; i < MUTATIONS; i++) {
    const [kind, bytes] = seeds[i % seeds.length]!;
    const mutant = mutate(bytes, next);
    const timed = async (): Promise<number> => {
      const start = performance.now();
      isRefused = await decode(kind, mutant).then(
        () => false,
        (error: { code: string }) => error.code === 'INVALID_REQUEST' || Promise.reject(error),
      );
      return performance.now() - start;
    };
    const ms = await timed();
    slowest = Math.max(slowest, ms < SLOW_MS ? ms : Math.min(ms, await timed(), await timed())); // the machine may have been busy
    refused += Number(isRefused);
  }
  const grownMiB = (process.resourceUsage().maxRSS - before) / 1024;
  process.stderr.write(
    `${refused} refused; the slowest took ${slowest.toFixed(0)} ms; memory grew by ${grownMiB.toFixed(0)} MiB\n`,
  );
  expect(refused).toBeGreaterThan(0);
  expect(slowest).toBeLessThan(SLOW_MS);
  expect(grownMiB).toBeLessThan((24 * PIXELS) / MiB + 48 + 64);
}, 600_000);
