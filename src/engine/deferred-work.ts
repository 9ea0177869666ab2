/** Work on the backend that must not overlap a step -> its results. It waits in a queue for the end of the running step. */

type Job = {
  /** Never rejects. */
  readonly run: () => Promise<void>;
  readonly reject: (cause: unknown) => void;
};

/** The queue of one engine. */
export class DeferredWork {
  readonly #jobs: Job[] = [];

  get isEmpty(): boolean {
    return this.#jobs.length === 0;
  }

  /** Queues `work`, and settles with its outcome. */
  add<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) =>
      this.#jobs.push({ run: () => work().then(resolve, reject), reject }),
    );
  }

  /** Runs everything in the queue, in order. Call it between two steps. */
  async run(): Promise<void> {
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift()) await job.run();
  }

  /** Rejects everything in the queue. */
  reject(cause: unknown): void {
    for (const job of this.#jobs.splice(0)) job.reject(cause);
  }
}
