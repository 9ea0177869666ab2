/** A job on its way: what happens in it is kept on disk first, then told to whoever holds its handle. */
import { fromNative, type OnpolicyError } from '../errors.ts';
import type { TrainingResult } from '../protocol/index.ts';
import type { JobEvent } from '../rl/index.ts';
import type { OpenJob } from '../store/index.ts';
import type { JobHandle } from './job-handle.ts';

/** One job from its first moment to its end. */
export class JobRun {
  readonly #handle: JobHandle;
  readonly #record: OpenJob;
  #written: Promise<void> = Promise.resolve();

  constructor(handle: JobHandle, record: OpenJob) {
    this.#handle = handle;
    this.#record = record;
  }

  get id(): string {
    return this.#handle.id;
  }

  get signal(): AbortSignal {
    return this.#handle.signal;
  }

  /** Runs the job, unless it was stopped while it waited. Never rejects. */
  async run(work: () => Promise<TrainingResult>): Promise<void> {
    const handle = this.#handle;
    if (handle.isEnded) return;
    handle.begin();
    try {
      await this.#record.start();
      const result = await work();
      await this.#written;
      const { step, metrics } = result;
      await this.#record.finish({ status: 'completed', step, metrics });
      handle.end({ status: 'completed', result });
    } catch (cause) {
      await this.fail(cause);
    }
  }

  /** Keeps an event and tells of it. A job whose events cannot be kept is stopped. */
  emit(event: JobEvent): void {
    this.#written = this.#written
      .then(async () => this.#handle.push(await this.#record.append(event)))
      .catch((cause: unknown) => this.#handle.stop(fromNative(cause)));
  }

  /** Ends the job without a result. */
  async fail(cause: unknown): Promise<void> {
    const handle = this.#handle;
    const isCancelled = handle.signal.aborted && CANCELLED.has(fromNative(handle.signal.reason).code);
    const error = handle.signal.aborted ? fromNative(handle.signal.reason) : fromNative(cause);
    const { code, message } = error;
    const status = isCancelled ? 'cancelled' : 'failed';
    await this.#written;
    if (!handle.saidFailure) this.emit({ type: 'training_failed', code, message });
    await this.#written;
    // When this cannot be kept either, the store says after a restart that the job did not end.
    await this.#record
      .finish(isCancelled ? { status: 'cancelled' } : { status: 'failed', error: { code, message } })
      .catch(() => {});
    handle.end({ status, error });
  }
}

/** Reasons to stop a job that are no failure of it. */
const CANCELLED = new Set<OnpolicyError['code']>(['ABORTED', 'CLOSED']);
