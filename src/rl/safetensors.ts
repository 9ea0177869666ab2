/** Named float matrices <-> the bytes of a safetensors file. */
import { OnpolicyError } from '../errors.ts';

/** One matrix or vector of 32-bit floats. */
export type FloatTensor = { readonly shape: readonly number[]; readonly values: Float32Array };

/** A file's tensors in order, and its text metadata. */
export type Safetensors = {
  readonly tensors: Readonly<Record<string, FloatTensor>>;
  readonly metadata: Readonly<Record<string, string>>;
};

type Entry = {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
};

const MAX_HEADER_BYTES = 100_000_000;

/** Lays the tensors out in a file: F32, in the order given. The parts of the file follow each other; none is a copy. */
export function writeSafetensors({ tensors, metadata }: Safetensors): Uint8Array[] {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + values.byteLength] };
    offset += values.byteLength;
  }
  const text = Buffer.from(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / 8) * 8; // padded with spaces: the data is aligned
  const start = Buffer.alloc(8 + headerBytes, ' ');
  start.writeBigUInt64LE(BigInt(headerBytes));
  start.set(text, 8);
  const data = Object.values(tensors).map(
    ({ values }) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
  );
  return [start, ...data];
}

/** Reads a file's tensors as 32-bit floats, from F32, F16 or BF16. Integers (I32) are read as floats too. */
export function readSafetensors(file: Uint8Array): Safetensors {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const headerBytes = file.byteLength >= 8 ? Number(view.getBigUint64(0, true)) : Number.NaN;
  if (!(headerBytes <= Math.min(MAX_HEADER_BYTES, file.byteLength - 8))) fail('its header is damaged');
  const header = parse(Buffer.from(file.subarray(8, 8 + headerBytes)).toString());
  const { __metadata__: metadata = {}, ...entries } = header as Record<string, Entry> & {
    __metadata__?: never;
  };
  const tensors = Object.entries(entries).map(([name, entry]): [string, FloatTensor] => {
    const [start, end] = entry.data_offsets ?? [];
    const isInside = start !== undefined && end !== undefined && start >= 0 && start <= end;
    if (!isInside || 8 + headerBytes + end > file.byteLength) fail(`${name} lies outside the file`);
    const bytes = Uint8Array.from(file.subarray(8 + headerBytes + start, 8 + headerBytes + end)); // aligned, its own memory
    const values = toFloats(name, entry.dtype, bytes);
    if (entry.shape.reduce((product, size) => product * size, 1) !== values.length)
      fail(`${name} has another size than its shape says`);
    return [name, { shape: entry.shape, values }];
  });
  return { tensors: Object.fromEntries(tensors), metadata };
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text);
  } catch {
    return fail('its header is no JSON');
  }
}

function toFloats(name: string, dtype: string, bytes: Uint8Array): Float32Array {
  switch (dtype) {
    case 'F32':
      return new Float32Array(bytes.buffer);
    case 'I32':
      return Float32Array.from(new Int32Array(bytes.buffer));
    case 'BF16':
      return new Float32Array(Uint32Array.from(new Uint16Array(bytes.buffer), (half) => half << 16).buffer);
    case 'F16':
      return Float32Array.from(new Uint16Array(bytes.buffer), halfToFloat);
    default:
      return fail(`${name} has the type ${dtype}; expected F32, F16 or BF16`);
  }
}

function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function fail(message: string): never {
  throw new OnpolicyError('MODEL_INVALID', `not a readable safetensors file: ${message}`);
}
