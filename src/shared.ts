/** One piece of work that several callers wait for. It is stopped only when all of them have given up. */
import { OnpolicyError } from './errors.ts';

/** Work whose result is shared. */
export class Shared<T> {
  readonly result: Promise<T>;
  readonly #controller = new AbortController();
  #waiting = 0;

  constructor(work: (stop: AbortSignal) => Promise<T>) {
    this.result = work(this.#controller.signal);
    this.result.catch(() => {}); // each caller hears of it through wait()
  }

  /** The result. Rejects with `ABORTED` when `signal` fires first. */
  async wait(signal: AbortSignal | undefined): Promise<T> {
    if (signal?.aborted) throw aborted(signal);
    this.#waiting += 1;
    let onAbort: (() => void) | undefined;
    try {
      if (!signal) return await this.result;
      const aborted = new Promise<never>((_, reject) => {
        onAbort = () =>
          reject(new OnpolicyError('ABORTED', 'the request was aborted', { cause: signal.reason }));
        if (signal.aborted) onAbort();
        else signal.addEventListener('abort', onAbort);
      });
      return await Promise.race([this.result, aborted]);
    } finally {
      if (onAbort) signal?.removeEventListener('abort', onAbort);
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#controller.abort();
    }
  }
}

function aborted(signal: AbortSignal): OnpolicyError {
  return new OnpolicyError('ABORTED', 'the request was aborted', { cause: signal.reason });
}
