// 32-bit floats <-> the bits of 16-bit ones.

/** The bits of the nearest 16-bit floats; what is too large becomes infinite. */
export function toHalf(values) {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(words, halfOf);
}

/** Rounds to the nearest, ties to even. */
function halfOf(word) {
  const sign = (word >>> 16) & 0x8000;
  const exponent = ((word >>> 23) & 0xff) - 127 + 15;
  const fraction = word & 0x7fffff;
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent < -10) return sign;
  const isSmall = exponent < 1;
  const shift = isSmall ? 14 - exponent : 13;
  const whole = isSmall ? fraction | 0x800000 : (exponent << 23) | fraction;
  const rest = whole & ((1 << shift) - 1);
  const tie = 1 << (shift - 1);
  const kept = whole >>> shift;
  return sign | (kept + (rest > tie || (rest === tie && kept & 1) ? 1 : 0));
}

/** The number that 16 bits stand for; finite ones. */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
