/** Items that arrive several at a time -> an iterator over them, with one promise per item; a chain of generators would create many. */

/** Source of the items. */
export type ItemSource<T> = {
  /**
   * Returns the next items, possibly an empty list, or null after the last. It is called once at a time. A rejection ends the iteration.
   */
  readonly next: () => Promise<readonly T[] | null>;
  /** Called when the reader leaves before the end. */
  readonly leave: () => void;
};

/** Iterates once over all items. Calls that do not wait for each other are answered in their order. */
export function bufferedIterator<T>({ next, leave }: ItemSource<T>): AsyncIterableIterator<T> {
  let items: readonly T[] = [];
  let at = 0;
  let isOver = false;
  let running = 0; // calls without an answer
  let last: Promise<unknown> = Promise.resolve(); // of them
  const finish = (): void => {
    isOver = true;
    items = [];
    at = 0;
  };
  const take = (): IteratorResult<T> =>
    at < items.length ? { done: false, value: items[at++]! } : { done: true, value: undefined };
  const wait = async (): Promise<IteratorResult<T>> => {
    try {
      while (at === items.length && !isOver) {
        const batch = await next();
        if (batch === null || isOver) finish();
        else {
          items = batch;
          at = 0;
        }
      }
      return take();
    } catch (error) {
      finish();
      throw error;
    } finally {
      running -= 1;
    }
  };
  return {
    next() {
      if (running === 0 && at < items.length) return Promise.resolve(take());
      running += 1;
      const answer = running === 1 ? wait() : last.then(wait, wait);
      last = answer;
      return answer;
    },
    return() {
      if (!isOver) {
        finish();
        leave();
      }
      return Promise.resolve({ done: true, value: undefined });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
