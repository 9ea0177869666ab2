/** Async functions -> their results. Functions of one name run one after the other, those of different names concurrently. */

/** Runs functions in the order of their calls, separately for each name. */
export class Queue {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after all earlier work of this name. */
  async run<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {}); // the caller gets the error
    this.#last.set(name, settled);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === settled) this.#last.delete(name);
    }
  }

  /** Resolves when all work queued so far is done. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
