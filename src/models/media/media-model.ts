/** A projector beside a model: text and media of a prompt -> token ids with media among them, and their embeddings. */
import { createHash } from 'node:crypto';
import { type Handle, loadAddon, type NativeChunk, type NativeProjector } from '../../engine/native/index.ts';
import { errorAt, fromNative, type OnpolicyError } from '../../errors.ts';
import type { Complete } from '../../protocol/index.ts';
import { EmbeddingCache } from './embedding-cache.ts';
import { framesOf, type MediaPart, readSource, senseOf } from './source.ts';

type MediaLimits = Complete['MediaOptions'];

/** The rows of one medium among the tokens of a prompt. */
export type PlacedMedia = {
  /** Index of the first row in the prompt. */
  readonly start: number;
  readonly count: number;
  /** Number of positions that the rows take. */
  readonly advance: number;
  readonly isNonCausal: boolean;
  readonly planes: Int32Array; // (4, count) relative to the first with M-RoPE, else empty
  /** Key of the content. Equal content has an equal key. */
  readonly key: string;
  readonly handle: Handle;
};

export type MediaPrompt = {
  /** Token ids. The rows of a medium repeat one negative number, which is the same for the same content. */
  readonly ids: Int32Array; // (prompt)
  readonly media: readonly PlacedMedia[]; // ascending
};

/** Time limit for decoding a picture, because hostile ones would take longer. */
const DECODE_MS = 10_000;
/** Bytes that are hashed at a time: they are copied on the JavaScript thread. */
const HASHED_BYTES = 2 ** 20;
/** Highest number of contents whose numbers are remembered. A forgotten one gets a new number, and its cached prefix is not found. */
const MAX_NUMBERS = 65_536;

export class MediaModel {
  readonly sees: boolean;
  readonly hears: boolean;
  /** Text that the chat template writes for a picture. Null if it writes none. */
  readonly placeholder: string | null;
  readonly cache: EmbeddingCache;
  readonly #projector: NativeProjector;
  readonly #limits: MediaLimits;
  readonly #numbers = new Map<string, number>(); // content key -> the id that stands for it
  #lastNumber = 0;

  constructor(projector: NativeProjector, limits: MediaLimits) {
    this.sees = projector.sees;
    this.hears = projector.hears;
    this.placeholder = projector.placeholder ?? null;
    this.cache = new EmbeddingCache(projector, limits);
    this.#projector = projector;
    this.#limits = limits;
  }

