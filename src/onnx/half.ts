/** 16-bit floats as bits -> numbers. */

let table: Float32Array | null = null; // (65,536) values of all 16-bit floats

/** Writes the numbers of `bits` to `target`. */
export function copyFromHalf(bits: Uint16Array, target: Float32Array): void {
  table ??= Float32Array.from({ length: 65_536 }, (_, half) => toNumber(half));
  for (let i = 0; i < bits.length; i++) target[i] = table[bits[i]!]!;
}

function toNumber(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
