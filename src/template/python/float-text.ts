/** Float -> decimal text as Python writes it: shortest repr, and exact digits for fixed notation. */

export function reprFloat(x: number): string {
  if (Number.isNaN(x)) return 'nan';
  if (!Number.isFinite(x)) return x > 0 ? 'inf' : '-inf';
  const sign = x < 0 || Object.is(x, -0) ? '-' : '';
  const size = Math.abs(x);
  if (size === 0 || (size >= 1e-4 && size < 1e16)) return `${sign}${size}${Number.isInteger(x) ? '.0' : ''}`;
  return sign + size.toExponential().replace(/(?<=e.)(?=\d$)/, '0'); // an exponent has two digits
}

/** Rounds numerator / denominator to the nearest integer, halves to even. Both must be positive. */
function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const twice = (numerator % denominator) * 2n;
  if (twice > denominator || (twice === denominator && quotient % 2n === 1n)) return quotient + 1n;
  return quotient;
}

/** Returns round(x * 10^places) for x >= 0, computed exactly, halves to even. `places` may be negative. */
export function scaledInteger(x: number, places: number): bigint {
  let numerator = x;
  let denominator = 1n;
  for (; !Number.isInteger(numerator); numerator *= 2) denominator *= 2n; // exact
  const power = 10n ** BigInt(Math.abs(places));
  return places >= 0
    ? divideHalfEven(BigInt(numerator) * power, denominator)
    : divideHalfEven(BigInt(numerator), denominator * power);
}

/** Maximum number of digits of a double after the point; further digits are zeros. */
const MAX_PLACES = 1100;

/** Returns `x` >= 0 with exactly `places` digits after the point. */
export function toFixed(x: number, places: number): string {
  const exact = Math.min(places, MAX_PLACES);
  const digits = scaledInteger(x, exact)
    .toString()
    .padStart(exact + 1, '0');
  if (places === 0) return digits;
  return `${digits.slice(0, -exact)}.${digits.slice(-exact)}${'0'.repeat(places - exact)}`;
}
