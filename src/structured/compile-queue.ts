/** Compilations -> their results, a few at a time. Short ones do not wait for long ones. */
import { onAbort, pending } from '../common/index.ts';
import { failIfAborted, OnpolicyError } from '../errors.ts';

/** Work limit of a short compilation, and of a long one. One million units take about 10 ms. */
const SHORT_WORK = 10_000_000;
const MOST_WORK = 200_000_000;
/** Highest numbers of compilations at once. The threads that they run on also read files and tokenize. */
const SHORT_AT_ONCE = 2;
const LONG_AT_ONCE = 1;

/** Compiles with at most this much work, until `cancelled[0]` is 1. Resolves with null if the work is not enough. */
type Compile<T> = (cancelled: Int32Array, work: number) => Promise<T | null>;

/** Runs compilations on the addon's threads. */
export class CompileQueue {
  readonly #short = new Turns(SHORT_AT_ONCE);
  readonly #long = new Turns(LONG_AT_ONCE);

  /** Compiles in turn. Rejects with `ABORTED` soon after `stop` fires, and with `UNSUPPORTED` if it takes too much work. */
  async run<T>(compile: Compile<T>, stop: AbortSignal): Promise<T> {
    const cancelled = new Int32Array(1);
    using _stopping = onAbort(stop, () => {
      cancelled[0] = 1;
    });
    const attempt = (turns: Turns, work: number): Promise<T | null> =>
      turns.run(async () => {
        failIfAborted(stop);
        return await compile(cancelled, work);
      });
    const compiled = (await attempt(this.#short, SHORT_WORK)) ?? (await attempt(this.#long, MOST_WORK));
    if (compiled === null) throw new OnpolicyError('UNSUPPORTED', 'the constraint is too complex to enforce');
    return compiled;
  }
}

/** Runs functions in the order of their calls, at most `limit` at once. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#free = limit;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else {
      const { promise, resolve } = pending<void>();
      this.#waiting.push(resolve);
      await promise;
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
