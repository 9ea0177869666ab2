/** A signal -> what happens when it fires. */
import { abortedBy } from '../errors.ts';
import { lease } from './lease.ts';

/** Calls `act` when the signal fires, at once if it has, until the lease ends. */
export function onAbort(signal: AbortSignal | null | undefined, act: () => void): Disposable {
  if (signal?.aborted) act();
  signal?.addEventListener('abort', act, { once: true });
  return lease(() => signal?.removeEventListener('abort', act));
}

/** The result of `work`, or the error of the signal if that fires first. */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  toError: (signal: AbortSignal) => unknown = abortedBy,
): Promise<T> {
  if (!signal) return await work;
  const { promise, reject } = pending<never>();
  using _listening = onAbort(signal, () => reject(toError(signal)));
  return await Promise.race([work, promise]);
}

/** A promise and what settles it. */
type Pending<T> = {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
};

/** Makes one. */
export function pending<T>(): Pending<T> {
  let resolve!: Pending<T>['resolve'];
  let reject!: Pending<T>['reject'];
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
