/** Types that products pack: random weights as a GGUF file has them, and their values. */

export type Format = {
  readonly type: number; // of ggml
  readonly group: number; // values that are encoded together
  readonly groupBytes: number;
  /** Offsets of 16-bit scales in a group. */
  readonly scales: readonly number[];
  /** The values of one group. */
  values(group: DataView): number[];
};

/** The number that 16 bits stand for. */
export function halfToNumber(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return bits & 0x8000 ? -size : size;
}

/** A number >= 0 in 16 bits, rounded to even. */
export function toHalf(value: number): number {
  if (value === 0) return 0;
  const exponent = Math.max(-14, Math.floor(Math.log2(value)));
  const step = 2 ** (exponent - 10);
  const steps = value / step;
  const floor = Math.floor(steps);
  const isUp = steps - floor > 0.5 || (steps - floor === 0.5 && floor % 2 === 1);
  return (floor + (isUp ? 1 : 0)) * step;
}

const half = (view: DataView, at: number) => halfToNumber(view.getUint16(at, true));
const range = (count: number) => Array.from({ length: count }, (_, i) => i);

export const FORMATS: Readonly<Record<string, Format>> = {
  q8_0: {
    type: 8,
    group: 32,
    groupBytes: 34,
    scales: [0],
    values: (view) => range(32).map((i) => half(view, 0) * view.getInt8(2 + i)),
  },
};

/** Random bytes, but for scales, which are small positive numbers. */
export function randomWeights(format: Format, width: number, rows: number, next: () => number): Uint8Array {
  const bytes = new Uint8Array((rows * width * format.groupBytes) / format.group).map(() => next() * 256);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += format.groupBytes)
    for (const scale of format.scales) view.setUint16(at + scale, 0x1800 + Math.floor(next() * 0x800), true);
  return bytes;
}

/** (rows, width) */
export function valuesOf(format: Format, weights: Uint8Array): Float64Array {
  const groups = weights.length / format.groupBytes;
  const values = new Float64Array(groups * format.group);
  for (let i = 0; i < groups; i++) {
    const view = new DataView(weights.buffer, weights.byteOffset + i * format.groupBytes, format.groupBytes);
    values.set(format.values(view), i * format.group);
  }
  return values;
}
