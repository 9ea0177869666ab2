/** One piece of work that several callers wait for. It is stopped only when all of them have given up. */
import { abortedBy, failIfAborted } from '../errors.ts';

/** Work whose result is shared. */
export class Shared<T> {
  readonly result: Promise<T>;
  readonly #controller = new AbortController();
  #waiting = 0;
  #isDone = false;

  constructor(work: (stop: AbortSignal) => Promise<T>) {
    this.result = work(this.#controller.signal);
    const done = (): void => {
      this.#isDone = true;
    };
    this.result.then(done, () => {}); // wait() reports a failure to each caller
  }

  /** Whether the work was stopped because all callers gave up. Later callers need new work. */
  get isStopped(): boolean {
    return this.#controller.signal.aborted && !this.#isDone;
  }

  /** The result. Rejects with `ABORTED` when `signal` fires first. */
  async wait(signal: AbortSignal | undefined): Promise<T> {
    failIfAborted(signal);
    this.#waiting += 1;
    let onAbort: (() => void) | undefined;
    try {
      if (!signal) return await this.result;
      const aborted = new Promise<never>((_, reject) => {
        onAbort = () => reject(abortedBy(signal));
        signal.addEventListener('abort', onAbort);
      });
      return await Promise.race([this.result, aborted]);
    } finally {
      if (onAbort) signal?.removeEventListener('abort', onAbort);
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#controller.abort();
    }
  }
}
