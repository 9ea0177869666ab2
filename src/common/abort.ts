/** A signal -> calls when it fires. */
import { abortedBy } from '../errors.ts';
import { lease } from './lease.ts';

/**
 * Callbacks by signal. Each signal has one listener, because many requests may share a caller's signal, and Node warns above ten listeners.
 */
const waiting = new WeakMap<AbortSignal, Waiting>();

type Waiting = { readonly acts: Set<{ readonly act: () => void }>; readonly listener: () => void };

/** Calls `act` when the signal fires, or at once if it has fired, until the lease ends. */
export function onAbort(signal: AbortSignal | null | undefined, act: () => void): Disposable {
  if (signal?.aborted) act();
  if (!signal || signal.aborted) return lease(() => {});
  const { acts, listener } = waitingFor(signal);
  const entry = { act }; // the same function may be added twice
  acts.add(entry);
  return lease(() => {
    acts.delete(entry);
    if (acts.size > 0 || waiting.get(signal)?.acts !== acts) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', listener);
  });
}

function waitingFor(signal: AbortSignal): Waiting {
  const known = waiting.get(signal);
  if (known) return known;
  const acts: Waiting['acts'] = new Set();
  const listener = (): void => {
    waiting.delete(signal);
    for (const { act } of acts) act();
  };
  const added = { acts, listener };
  waiting.set(signal, added);
  signal.addEventListener('abort', listener, { once: true });
  return added;
}

/** Returns the result of `work`, or rejects with the error of the signal if it fires first. */
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

/** A promise and the functions that settle it. */
type Pending<T> = {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
};

/** Creates a pending promise. */
export function pending<T>(): Pending<T> {
  let resolve!: Pending<T>['resolve'];
  let reject!: Pending<T>['reject'];
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
