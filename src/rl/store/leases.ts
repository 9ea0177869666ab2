/** A name -> a lease on it. A deletion waits until all leases are released; new leases are refused meanwhile. */
import { lease, pending, untilAborted } from '../../common/index.ts';
import { abortedBy, OnpolicyError } from '../../errors.ts';

type Holder = { readonly onDrain: () => void };
type Entry = { readonly holders: Set<Holder>; isClosing: boolean; onEmpty: () => void };

/** Leases by name. */
export class Leases {
  readonly #entries = new Map<string, Entry>();

  /** Takes a lease. Returns null if a deletion has begun. `onDrain` is called when one begins. */
  take(name: string, onDrain = (): void => {}): Disposable | null {
    const entry = this.#entry(name);
    if (entry.isClosing) return null;
    const holder = { onDrain };
    entry.holders.add(holder);
    return lease(() => {
      entry.holders.delete(holder);
      if (entry.holders.size > 0) return;
      entry.onEmpty();
      if (!entry.isClosing) this.#entries.delete(name);
    });
  }

  /**
   * Refuses new leases until the result is disposed of, and waits until all current ones are.
   * @throws OnpolicyError `ABORTED` if `signal` fires first; `CONFLICT` if another deletion has begun
   */
  async drain(name: string, what: string, signal?: AbortSignal): Promise<Disposable> {
    const entry = this.#entry(name);
    if (entry.isClosing) throw new OnpolicyError('CONFLICT', `${what} is being deleted already`);
    entry.isClosing = true;
    const closed = lease(() => {
      entry.isClosing = false;
      if (entry.holders.size === 0) this.#entries.delete(name);
    });
    for (const { onDrain } of entry.holders) onDrain();
    if (entry.holders.size === 0) return closed;
    const empty = pending<void>();
    entry.onEmpty = empty.resolve;
    try {
      await untilAborted(empty.promise, signal, (fired) => abortedBy(fired, `the deletion of ${what}`));
      return closed;
    } catch (error) {
      closed[Symbol.dispose]();
      throw error;
    }
  }

  #entry(name: string): Entry {
    let entry = this.#entries.get(name);
    if (!entry) {
      entry = { holders: new Set(), isClosing: false, onEmpty: () => {} };
      this.#entries.set(name, entry);
    }
    return entry;
  }
}
