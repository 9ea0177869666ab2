/** Token sequences of many requests -> one vector each: batches of a model's embedder, one at a time. */
import { onAbort, pending } from '../common/index.ts';
import { abortedBy, failIfAborted, fromNative, OnpolicyError } from '../errors.ts';
import type { NativeEmbedder } from './native/index.ts';

/** Limits of one batch. */
export type EmbeddingLimits = {
  /** Maximum number of tokens of a batch of several sequences. A longer sequence is a separate batch. */
  readonly packedTokens: number;
  readonly maxSequences: number;
};

/** The sequences of one request. */
type Job = {
  readonly sequences: readonly Int32Array[];
  readonly rows: Float32Array[]; // (sequences, size)
  next: number; // of the first sequence that no batch has
  left: number; // sequences without a row
  readonly resolve: (rows: readonly Float32Array[]) => void;
  readonly reject: (error: OnpolicyError) => void;
};

/** A sequence in a batch. */
type Place = { readonly job: Job; readonly index: number };

/** The queue of one model. */
export class EmbeddingQueue {
  readonly #embedder: NativeEmbedder;
  readonly #limits: EmbeddingLimits;
  readonly #jobs = new Set<Job>(); // with sequences left to compute, the one whose turn is next first
  #loop: Promise<void> | null = null;
  #closed = false;

  constructor(embedder: NativeEmbedder, limits: EmbeddingLimits) {
    this.#embedder = embedder;
    this.#limits = limits;
  }

  /** Numbers of a vector. */
  get size(): number {
    return this.#embedder.size;
  }

  /** Returns the vectors of non-empty sequences. Requests take turns, so that a long one does not delay the others. */
  async embed(
    sequences: readonly Int32Array[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Float32Array[]> {
    if (this.#closed) throw closed();
    failIfAborted(signal);
    const { promise, resolve, reject } = pending<readonly Float32Array[]>();
    const job: Job = { sequences, rows: [], next: 0, left: sequences.length, resolve, reject };
    using _stopping = onAbort(signal, () => {
      this.#jobs.delete(job);
      reject(abortedBy(signal));
    });
    this.#jobs.add(job);
    this.#loop ??= this.#run();
    return await promise;
  }

  /** Ends everything that runs and frees the embedder. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#embedder.close();
    await this.#loop;
  }

  async #run(): Promise<void> {
    await null; // requests of the same tick share a batch
    while (this.#jobs.size > 0 && !this.#closed) await this.#compute(this.#nextBatch());
    for (const job of this.#jobs) job.reject(closed());
    this.#jobs.clear();
    this.#loop = null;
  }

  /** Returns one sequence of each job in turn, as many as fit. */
  #nextBatch(): Place[] {
    const { packedTokens, maxSequences } = this.#limits;
    const batch: Place[] = [];
    let tokens = 0;
    for (const job of this.#jobs) {
      if (batch.length === maxSequences) break;
      const { length } = job.sequences[job.next]!;
      if (batch.length > 0 && tokens + length > packedTokens) break;
      tokens += length;
      batch.push({ job, index: job.next });
      job.next += 1;
      this.#jobs.delete(job);
      if (job.next < job.sequences.length) this.#jobs.add(job); // at the end
    }
    return batch;
  }

  async #compute(batch: readonly Place[]): Promise<void> {
    const sequences = batch.map(({ job, index }) => job.sequences[index]!);
    const lengths = Int32Array.from(sequences, ({ length }) => length);
    const tokens = new Int32Array(lengths.reduce((sum, length) => sum + length, 0));
    let at = 0;
    for (const sequence of sequences) {
      tokens.set(sequence, at);
      at += sequence.length;
    }
    try {
      const rows = await this.#embedder.embed(tokens, lengths);
      const { size } = this.#embedder;
      for (const [i, { job, index }] of batch.entries()) {
        job.rows[index] = rows.subarray(i * size, (i + 1) * size);
        job.left -= 1;
        if (job.left === 0) job.resolve(job.rows);
      }
    } catch (cause) {
      const error = this.#closed ? closed() : fromNative(cause);
      for (const { job } of batch) {
        this.#jobs.delete(job);
        job.reject(error);
      }
    }
  }
}

function closed(): OnpolicyError {
  return new OnpolicyError('CLOSED', 'the model is closed');
}
