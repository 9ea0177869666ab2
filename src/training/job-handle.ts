/** One training job of this process: its events as they come, how it ends, and its cancellation. */
import { OnpolicyError } from '../errors.ts';
import type { TrainingJobEvent, TrainingJobStatus, TrainingResult } from '../protocol/index.ts';
import type { TrainingJob } from '../service.ts';

/** How a job has ended. */
export type JobEnd =
  | { readonly status: 'completed'; readonly result: TrainingResult }
  | { readonly status: 'failed' | 'cancelled'; readonly error: OnpolicyError };

/** The job as its caller sees it, and what the one who runs it needs. */
export class JobHandle implements TrainingJob {
  readonly id: string;
  readonly done: Promise<TrainingResult>;
  readonly #stop: AbortController;
  readonly #events: TrainingJobEvent[] = [];
  readonly #settle: (end: JobEnd) => void;
  #status: TrainingJobStatus = 'queued';
  #changed = pending<void>();

  /** @param stop what ends the job before its time */
  constructor(id: string, stop: AbortController) {
    this.id = id;
    this.#stop = stop;
    const { promise, resolve, reject } = pending<TrainingResult>();
    this.done = promise;
    promise.catch(() => {}); // nobody has to wait for a job
    this.#settle = (end) => (end.status === 'completed' ? resolve(end.result) : reject(end.error));
  }

  get status(): TrainingJobStatus {
    return this.#status;
  }

  /** Fires when the job is to stop. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get isEnded(): boolean {
    return this.#status !== 'queued' && this.#status !== 'running';
  }

  /** Whether it has said that it failed. */
  get saidFailure(): boolean {
    return this.#events.at(-1)?.type === 'training_failed';
  }

  async *events(): AsyncGenerator<TrainingJobEvent> {
    for (let next = 0; ; next++) {
      while (next === this.#events.length) {
        if (this.isEnded) return;
        await this.#changed.promise;
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

  begin(): void {
    this.#status = 'running';
  }

  push(event: TrainingJobEvent): void {
    this.#events.push(event);
    this.#notify();
  }

  end(end: JobEnd): void {
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

/** A promise and what settles it. */
type Pending<T> = {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
};

function pending<T>(): Pending<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
