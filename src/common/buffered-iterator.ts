/** Items that arrive several at a time -> an iterator over them: one promise per item, where a chain of generators makes many. */

/** Where items come from. */
export type ItemSource<T> = {
  /** The next items, maybe none; null after the last. One call at a time. What it rejects with ends the iteration. */
  readonly next: () => Promise<readonly T[] | null>;
  /** The reader has left before the end. */
  readonly leave: () => void;
};

/** Iterates once over all items. Calls that do not wait for each other are answered in their order. */
export function bufferedIterator<T>({ next, leave }: ItemSource<T>): AsyncIterableIterator<T> {
  let items: readonly T[] = [];
  let at = 0;
  let isOver = false;
  let running = 0; // calls that are not answered
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
