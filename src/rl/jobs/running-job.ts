/** One training job of this process, from its queue to its end. Each event is stored first, then given to readers. */
import { onAbort, pending, untilAborted } from '../../common/index.ts';
import { fromNative, OnpolicyError } from '../../errors.ts';
import type { TrainingJobEvent, TrainingJobStatus, TrainingResult } from '../../protocol/index.ts';
import type { TrainingJob } from '../../protocol/service/index.ts';
import type { JobEvent } from '../index.ts';
import type { OpenJob } from '../store/index.ts';

/** The end of a job, with its result or error. */
type JobEnd =
  | { readonly status: 'completed'; readonly result: TrainingResult }
  | { readonly status: 'failed' | 'cancelled'; readonly error: OnpolicyError };

/** A job with its public methods, and those for its runner. */
export class RunningJob implements TrainingJob {
  readonly done: Promise<TrainingResult>;
  readonly #record: OpenJob;
  readonly #stop: AbortController;
  readonly #events: TrainingJobEvent[] = [];
  readonly #settle: (end: JobEnd) => void;
  #status: TrainingJobStatus = 'queued';
  #written: Promise<void> = Promise.resolve();
  #changed = pending<void>();

  /** @param stop aborts the job; one that is still queued then ends at once */
  constructor(record: OpenJob, stop: AbortController) {
    this.#record = record;
    this.#stop = stop;
    const { promise, resolve, reject } = pending<TrainingResult>();
    this.done = promise;
    promise.catch(() => {}); // the caller need not await its job
    this.#settle = (end) => (end.status === 'completed' ? resolve(end.result) : reject(end.error));
    onAbort(stop.signal, () => {
      if (this.#status === 'queued') void this.#fail(stop.signal.reason);
    });
  }

  get id(): string {
    return this.#record.id;
  }

  get status(): TrainingJobStatus {
    return this.#status;
  }

  /** Fires when the job must stop. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Yields events after the one with the id `after`. When the signal fires, throws its reason. */
  async *events({
    after = null,
    signal,
  }: {
    readonly after?: string | null;
    readonly signal?: AbortSignal;
  } = {}): AsyncGenerator<TrainingJobEvent> {
    await this.#written;
    const known = after?.toLowerCase();
    for (let next = this.#events.findIndex(({ id }) => id === known) + 1; ; next++) {
      signal?.throwIfAborted();
      while (next === this.#events.length) {
        if (this.#isEnded) return;
        await untilAborted(this.#changed.promise, signal, ({ reason }) => reason);
      }
      yield this.#events[next]!;
    }
  }

  async cancel(): Promise<void> {
    this.stop(new OnpolicyError('ABORTED', 'the training job was cancelled'));
    await this.done.catch(() => {}); // its error is the cancellation
  }

  /** Stops the job without waiting for it. */
  stop(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Runs the job unless it was stopped in the queue. Never rejects. */
  async run(work: () => Promise<TrainingResult>): Promise<void> {
    if (this.#isEnded) return;
    this.#status = 'running';
    try {
      await this.#record.start();
      const result = await work();
      await this.#written;
      const { step, metrics } = result;
      await this.#record.finish({ status: 'completed', step, metrics });
      this.#end({ status: 'completed', result });
    } catch (cause) {
      await this.#fail(cause);
    }
  }

  /** Stores an event and gives it to readers. A job whose events cannot be stored is stopped. */
  emit(event: JobEvent): void {
    this.#written = this.#written
      .then(async () => {
        this.#events.push(await this.#record.append(event));
        this.#notify();
      })
      .catch((cause: unknown) => this.stop(fromNative(cause)));
  }

  get #isEnded(): boolean {
    return this.#status !== 'queued' && this.#status !== 'running';
  }

  /** Ends the job without a result. */
  async #fail(cause: unknown): Promise<void> {
    const { aborted, reason } = this.signal;
    const error = fromNative(aborted ? reason : cause);
    const { code, message } = error;
    const status = aborted && CANCELLED.has(code) ? 'cancelled' : 'failed';
    await this.#written;
    if (this.#events.at(-1)?.type !== 'training_failed')
      this.emit({ type: 'training_failed', code, message });
    await this.#written;
    // If this cannot be stored either, the store reports after a restart that the job did not end.
    await this.#record
      .finish(status === 'cancelled' ? { status } : { status, error: { code, message } })
      .catch(() => {});
    this.#end({ status, error });
  }

  #end(end: JobEnd): void {
    this.#status = end.status;
    this.#settle(end);
    this.#notify();
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = pending<void>();
    resolve();
  }
}

/** Codes that mean that a job was cancelled, not that it failed. */
const CANCELLED = new Set<OnpolicyError['code']>(['ABORTED', 'CLOSED']);
