/** Durations of steps by their size -> what a step of another size costs. */

/** Weight of the newest step in the cost of its size. */
const NEWEST = 0.25;
/** After this many steps a cost is measured again. */
const FORGET_AFTER = 512;
/** A size larger by one is thought to cost this share more until it was tried. */
const UNKNOWN_SHARE = 0.04;

type Cost = { ms: number; seen: number };

/** Milliseconds by size. */
export class StepCosts {
  readonly #costs = new Map<number, Cost>();
  #steps = 0;

  /** A step of this size took so long. */
  record(size: number, ms: number): void {
    this.#steps += 1;
    const cost = this.#costs.get(size);
    if (!cost || !this.#isFresh(cost)) this.#costs.set(size, { ms, seen: this.#steps });
    else {
      // A step that was held up by something else says little.
      cost.ms += NEWEST * (Math.min(ms, 2 * cost.ms) - cost.ms);
      cost.seen = this.#steps;
    }
  }

  /** Measured, or between measured ones, or guessed from the largest one below. Null: nothing was measured. */
  of(size: number): number | null {
    const known = this.#costs.get(size);
    if (known && this.#isFresh(known)) return known.ms;
    let below = 0;
    let above = Number.POSITIVE_INFINITY;
    for (const [at, cost] of this.#costs) {
      if (at < size && at > below) below = at;
      if (at > size && at < above && this.#isFresh(cost)) above = at;
    }
    if (below === 0) {
      if (known) return known.ms;
      return Number.isFinite(above)
        ? this.#costs.get(above)!.ms / (1 + UNKNOWN_SHARE * (above - size))
        : null;
    }
    const low = this.#costs.get(below)!.ms;
    if (!Number.isFinite(above)) return low * (1 + UNKNOWN_SHARE * (size - below));
    const share = (size - below) / (above - below);
    return low + share * (this.#costs.get(above)!.ms - low);
  }

  #isFresh({ seen }: Cost): boolean {
    return this.#steps - seen <= FORGET_AFTER;
  }
}
