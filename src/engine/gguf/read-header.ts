/** The path of a GGUF file -> its header. Every size and count in it is distrusted: a damaged file is an error here, before native code sees it. */
import fs from 'node:fs/promises';
import { OnpolicyError } from '../../errors.ts';
import { onDisk } from '../native/index.ts';
import {
  type GgufArray,
  GgufHeader,
  type GgufTensor,
  type GgufValue,
  VALUE_TYPES,
  type ValueType,
} from './header.ts';
import { tensorType } from './tensor-types.ts';

/** Bytes that are read first. Only headers with a large vocabulary are longer. */
const FIRST_BYTES = 2 ** 20;
/** Highest size of a header. Vocabularies of 260,000 tokens take 15 MiB. */
export const MAX_HEADER_BYTES = 2 ** 28;
/** Highest counts of keys and tensors. The engine compares each name with all before it. */
const MAX_KEYS = 4096;
const MAX_TENSORS = 32_768;
/** Bytes of a tensor's name, with a zero at its end. */
const MAX_NAME_BYTES = 64;
const MAX_DIMENSIONS = 4;
const DEFAULT_ALIGNMENT = 32;
/** Alignment of a tensor's first byte, which the engine requires of memory that it computes with. */
const TENSOR_ALIGNMENT = 32;

/** Reads the header of one file. Fails with `MODEL_NOT_FOUND` or `MODEL_INVALID`. */
export async function readHeader(path: string): Promise<GgufHeader> {
  const stat = await fs.stat(onDisk(path)).catch((cause: unknown) => refuseToOpen(path, cause));
  if (!stat.isFile()) throw invalid(path, 'is not a file');
  const file = await fs.open(onDisk(path)).catch((cause: unknown) => refuseToOpen(path, cause));
  try {
    const limit = Math.min(stat.size, MAX_HEADER_BYTES);
    for (let size = Math.min(FIRST_BYTES, limit); ; size = Math.min(4 * size, limit)) {
      const bytes = Buffer.alloc(size);
      const { bytesRead } = await file.read(bytes, 0, size, 0);
      const header = parseHeader(path, bytes.subarray(0, bytesRead), stat.size);
      if (header !== null) return header;
      if (size === limit || bytesRead < size) throw invalid(path, 'has a damaged or truncated GGUF header');
    }
  } finally {
    await file.close();
  }
}

/** Parses the header in the first bytes of a file of this size. Returns null if the header is longer. Fails with `MODEL_INVALID`. */
export function parseHeader(path: string, bytes: Buffer, fileBytes: number): GgufHeader | null {
  try {
    return parse(path, bytes, fileBytes);
  } catch (error) {
    if (error instanceof EndOfBytes) return null;
    throw error;
  }
}

/** The header is longer than the bytes that were read. */
class EndOfBytes extends Error {}

function refuseToOpen(path: string, cause: unknown): never {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR')
    throw new OnpolicyError('MODEL_NOT_FOUND', `there is no file ${path}`, { cause });
  const reason = code === 'EACCES' ? 'permission denied' : message;
  throw new OnpolicyError('MODEL_INVALID', `${path} cannot be read: ${reason}`, { cause });
}

function invalid(path: string, reason: string): OnpolicyError {
  return new OnpolicyError('MODEL_INVALID', `${path} ${reason}`);
}

function parse(path: string, bytes: Buffer, fileBytes: number): GgufHeader {
  const reader = new Reader(bytes);
  if (bytes.length < 4 || bytes.toString('latin1', 0, 4) !== 'GGUF')
    throw invalid(path, 'is not a GGUF file');
  reader.skip(4);
  const fail = (message: string): never => {
    throw invalid(path, `has a damaged GGUF header: ${message}`);
  };
  const version = reader.u32();
  if (version !== 2 && version !== 3) fail(`expected version 2 or 3, got ${version}`);
  const tensorCount = reader.u64();
  const keyCount = reader.u64();
  if (keyCount > MAX_KEYS) fail(`expected ${MAX_KEYS} keys at most, got ${keyCount}`);
  if (tensorCount > MAX_TENSORS) fail(`expected ${MAX_TENSORS} tensors at most, got ${tensorCount}`);
  const values = new Map<string, GgufValue>();
  for (let left = keyCount; left > 0; left--) {
    const key = reader.text();
    if (key === '') fail('a key is empty');
    if (values.has(key)) fail(`the key ${key} occurs twice`);
    const type = reader.valueType();
    const value = type && reader.value(type);
    if (!value) return fail(`${key} has a value of no known type`);
    values.set(key, value);
  }
  const header = new GgufHeader(path, values, new Map());
  const alignment = header.number('general.alignment', { min: 1 }) ?? DEFAULT_ALIGNMENT;
  if (!Number.isInteger(Math.log2(alignment))) header.refuse('general.alignment', 'a power of 2', alignment);
  const tensors = new Map<string, GgufTensor>();
  const pad = (size: number): number => Math.ceil(size / alignment) * alignment;
  let offset = 0;
  for (let left = tensorCount; left > 0; left--) {
    const name = reader.text();
    if (Buffer.byteLength(name) >= MAX_NAME_BYTES) fail(`the tensor ${name} has too long a name`);
    if (tensors.has(name)) fail(`the tensor ${name} occurs twice`);
    const tensor = reader.tensor((message) => fail(`the tensor ${name} ${message}`));
    if (tensor.offset !== offset) fail(`the tensor ${name} begins at ${tensor.offset}, expected ${offset}`);
    offset += pad(tensor.bytes);
    tensors.set(name, tensor);
  }
  const start = pad(reader.at);
  let end = reader.at;
  for (const [name, tensor] of tensors) {
    if ((start + tensor.offset) % TENSOR_ALIGNMENT !== 0)
      header.refuse(
        `the tensor ${name}`,
        `to begin at a multiple of ${TENSOR_ALIGNMENT} bytes`,
        start + tensor.offset,
      );
    end = start + tensor.offset + tensor.bytes;
    tensors.set(name, { ...tensor, offset: start + tensor.offset });
  }
  if (fileBytes < end) throw invalid(path, `is truncated: it needs ${end} bytes and has ${fileBytes}`);
  return new GgufHeader(path, values, tensors);
}

