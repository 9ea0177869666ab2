/** Named float matrices <-> the bytes of a safetensors file. */

import type { FileHandle } from 'node:fs/promises';
import { isObject, parseJson } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';

/** One matrix or vector of 32-bit floats. */
export type FloatTensor = { readonly shape: readonly number[]; readonly values: Float32Array };

/** A file's tensors in order, and its text metadata. */
export type Safetensors = {
  readonly tensors: Readonly<Record<string, FloatTensor>>;
  readonly metadata: Readonly<Record<string, string>>;
};

export type TensorPlace = {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly start: number; // byte offset in the file
  readonly end: number;
};

const MAX_HEADER_BYTES = 100_000_000;

/** Serializes the tensors as F32, in the order given. The parts of the file follow each other and are views, not copies. */
export function writeSafetensors({ tensors, metadata }: Safetensors): Uint8Array[] {
  const places = Object.entries(tensors).map(([name, { shape }]) => ({ name, shape }));
  const data = Object.values(tensors).map(
    ({ values }) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
  );
  return [safetensorsHeader(places, 'f32', metadata), ...data];
}

/** Returns the bytes before the numbers of the tensors, which follow each other in the order given. */
export function safetensorsHeader(
  tensors: readonly { readonly name: string; readonly shape: readonly number[] }[],
  type: 'f32' | 'f16' | 'bf16',
  metadata: Safetensors['metadata'] = { format: 'pt' },
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  const dtype = type.toUpperCase();
  let offset = 0;
  for (const { name, shape } of tensors) {
    const end = offset + NUMBER_BYTES[dtype]! * shape.reduce((product, size) => product * size, 1);
    header[name] = { dtype, shape, data_offsets: [offset, end] };
    offset = end;
  }
  const text = Buffer.from(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / 8) * 8; // padded with spaces: the data is aligned
  const start = Buffer.alloc(8 + headerBytes, ' ');
  start.writeBigUInt64LE(BigInt(headerBytes));
  start.set(text, 8);
  return start;
}

/** Reads a file's tensors as 32-bit floats, from F32, F16 or BF16. Integers (I32) are read as floats too. */
export function readSafetensors(file: Uint8Array): Safetensors {
  const { byteLength } = file;
  const dataStart = headerEnd(file.subarray(0, START_BYTES), byteLength);
  const text = Buffer.from(file.subarray(START_BYTES, dataStart)).toString();
  const { places, metadata } = parseHeader(text, dataStart, byteLength);
  const tensors = places.map((place): [string, FloatTensor] => {
    const bytes = Uint8Array.from(file.subarray(place.start, place.end)); // aligned, its own memory
    return [place.name, { shape: place.shape, values: toFloats(place, bytes) }];
  });
  return { tensors: Object.fromEntries(tensors), metadata };
}

/** Returns the positions of the tensors of an open file. */
export async function readPlaces(file: FileHandle): Promise<readonly TensorPlace[]> {
  const { size } = await file.stat();
  const dataStart = headerEnd(await readBytes(file, 0, Math.min(START_BYTES, size)), size);
  const text = Buffer.from(await readBytes(file, START_BYTES, dataStart)).toString();
  return parseHeader(text, dataStart, size).places;
}

/** Reads one tensor of an open file as 32-bit floats, from F32, F16 or BF16. */
export async function readTensor(file: FileHandle, place: TensorPlace): Promise<Float32Array> {
  return toFloats(place, await readBytes(file, place.start, place.end));
}

async function readBytes(file: FileHandle, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled);
    if (bytesRead === 0) fail('it ends too early');
    filled += bytesRead;
  }
  return bytes;
}

/** Bytes in front of the header, which hold its size. */
const START_BYTES = 8;

/** Returns the position where the header ends and the numbers begin. `start`: the first bytes of the file. */
function headerEnd(start: Uint8Array, fileBytes: number): number {
  if (start.length < START_BYTES) fail('its header is damaged');
  const size = Number(new DataView(start.buffer, start.byteOffset, START_BYTES).getBigUint64(0, true));
  if (size > Math.min(MAX_HEADER_BYTES, fileBytes - START_BYTES)) fail('its header is damaged');
  return START_BYTES + size;
}

function parseHeader(text: string, dataStart: number, fileBytes: number) {
  const header = parseJson(text);
  if (!isObject(header)) return fail('its header is not a JSON object');
  const { __metadata__: metadata = {}, ...entries } = header;
  if (!isObject(metadata)) fail('its __metadata__ is not an object');
  const places = Object.entries(entries).map(([name, entry]) => {
    if (!isObject(entry)) return fail(`${name} is no tensor`);
    const { dtype, shape, data_offsets: offsets } = entry;
    if (
      !isSizes(offsets) ||
      offsets.length !== 2 ||
      offsets[0]! > offsets[1]! ||
      dataStart + offsets[1]! > fileBytes
    )
      return fail(`${name} lies outside the file`);
    if (!isSizes(shape)) return fail(`${name} has no shape`);
    const [start, end] = offsets.map((offset) => dataStart + offset) as [number, number];
    return { name, dtype: String(dtype), shape, start, end };
  });
  return { places, metadata: metadata as Safetensors['metadata'] };
}

function isSizes(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

/** Bytes of a number, by types that can be read. */
const NUMBER_BYTES: Readonly<Record<string, number>> = { F32: 4, I32: 4, BF16: 2, F16: 2 };

function toFloats({ name, dtype, shape }: TensorPlace, bytes: Uint8Array): Float32Array {
  const size = NUMBER_BYTES[dtype];
  if (size === undefined) return fail(`${name} has the type ${dtype}; expected F32, F16 or BF16`);
  const count = shape.reduce((product, length) => product * length, 1);
  if (count * size !== bytes.length) fail(`${name} has another size than its shape says`);
  const { buffer } = bytes;
  if (dtype === 'F32') return new Float32Array(buffer);
  if (dtype === 'I32') return Float32Array.from(new Int32Array(buffer));
  const halves = new Uint16Array(buffer);
  if (dtype === 'BF16') {
    const words = new Uint32Array(count);
    for (let i = 0; i < count; i++) words[i] = halves[i]! << 16;
    return new Float32Array(words.buffer);
  }
  halfValues ??= Float32Array.from({ length: 2 ** 16 }, (_, bits) => halfToFloat(bits));
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = halfValues[halves[i]!]!;
  return values;
}

/** The values of all 16-bit floats, by their bits. */
let halfValues: Float32Array | null = null;

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
