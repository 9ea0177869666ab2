/** Float -> decimal text as Python writes it: shortest repr, and exact digits for fixed and scientific notation. */

/** `repr(x)` of a Python float. */
export function reprFloat(x: number): string {
  if (Number.isNaN(x)) return 'nan';
  if (!Number.isFinite(x)) return x > 0 ? 'inf' : '-inf';
  const sign = x < 0 || Object.is(x, -0) ? '-' : '';
  const [digits, exponent] = shortestDigits(Math.abs(x));
  return sign + layOut(digits, exponent, 16, true);
}

/** The shortest digits that parse as `x` >= 0, and the decimal exponent of the first digit. */
function shortestDigits(x: number): [digits: string, exponent: number] {
  const [mantissa, exponent] = x.toExponential().split('e');
  return [mantissa!.replace('.', ''), Number(exponent)];
}

/** Formats digits: plain if -4 <= exponent < `plainBelow`, else scientific. */
export function layOut(digits: string, exponent: number, plainBelow: number, keepPoint: boolean): string {
  if (exponent >= -4 && exponent < plainBelow) {
    if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`;
    if (digits.length > exponent + 1) return `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
    return digits + '0'.repeat(exponent + 1 - digits.length) + (keepPoint ? '.0' : '');
  }
  return `${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ''}${exponentText(exponent)}`;
}

/** `e+05`: a sign and at least two digits. */
export function exponentText(exponent: number): string {
  return `e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** `x` >= 0 as an exact fraction numerator / 2^shift, or numerator * 2^-shift for a negative shift. */
function exactFraction(x: number): { numerator: bigint; shift: number } {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0);
  const biased = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  return biased === 0
    ? { numerator: fraction, shift: 1074 }
    : { numerator: fraction | 0x10000000000000n, shift: 1075 - biased };
}

/** Rounds numerator / denominator to the nearest integer, halves to even. Both positive. */
export function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const twice = (numerator % denominator) * 2n;
  if (twice > denominator || (twice === denominator && quotient % 2n === 1n)) return quotient + 1n;
  return quotient;
}

/** round(x * 10^places) for x >= 0, exactly, halves to even. `places` may be negative. */
export function scaledInteger(x: number, places: number): bigint {
  const { numerator, shift } = exactFraction(x);
  let top = numerator;
  let bottom = 1n;
  if (places >= 0) top *= 10n ** BigInt(places);
  else bottom *= 10n ** BigInt(-places);
  if (shift >= 0) bottom <<= BigInt(shift);
  else top <<= BigInt(-shift);
  return divideHalfEven(top, bottom);
}

/** `x` >= 0 with exactly `places` digits after the point. */
export function toFixed(x: number, places: number): string {
  const digits = scaledInteger(x, places)
    .toString()
    .padStart(places + 1, '0');
  return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** `x` >= 0 rounded to `count` significant digits, and the decimal exponent of the first digit. */
export function significantDigits(x: number, count: number): [digits: string, exponent: number] {
  if (x === 0) return ['0'.repeat(count), 0];
  let exponent = Number(x.toExponential().split('e')[1]);
  let digits = scaledInteger(x, count - 1 - exponent).toString();
  if (digits.length < count) {
    // the shortest form was rounded up to a power of ten: 1e23 is below 10^23
    exponent--;
    digits = scaledInteger(x, count - 1 - exponent).toString();
  }
  if (digits.length > count) {
    // rounding added a digit: 9.99 -> 10.0
    exponent++;
    digits = digits.slice(0, count);
  }
  return [digits, exponent];
}
