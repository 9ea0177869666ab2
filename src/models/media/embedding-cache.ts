/** Chunks of media -> their embeddings: encodes one at a time, and none that is cached or in progress. */
import { Shared } from '../../common/index.ts';
import type { Handle, NativeProjector } from '../../engine/native/index.ts';
import { errorAt, failIfAborted } from '../../errors.ts';

/** A chunk to encode, and a key that chunks of the same content share. */
export type EncodedChunk = { readonly key: string; readonly handle: Handle };

/** Numbers about the encoder of one model. */
export type MediaStats = {
  /** Encoder passes since it was loaded. A picture may take several. */
  readonly encodes: number;
  /** Encodes that wait or run. */
  readonly running: number;
  /** Embeddings that are cached, in bytes. */
  readonly cachedBytes: number;
};

export function sumMediaStats(stats: readonly MediaStats[]): MediaStats {
  const sum = (field: keyof MediaStats): number => stats.reduce((total, one) => total + one[field], 0);
  return { encodes: sum('encodes'), running: sum('running'), cachedBytes: sum('cachedBytes') };
}

type Embedding = { readonly handle: Handle; readonly bytes: number };

export class EmbeddingCache {
  readonly #projector: NativeProjector;
  readonly #maxBytes: number;
  readonly #maxQueued: number;
  readonly #cached = new Map<string, Embedding>(); // least recently used first
  readonly #running = new Map<string, Shared<Embedding>>();
  #bytes = 0;
  #encodes = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(projector: NativeProjector, limits: { cacheBytes: number; maxQueued: number }) {
    this.#projector = projector;
    this.#maxBytes = limits.cacheBytes;
    this.#maxQueued = limits.maxQueued;
  }

  stats(): MediaStats {
    return { encodes: this.#encodes, running: this.#running.size, cachedBytes: this.#bytes };
  }

  /** Returns the embeddings of a chunk. Rejects with `ABORTED` when `signal` fires. */
  async get(chunk: EncodedChunk, signal: AbortSignal | undefined): Promise<Handle> {
    const cached = this.#cached.get(chunk.key);
    if (cached) {
      this.#cached.delete(chunk.key);
      this.#cached.set(chunk.key, cached);
      return cached.handle;
    }
    let running = this.#running.get(chunk.key);
    if (!running || running.isStopped) {
      if (this.#running.size >= this.#maxQueued)
        throw errorAt('messages', 'TOO_LARGE', `${this.#maxQueued} media wait for their encoder`);
      const begun = new Shared((stop) => this.#encode(chunk, stop));
      running = begun;
      this.#running.set(chunk.key, begun);
      const forget = (): void => {
        if (this.#running.get(chunk.key) === begun) this.#running.delete(chunk.key);
      };
      begun.result.then(forget, forget);
    }
    return (await running.wait(signal)).handle;
  }

  async settled(): Promise<void> {
    await this.#last;
  }

  /** Queues an encode behind earlier ones. */
  async #encode(chunk: EncodedChunk, stop: AbortSignal): Promise<Embedding> {
    const cancelled = new Int32Array(1);
    stop.addEventListener('abort', () => {
      cancelled[0] = 1;
    });
    const encoded = this.#last.then(async () => {
      failIfAborted(stop);
      this.#encodes += 1;
      return await this.#projector.encode(chunk.handle, cancelled);
    });
    this.#last = encoded.catch(() => {}); // its callers receive the error
    const embedding = await encoded;
    this.#store(chunk.key, embedding);
    return embedding;
  }

  #store(key: string, embedding: Embedding): void {
    this.#cached.set(key, embedding);
    this.#bytes += embedding.bytes;
    for (const [oldest, { bytes }] of this.#cached) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#cached.delete(oldest);
      this.#bytes -= bytes;
    }
  }
}
