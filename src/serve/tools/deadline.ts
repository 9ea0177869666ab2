/** A signal and a time limit -> a signal that fires at the first of both, and a promise that then rejects. */
import { abortedBy, OnpolicyError } from '../../errors.ts';

export type Deadline = Disposable & {
  readonly signal: AbortSignal;
  /** Rejects with `ABORTED` or `TIMEOUT`; never resolves. */
  readonly reached: Promise<never>;
};

/** Dispose of it to stop the clock. */
export function deadline(outer: AbortSignal, ms: number): Deadline {
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(new OnpolicyError('TIMEOUT', `no result within ${ms} ms`)), ms);
  const signal = AbortSignal.any([outer, own.signal]);
  const reached = new Promise<never>((_, reject) => {
    const fail = (): void => reject(abortedBy(signal));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
  reached.catch(() => {}); // nobody waits for it once a result is there
  return { signal, reached, [Symbol.dispose]: () => clearTimeout(timer) };
}
