/** Calls of one native object, made one after the other; after closing, none. */
import { fromNative, OnpolicyError } from '../errors.ts';

/** Runs what it is given in the order of the calls. */
export class SerialCalls {
  readonly #what: string;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** `what`: named in the error of calls after closing. */
  constructor(what: string) {
    this.#what = what;
  }

  /** Runs `work` after all earlier calls, whether they failed or not. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const run = this.#last.then(async () => {
      if (this.#isClosed) throw new OnpolicyError('CLOSED', `${this.#what} is closed`);
      try {
        return await work();
      } catch (error) {
        throw fromNative(error);
      }
    });
    this.#last = run.catch(() => {});
    return run;
  }

  /** Runs `free` after all earlier calls, the first time. */
  async close(free: () => void): Promise<void> {
    await this.#last;
    if (this.#isClosed) return;
    this.#isClosed = true;
    free();
  }
}
