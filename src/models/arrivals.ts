/** Requests that arrived for a model and have not ended -> whether there is room for one more, decided before a request is read. */
import { lease } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';

/** Counts requests by the key that they named. */
export class Arrivals<Key> {
  readonly #counts = new Map<Key, number>();

  /** Counts a request until its lease ends. */
  add(key: Key): Disposable {
    this.#counts.set(key, this.of(key) + 1);
    return lease(() => {
      const left = this.of(key) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    });
  }

  of(key: Key): number {
    return this.#counts.get(key) ?? 0;
  }
}

/** Throws `OVERLOADED` if the queue for `name` is full. `users` is the number of requests that run or wait. */
export function requireRoom(
  name: string,
  users: number,
  { maxWaiting, maxSequences }: { readonly maxWaiting: number | null; readonly maxSequences: number },
): void {
  if (maxWaiting === null || users < maxSequences + maxWaiting) return;
  const message = `${users - maxSequences} requests wait for ${name}, and ${maxWaiting} may`;
  throw new OnpolicyError('OVERLOADED', message, { retryAfterMs: 1000 });
}
