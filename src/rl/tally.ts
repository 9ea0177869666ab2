/** Contributions of rows to the metrics of their optimizer step -> means over all tokens of the step, independent of packing. */
import type { Metrics } from './metrics.ts';

/** Centered sums of pairs of numbers, from which their correlation is computed. */
export type Moments = {
  readonly count: number;
  readonly means: readonly [number, number];
  readonly squares: readonly [number, number];
  readonly product: number;
};

/** Contribution of one row. */
export type Tally = {
  /** By the metric's name: a sum, and the count that it is divided by. */
  readonly means: Readonly<Record<string, readonly [sum: number, count: number]>>;
  /** By the metric's name: pairs whose correlation is the metric. */
  readonly correlations: Readonly<Record<string, Moments>>;
};

/** Moments of pairs (left, right). */
export function momentsOf(left: readonly number[], right: readonly number[]): Moments {
  const count = left.length;
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / Math.max(1, count);
  const means = [mean(left), mean(right)] as const;
  let [product, squareLeft, squareRight] = [0, 0, 0];
  for (const [i, value] of left.entries()) {
    const [a, b] = [value - means[0], right[i]! - means[1]];
    product += a * b;
    squareLeft += a * a;
    squareRight += b * b;
  }
  return { count, means, squares: [squareLeft, squareRight], product };
}

/** Pearson correlation; null if one side is constant or there are no pairs. */
export function correlationOf({ squares, product }: Moments): number | null {
  const result = product / (Math.sqrt(squares[0]) * Math.sqrt(squares[1]));
  return Number.isFinite(result) ? result : null;
}

/** Adds up tallies. Numbers that are not finite are left out. */
export class Tallies {
  readonly #means = new Map<string, readonly [sum: number, count: number]>();
  readonly #correlations = new Map<string, Moments>();

  add({ means, correlations }: Tally): void {
    for (const [name, [sum, count]] of Object.entries(means)) {
      if (!Number.isFinite(sum) || count === 0) continue;
      const [sumBefore, countBefore] = this.#means.get(name) ?? [0, 0];
      this.#means.set(name, [sumBefore + sum, countBefore + count]);
    }
    for (const [name, moments] of Object.entries(correlations)) {
      if (moments.count === 0 || !Number.isFinite(moments.product)) continue;
      const before = this.#correlations.get(name);
      this.#correlations.set(name, before ? joined(before, moments) : moments);
    }
  }

  read(): Metrics {
    const metrics: Metrics = {};
    for (const [name, [sum, count]] of this.#means) metrics[name] = sum / count;
    for (const [name, moments] of this.#correlations) {
      const correlation = correlationOf(moments);
      if (correlation !== null) metrics[name] = correlation;
    }
    return metrics;
  }
}

function joined(a: Moments, b: Moments): Moments {
  const count = a.count + b.count;
  const share = (a.count * b.count) / count;
  const [left, right] = [b.means[0] - a.means[0], b.means[1] - a.means[1]];
  const mean = (i: 0 | 1) => a.means[i] + ((b.means[i] - a.means[i]) * b.count) / count;
  return {
    count,
    means: [mean(0), mean(1)],
    squares: [
      a.squares[0] + b.squares[0] + left * left * share,
      a.squares[1] + b.squares[1] + right * right * share,
    ],
    product: a.product + b.product + left * right * share,
  };
}
