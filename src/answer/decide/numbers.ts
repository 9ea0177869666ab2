/** Log-probabilities of labels -> the numbers of answers, in float64. */

/** How probabilities are made of logits. */
export type Calibration = {
  /** Divides the logits. */
  readonly temperature: number;
  /** Share of the probability that is spread evenly over the options. */
  readonly noise: number;
};

/** log(exp(a) + exp(b) + ...), without overflow; -Infinity for no values. */
export function logSumExp(values: readonly number[]): number {
  const most = Math.max(...values);
  if (most === -Infinity || values.length === 0) return -Infinity;
  return most + Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0));
}

/**
 * Returns the log of the probability of each option: that of its forms together, or with `Math.max` as `join` that of its likeliest form.
 * `row`: the log-probabilities of all `forms`, one after the other.
 */
export function formLogits(
  row: readonly number[],
  forms: readonly (readonly number[])[],
  join: (...values: number[]) => number = (...values) => logSumExp(values),
): number[] {
  let at = 0;
  return forms.map(({ length }) => {
    at += length;
    return join(...row.slice(at - length, at));
  });
}

/** Returns (1 - noise) softmax(l / T) + noise / n. If all values are -Infinity, all are equally probable. */
export function probabilitiesOf(logits: readonly number[], { temperature, noise }: Calibration): number[] {
  const even = 1 / logits.length;
  const total = logSumExp(logits.map((logit) => logit / temperature));
  if (total === -Infinity) return logits.map(() => even);
  return logits.map((logit) => (1 - noise) * Math.exp(logit / temperature - total) + noise * even);
}

/** Returns the probability of all labels together, at temperature 1. */
export function labelMass(logits: readonly number[]): number {
  return logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
}

/** Returns the index of the largest value; the first if several are equal. */
export function largest(values: readonly number[]): number {
  return values.reduce((best, value, i) => (value > values[best]! ? i : best), 0);
}

/** (p_max - 1/n) / (1 - 1/n), as TypeSafe's service defines the confidence of a choice. */
export function choiceConfidence(probabilities: readonly number[]): number {
  const even = 1 / probabilities.length;
  return Math.max(0, (Math.max(...probabilities) - even) / (1 - even));
}

/** Returns the expected level number. */
export function meanLevel(probabilities: readonly number[]): number {
  return probabilities.reduce((sum, p, level) => sum + p * level, 0);
}

/** max(0, 1 - E|level - mode| / U) with U = mean |level - (n - 1) / 2|, as TypeSafe's service defines the confidence of a score. */
export function scoreConfidence(probabilities: readonly number[]): number {
  const count = probabilities.length;
  const mode = largest(probabilities);
  const distance = probabilities.reduce((sum, p, level) => sum + p * Math.abs(level - mode), 0);
  const even = probabilities.reduce((sum, _, level) => sum + Math.abs(level - (count - 1) / 2), 0) / count;
  return Math.max(0, 1 - distance / even);
}

/** Returns the option at each place of the `turn`-th of `orders` rotations of `count` options. */
export function rotation(count: number, turn: number, orders: number): number[] {
  const shift = Math.floor((turn * count) / orders);
  return Array.from({ length: count }, (_, place) => (place + shift) % count);
}
