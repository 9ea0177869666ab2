/** Work on one thing, one after the other; work on different things side by side. */

/** Runs pieces of work in the order they came, per name. */
export class Queue {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Waits its turn, then works. */
  async run<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {}); // whoever called it hears of the failure
    this.#last.set(name, settled);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === settled) this.#last.delete(name);
    }
  }

  /** Resolves when everything that waits or works now is done. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
