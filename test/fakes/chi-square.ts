/** Draws and exact probabilities -> how far apart they are. */

/** Throws when an impossible token was drawn; else the number of standard deviations above the expected chi-square. */
export function chiSquareDeviation(draws: Int32Array, probabilities: readonly number[]): number {
  const counts = new Float64Array(probabilities.length);
  for (const token of draws) {
    if (!(probabilities[token]! > 0)) throw new Error(`drew token ${token}, whose probability is 0`);
    counts[token]!++;
  }
  let statistic = 0;
  let cells = 0;
  let restExpected = 0;
  let restCount = 0;
  for (const [token, probability] of probabilities.entries()) {
    const expected = probability * draws.length;
    if (expected < 10) {
      restExpected += expected;
      restCount += counts[token]!;
    } else {
      statistic += (counts[token]! - expected) ** 2 / expected;
      cells++;
    }
  }
  if (restExpected >= 10) {
    statistic += (restCount - restExpected) ** 2 / restExpected;
    cells++;
  } else if (restCount > restExpected + 8 * Math.sqrt(restExpected) + 8) {
    throw new Error(`drew ${restCount} rare tokens, expected ${restExpected}`);
  }
  const freedom = cells - 1;
  if (freedom === 0) return 0;
  return (statistic - freedom) / Math.sqrt(2 * freedom);
}