class Reader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Skips `size` bytes and returns the position where they begin. */
  skip(size: number): number {
    const from = this.at;
    if (!(size <= this.#bytes.length - from)) throw new EndOfBytes();
    this.at += size;
    return from;
  }

  u32(): number {
    return this.#bytes.readUInt32LE(this.skip(4));
  }

  u64(): number {
    return wide(this.#bytes, this.skip(8));
  }

  text(): string {
    const size = this.u64();
    const from = this.skip(size);
    return this.#bytes.toString('utf8', from, from + size);
  }

  valueType(): ValueType | undefined {
    return VALUE_TYPES[this.u32()];
  }

  /** Returns undefined for an array of arrays and for an unknown type. */
  value(type: ValueType): GgufValue | undefined {
    if (type === 'string') return { type, value: this.text() };
    if (type !== 'array') return { type, value: this.#number(type) };
    const of = this.valueType();
    if (!of || of === 'array') return undefined;
    const value = of === 'string' ? this.#texts(this.u64()) : this.#numbers(of, this.u64());
    return { type, value };
  }

  tensor(fail: (message: string) => never): GgufTensor {
    const dimensions = this.u32();
    if (dimensions > MAX_DIMENSIONS) fail(`has ${dimensions} dimensions`);
    const shape = [1, 1, 1, 1].map((one, i) => (i < dimensions ? this.u64() : one));
    if (shape.includes(0)) fail(`is empty: its shape is ${shape.join(' x ')}`);
    const number = this.u32();
    const type = tensorType(number) ?? fail(`has the unknown type ${number}`);
    const { blockElements, blockBytes } = type;
    if (shape[0]! % blockElements !== 0)
      fail(`has rows of ${shape[0]} numbers, no whole blocks of ${type.name}`);
    const bytes = (shape.reduce((product, size) => product * size, 1) / blockElements) * blockBytes;
    if (!Number.isSafeInteger(bytes)) fail(`has the shape ${shape.join(' x ')}`);
    return { type, shape, bytes, offset: this.u64() };
  }

  #texts(count: number): GgufArray {
    const bytes = this.#bytes;
    const start = this.at;
    if (!(8 * count <= bytes.length - start)) throw new EndOfBytes();
    for (let left = count; left > 0; left--) this.skip(this.u64());
    function* texts(): Generator<Buffer> {
      let at = start;
      for (let left = count; left > 0; left--) {
        const end = at + 8 + wide(bytes, at);
        yield bytes.subarray(at + 8, end);
        at = end;
      }
    }
    return { of: 'string', count, numbers: [], texts };
  }

  #numbers(of: ScalarType, count: number): GgufArray {
    if (!(SCALARS[of].bytes * count <= this.#bytes.length - this.at)) throw new EndOfBytes();
    const numbers = Float64Array.from({ length: count }, () => this.#number(of));
    return { of, count, numbers, texts: () => [] };
  }

  #number(type: ScalarType): number {
    const { bytes, read } = SCALARS[type];
    return read(this.#bytes, this.skip(bytes));
  }
}

/** Reads a number of 64 bits without a BigInt, because vocabularies have 100,000s of them. */
function wide(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}

type ScalarType = Exclude<ValueType, 'string' | 'array'>;

type Scalar = { readonly bytes: number; readonly read: (from: Buffer, at: number) => number };

const SCALARS: Readonly<Record<ScalarType, Scalar>> = {
  u8: { bytes: 1, read: (from, at) => from.readUInt8(at) },
  i8: { bytes: 1, read: (from, at) => from.readInt8(at) },
  u16: { bytes: 2, read: (from, at) => from.readUInt16LE(at) },
  i16: { bytes: 2, read: (from, at) => from.readInt16LE(at) },
  u32: { bytes: 4, read: (from, at) => from.readUInt32LE(at) },
  i32: { bytes: 4, read: (from, at) => from.readInt32LE(at) },
  f32: { bytes: 4, read: (from, at) => from.readFloatLE(at) },
  bool: { bytes: 1, read: (from, at) => Number(from.readUInt8(at) !== 0) },
  u64: { bytes: 8, read: wide },
  i64: { bytes: 8, read: (from, at) => Number(from.readBigInt64LE(at)) },
  f64: { bytes: 8, read: (from, at) => from.readDoubleLE(at) },
};
