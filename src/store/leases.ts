/** A name -> a lease on it. A deletion waits until all leases are released; new leases are refused meanwhile. */
import { once } from 'node:events';
import { lease } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';

type Entry = { userCount: number; isClosing: boolean; readonly waiting: Set<() => void> };

/** Counts leases by name. */
export class Leases {
  readonly #entries = new Map<string, Entry>();

  /** Takes a lease. Null if a deletion has begun. */
  take(name: string): Disposable | null {
    const entry = this.#entry(name);
    if (entry.isClosing) return null;
    entry.userCount++;
    return lease(() => {
      entry.userCount--;
      if (entry.userCount > 0) return;
      for (const wake of entry.waiting) wake();
      if (!entry.isClosing) this.#entries.delete(name);
    });
  }

  /**
   * Refuses new leases until the result is disposed of, and waits until all present ones are.
   * @throws OnpolicyError `ABORTED` if `signal` fires first; `CONFLICT` if another deletion has begun
   */
  async drain(name: string, what: string, signal?: AbortSignal): Promise<Disposable> {
    const entry = this.#entry(name);
    if (entry.isClosing) throw new OnpolicyError('CONFLICT', `${what} is being deleted already`);
    entry.isClosing = true;
    const closed = lease(() => {
      entry.isClosing = false;
      if (entry.userCount === 0) this.#entries.delete(name);
    });
    if (entry.userCount === 0) return closed;
    const stop = new AbortController();
    try {
      await Promise.race([
        new Promise<void>((resolve) => entry.waiting.add(resolve)),
        ...(signal ? [aborted(signal, stop.signal)] : []),
      ]);
    } finally {
      stop.abort();
      entry.waiting.clear();
      if (signal?.aborted) closed[Symbol.dispose]();
    }
    if (signal?.aborted)
      throw new OnpolicyError('ABORTED', `the deletion of ${what} was aborted`, { cause: signal.reason });
    return closed;
  }

  #entry(name: string): Entry {
    let entry = this.#entries.get(name);
    if (!entry) {
      entry = { userCount: 0, isClosing: false, waiting: new Set() };
      this.#entries.set(name, entry);
    }
    return entry;
  }
}

async function aborted(signal: AbortSignal, stop: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort', { signal: stop }).catch(() => {}); // rejects when `stop` fires
}
