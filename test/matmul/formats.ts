/** Types that matmuls pack: random weights as a GGUF file has them, and their values. */

export type Format = {
  readonly type: number; // of ggml
  readonly group: number; // values that are encoded together
  readonly groupBytes: number;
  /** Offsets of 16-bit scales in a group, or of the upper halves of its numbers. */
  readonly scales: readonly number[];
  /** Offsets of bytes that are exponents. */
  readonly exponents?: readonly number[];
  /** An activation as it is multiplied. Absent: activations are rounded in blocks. */
  readonly round?: (activation: number) => number;
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

/** The bits of a normal number that 16 bits hold. */
export function halfBits(value: number): number {
  if (value === 0) return 0;
  const [bits] = new Uint32Array(Float32Array.of(value).buffer);
  const exponent = ((bits! >>> 23) & 0xff) - 112;
  if (exponent <= 0) throw new RangeError('expected a normal number');
  return ((bits! >>> 16) & 0x8000) | (exponent << 10) | ((bits! >>> 13) & 0x3ff);
}

const half = (view: DataView, at: number) => halfToNumber(view.getUint16(at, true));
const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** 32 numbers of so many bytes each. */
const floats = (
  type: number,
  bytes: number,
  read: (view: DataView, at: number) => number,
  round: (activation: number) => number,
): Format => ({
  type,
  group: 32,
  groupBytes: 32 * bytes,
  scales: range(32).map((i) => i * bytes + bytes - 2),
  round,
  values: (view) => range(32).map((i) => read(view, i * bytes)),
});

/** The number whose upper half these 16 bits are. */
function upperToNumber(bits: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint16(0, bits);
  return view.getFloat32(0);
}

/** The nearest number whose lower half is zero, an even one of two. */
function toUpper(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  const bits = view.getUint32(0);
  view.setUint32(0, (bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000);
  return view.getFloat32(0);
}

const MXFP4_NUMBERS = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

export const FORMATS: Readonly<Record<string, Format>> = {
  f16: floats(1, 2, half, (x) => Math.sign(x) * toHalf(Math.abs(x))),
  bf16: floats(30, 2, (view, at) => upperToNumber(view.getUint16(at, true)), toUpper),
  f32: floats(
    0,
    4,
    (view, at) => view.getFloat32(at, true),
    (x) => x,
  ),
  q8_0: {
    type: 8,
    group: 32,
    groupBytes: 34,
    scales: [0],
    values: (view) => range(32).map((i) => half(view, 0) * view.getInt8(2 + i)),
  },
  q4_0: {
    type: 2,
    group: 32,
    groupBytes: 18,
    scales: [0],
    values: (view) =>
      range(32).map((i) => {
        const byte = view.getUint8(2 + (i % 16));
        return half(view, 0) * ((i < 16 ? byte & 15 : byte >> 4) - 8);
      }),
  },
  mxfp4: {
    type: 39,
    group: 32,
    groupBytes: 17,
    scales: [],
    exponents: [0],
    values: (view) =>
      range(32).map((i) => {
        const byte = view.getUint8(1 + (i % 16));
        const bits = i < 16 ? byte & 15 : byte >> 4;
        return 2 ** (view.getUint8(0) - 127) * MXFP4_NUMBERS[bits & 7]! * (bits & 8 ? -1 : 1);
      }),
  },
  q4_k: {
    type: 12,
    group: 256,
    groupBytes: 144,
    scales: [0, 2],
    values: (view) =>
      range(256).map((i) => {
        const byte = view.getUint8(16 + Math.floor(i / 64) * 32 + (i % 32));
        const [scale, minimum] = scaleAndMinimum(view, Math.floor(i / 32));
        return half(view, 0) * scale * (i % 64 < 32 ? byte & 15 : byte >> 4) - half(view, 2) * minimum;
      }),
  },
  q6_k: {
    type: 14,
    group: 256,
    groupBytes: 210,
    scales: [208],
    values: (view) =>
      range(256).map((i) => {
        const [side, part, at] = [Math.floor(i / 128), Math.floor(i / 32) % 4, i % 32];
        const low = view.getUint8(side * 64 + (part % 2) * 32 + at) >> (part < 2 ? 0 : 4);
        const high = view.getUint8(128 + side * 32 + at) >> (2 * part);
        return (
          half(view, 208) * view.getInt8(192 + Math.floor(i / 16)) * (((low & 15) | ((high & 3) << 4)) - 32)
        );
      }),
  },
};

/** Returns scale and minimum of a block, six bits each. Four blocks have them in bytes whose upper bits belong to the other blocks. */
function scaleAndMinimum(view: DataView, block: number): [number, number] {
  const byte = (at: number) => view.getUint8(4 + at);
  if (block < 4) return [byte(block) & 63, byte(block + 4) & 63];
  return [
    (byte(block + 4) & 15) | ((byte(block - 4) >> 6) << 4),
    (byte(block + 4) >> 4) | ((byte(block) >> 6) << 4),
  ];
}

/** Random bytes, but for scales and the upper halves of numbers, which are small and positive. */
export function randomWeights(format: Format, width: number, rows: number, next: () => number): Uint8Array {
  const bytes = new Uint8Array((rows * width * format.groupBytes) / format.group).map(() => next() * 256);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += format.groupBytes) {
    for (const exponent of format.exponents ?? []) bytes[at + exponent] = 118 + Math.floor(next() * 8);
    for (const scale of format.scales) view.setUint16(at + scale, 0x1800 + Math.floor(next() * 0x800), true);
  }
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
