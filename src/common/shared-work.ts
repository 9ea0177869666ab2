/** One task that several callers wait for -> its result. It is aborted only when all callers have given up. */
import { failIfAborted } from '../errors.ts';
import { untilAborted } from './abort.ts';

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

  /** True if the work was aborted because all callers gave up. Later callers need new work. */
  get isStopped(): boolean {
    return this.#controller.signal.aborted && !this.#isDone;
  }

  /** Returns the result. Rejects with `ABORTED` if `signal` fires first. */
  async wait(signal: AbortSignal | undefined): Promise<T> {
    failIfAborted(signal);
    this.#waiting += 1;
    try {
      return await untilAborted(this.result, signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#controller.abort();
    }
  }
}