  /** Tokenizes a prompt: texts, and media parts between them. Errors name the path of the part. */
  async tokenize(prompt: readonly (string | MediaPart)[], addSpecial: boolean): Promise<MediaPrompt> {
    const parts = prompt.flatMap((part): (string | MediaPart)[] =>
      typeof part === 'string' ? [part] : framesOf(part),
    );
    const given = parts.filter((part) => typeof part !== 'string');
    if (given.length > this.#limits.maxParts)
      throw errorAt(
        given[this.#limits.maxParts]!.path,
        'TOO_LARGE',
        `expected at most ${this.#limits.maxParts} media in one request, got ${given.length}`,
      );
    const read = await Promise.all(
      parts.map(async (part) => (typeof part === 'string' ? part : await this.#decode(part))),
    );
    const inputs = read.map((part) => (typeof part === 'string' ? part : part.handle));
    let chunks: NativeChunk[];
    try {
      chunks = await this.#projector.tokenize(inputs, addSpecial);
    } catch (error) {
      const { code, message } = fromNative(error);
      throw errorAt(given[0]!.path, code, message, error);
    }
    return this.#lay(
      chunks,
      read.map((part) => (typeof part === 'string' ? '' : part.digest)),
    );
  }

  /** Returns the embeddings of a prompt's media, in order. */
  async encode(media: readonly PlacedMedia[], signal: AbortSignal | undefined): Promise<Handle[]> {
    try {
      return await Promise.all(media.map((chunk) => this.cache.get(chunk, signal)));
    } catch (error) {
      throw fromNative(error);
    }
  }

  /** Frees the projector when all encodes have ended. */
  async close(): Promise<void> {
    await this.cache.settled();
    this.#projector.close();
  }

  async #decode(part: MediaPart): Promise<{ handle: Handle; digest: string }> {
    const sense = senseOf(part.part);
    if (sense === null || !(sense === 'image' ? this.sees : this.hears)) throw refuse(part, this);
    const { kind, bytes, path } = await readSource(part, this.#limits);
    const { maxPixels, maxSeconds } = this.#limits;
    try {
      const { handle } = await loadAddon().decodeMedia({
        kind,
        bytes,
        pixels: maxPixels,
        seconds: maxSeconds,
        timeMs: DECODE_MS,
        sampleRate: this.#projector.sampleRate,
      });
      return { handle, digest: `${kind} ${await digestOf(bytes)}` };
    } catch (error) {
      const { code, message } = fromNative(error);
      throw errorAt(path, code, message, error);
    }
  }

  /** Lays out the rows of chunks. `digests` (parts): digest of each part's content. */
  #lay(chunks: readonly NativeChunk[], digests: readonly string[]): MediaPrompt {
    const total = chunks.reduce((sum, { tokens, count }) => sum + (tokens ? tokens.length : count), 0);
    const ids = new Int32Array(total);
    const media: PlacedMedia[] = [];
    const ordinals = new Map<number, number>(); // by part: chunks so far
    let start = 0;
    for (const chunk of chunks) {
      if (chunk.tokens) {
        ids.set(chunk.tokens, start);
        start += chunk.tokens.length;
        continue;
      }
      const { part, count, advance, isNonCausal, positions: planes, handle } = chunk;
      const ordinal = ordinals.get(part) ?? 0;
      ordinals.set(part, ordinal + 1);
      const hash = createHash('sha256').update(`${digests[part]} ${ordinal} ${count} ${advance} `);
      const key = hash.update(planes).digest('hex');
      ids.fill(this.#numberOf(key), start, start + count);
      media.push({ start, count, advance, isNonCausal, planes, key, handle });
      start += count;
    }
    return { ids, media };
  }

  /** Returns a negative number that stands for this content only. */
  #numberOf(key: string): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#lastNumber = this.#lastNumber === -(2 ** 31) ? -1 : this.#lastNumber - 1;
    this.#numbers.set(key, this.#lastNumber);
    for (const oldest of this.#numbers.keys()) {
      if (this.#numbers.size <= MAX_NUMBERS) break;
      this.#numbers.delete(oldest);
    }
    return this.#lastNumber;
  }
}

/** Hashes content in pieces. The digest of several pieces is the hash of their hashes. */
async function digestOf(bytes: Uint8Array): Promise<string> {
  const hashes: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += HASHED_BYTES) {
    const piece = bytes.subarray(at, at + HASHED_BYTES) as Uint8Array<ArrayBuffer>;
    hashes.push(new Uint8Array(await crypto.subtle.digest('SHA-256', piece)));
  }
  const whole = Buffer.concat(hashes);
  return hashes.length > 1 ? createHash('sha256').update(whole).digest('hex') : whole.toString('hex');
}

/**
 * Returns the token ids of a prompt with media replaced by their content: the same in every process. Each row of a medium has 31 bits of
 * its key, below 0, so that eight rows hold the whole key.
 */
export function portableIds({ ids, media }: MediaPrompt): Int32Array {
  if (media.length === 0) return ids;
  const portable = ids.slice();
  for (const { start, count, key } of media) {
    const words = new Int32Array(Uint8Array.from(Buffer.from(key, 'hex')).buffer);
    for (let i = 0; i < count; i++) portable[start + i] = -1 - (words[i % words.length]! >>> 1);
  }
  return portable;
}

/** Returns the error of a part that a model does not accept. `senses`: those of its projector; null if it has none. */
export function refuse(
  { path, part }: MediaPart,
  senses: { readonly sees: boolean; readonly hears: boolean } | null,
): OnpolicyError {
  const taken = [
    'text',
    ...(senses?.sees ? ['pictures (image_url)'] : []),
    ...(senses?.hears ? ['sounds (input_audio)'] : []),
  ];
  const hint = senses ? '' : '; pictures and sounds need a projector: the model option mmproj';
  return errorAt(
    path,
    'UNSUPPORTED',
    `this model takes ${taken.join(', ')}${senses ? '' : ' only'}, got a part of type ${part.kind}${hint}`,
  );
}
