/** Values -> how many lie between bounds. */

/** Counts of values by range. */
export type HistogramData = {
  /** Ascending upper bounds, each included. */
  readonly bounds: readonly number[];
  /** (bounds + 1) values between a bound and the one before it; the last: above all. */
  readonly counts: readonly number[];
  readonly sum: number;
};

/** Counts values in ranges. Its size depends only on the number of bounds. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array(bounds.length + 1).fill(0);
  }

  /** Counts a value this many times. */
  add(value: number, times = 1): void {
    let at = 0;
    while (at < this.#bounds.length && value > this.#bounds[at]!) at += 1;
    this.#counts[at]! += times;
    this.#sum += value * times;
  }

  /** Returns a copy of the counts. */
  data(): HistogramData {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum };
  }
}

/** Adds up histograms with the same bounds. */
export function sumHistograms(
  histograms: readonly HistogramData[],
  bounds: readonly number[],
): HistogramData {
  const counts = new Array<number>(bounds.length + 1).fill(0);
  for (const one of histograms) for (const [i, count] of one.counts.entries()) counts[i]! += count;
  return { bounds, counts, sum: histograms.reduce((sum, one) => sum + one.sum, 0) };
}
