/** A signal and a time limit -> one signal, which fires with the reason of whichever comes first. */
import { OnpolicyError } from '../errors.ts';

/** A signal whose timer is cleared when it is disposed of. */
export type LimitedSignal = Disposable & { readonly signal: AbortSignal | undefined };

/** The reason of the time limit is an error with the code `TIMEOUT`. */
export function limitedSignal(signal: AbortSignal | undefined, ms: number | null): LimitedSignal {
  if (ms === null) return { signal, [Symbol.dispose]() {} };
  const late = new AbortController();
  const timer = setTimeout(
    () =>
      late.abort(
        new OnpolicyError('TIMEOUT', `the answer took longer than ${ms} ms`, { param: 'timeout_ms' }),
      ),
    ms,
  ).unref();
  return {
    signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
