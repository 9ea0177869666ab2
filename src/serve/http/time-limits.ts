/** A duration -> a callback unless cancelled. */

/** Longest delay of a timer, in milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Calls `onLate` after `ms` milliseconds unless the returned function is called before. Null sets no timer. Does not keep the process
 * alive.
 */
export function limitTime(ms: number | null, onLate: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const wait = (leftMs: number): void => {
    const next = (): void => (leftMs > LONGEST_TIMER_MS ? wait(leftMs - LONGEST_TIMER_MS) : onLate());
    timer = setTimeout(next, Math.min(leftMs, LONGEST_TIMER_MS)).unref();
  };
  if (ms !== null) wait(ms);
  return () => clearTimeout(timer);
}
