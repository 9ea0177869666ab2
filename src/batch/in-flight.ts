/** Answers and refusals -> how many rows are asked for at the same time: as many as make it faster, by measurement. */

const FIRST = 64;
const MOST = 1024;
/** A level is measured for so long at least, and until as many rows as it has were answered twice. */
const LEAST_MS = 500;
/** How much faster the next level must be to be kept. */
const WORTH = 1.05;

export class InFlight {
  readonly #isFixed: boolean;
  #level: number;
  #best = 0; // rate of the level before
  #isSettled = false;
  #sinceMs = performance.now();
  #rows = 0; // since then
  #work = 0;

  /** `fixed`: the caller's own number. */
  constructor(fixed: number | null) {
    this.#isFixed = fixed !== null;
    this.#level = fixed ?? FIRST;
  }

  get level(): number {
    return this.#level;
  }

  /** A row was answered. `work`: its tokens. */
  answered(work: number): void {
    if (this.#isFixed || this.#isSettled) return;
    this.#rows += 1;
    this.#work += work + 1; // rows without tokens count too
    const ms = performance.now() - this.#sinceMs;
    if (ms < LEAST_MS || this.#rows < 2 * this.#level) return;
    const rate = this.#work / ms;
    if (rate < this.#best * WORTH || this.#level >= MOST) this.#isSettled = true;
    else this.#move(this.#level * 2, rate);
  }

  /** The service has too much to do. */
  refused(): void {
    if (this.#isFixed) return;
    this.#isSettled = true;
    this.#level = Math.max(1, Math.floor(this.#level / 2));
  }

  #move(level: number, rate: number): void {
    this.#best = rate;
    this.#level = level;
    this.#sinceMs = performance.now();
    this.#rows = 0;
    this.#work = 0;
  }
}
