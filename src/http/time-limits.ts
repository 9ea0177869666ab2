/**
 * A duration -> a callback unless cancelled. All limits of one length share a timer: a timer per request would cost more than
 * the rest of its bookkeeping.
 */
type Limit = { readonly endsAtMs: number; readonly onLate: () => void };

/** Limits of one length, the earliest end first. */
type Queue = { readonly limits: Set<Limit>; isWatched: boolean };

const queues = new Map<number, Queue>(); // by length in milliseconds

/** Longest delay of a timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls `onLate` after `ms` milliseconds unless the returned function is called before. Does not keep the process alive. */
export function limitTime(ms: number, onLate: () => void): () => void {
  let queue = queues.get(ms);
  if (!queue) {
    queue = { limits: new Set(), isWatched: false };
    queues.set(ms, queue);
  }
  const { limits } = queue;
  const limit: Limit = { endsAtMs: performance.now() + ms, onLate };
  limits.add(limit);
  if (!queue.isWatched) watch(queue, ms);
  return () => limits.delete(limit);
}

function watch(queue: Queue, ms: number): void {
  queue.isWatched = true;
  setTimeout(() => onTimer(queue), Math.min(Math.ceil(ms), LONGEST_TIMER_MS)).unref();
}

function onTimer(queue: Queue): void {
  queue.isWatched = false;
  const nowMs = performance.now();
  for (const limit of queue.limits) {
    if (limit.endsAtMs > nowMs) return watch(queue, limit.endsAtMs - nowMs);
    queue.limits.delete(limit);
    limit.onLate();
  }
}
