/** Adapter weights <-> the bytes of a GGUF LoRA file, as llama.cpp loads them. */
import { OnpolicyError } from '../errors.ts';
import type { AdapterWeights, LoraFactors } from '../native/index.ts';

/** An adapter with what its file says about it. */
export type GgufAdapter = {
  readonly architecture: string;
  readonly alpha: number;
  readonly rank: number;
  readonly weights: AdapterWeights;
};

/** What the header of a file says. */
export type AdapterLayout = Pick<GgufAdapter, 'architecture' | 'alpha'> & {
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[];
};

const MAGIC = 0x46554747; // "GGUF", little-endian
const VERSION = 3;
const ALIGNMENT = 32;
const TYPE_FLOAT32 = 6;
const TYPE_STRING = 8;
const TYPE_ARRAY = 9;
/** Sizes of fixed-size metadata values by type number. */
const VALUE_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const TENSOR_F32 = 0;

/** Lays the adapter out in a file. The parts of the file follow each other; none is a copy. */
export function writeGgufAdapter({ architecture, alpha, rank, weights }: GgufAdapter): Uint8Array[] {
  const tensors = Object.entries(weights).flatMap(([name, { a, b }]) => [
    { name: `${name}.weight.lora_a`, shape: [a.length / rank, rank], values: a },
    { name: `${name}.weight.lora_b`, shape: [rank, b.length / rank], values: b },
  ]);
  const data = tensors.flatMap(({ values }) => {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return [bytes, padding(bytes.length)];
  });
  return [adapterHeader({ architecture, alpha, tensors }), ...data];
}

/** What stands before the numbers of the tensors, which follow in this order, each padded by {@link padding}. */
export function adapterHeader({ architecture, alpha, tensors }: AdapterLayout): Uint8Array {
  const head = new Writer();
  head.u32(MAGIC);
  head.u32(VERSION);
  head.u64(tensors.length);
  const texts = {
    'general.type': 'adapter',
    'general.architecture': architecture,
    'adapter.type': 'lora',
  };
  head.u64(Object.keys(texts).length + 1);
  for (const [key, value] of Object.entries(texts)) {
    head.text(key);
    head.u32(TYPE_STRING);
    head.text(value);
  }
  head.text('adapter.lora.alpha');
  head.u32(TYPE_FLOAT32);
  head.f32(alpha);
  let offset = 0;
  for (const { name, shape } of tensors) {
    head.text(name);
    head.u32(shape.length);
    for (const size of shape) head.u64(size);
    head.u32(TENSOR_F32);
    head.u64(offset);
    offset += align(4 * shape.reduce((product, size) => product * size, 1));
  }
  const header = head.bytes();
  return Buffer.concat([header, padding(header.length)]);
}

/** Zeros behind so many bytes, up to where the next tensor begins. */
export function padding(bytes: number): Uint8Array {
  return new Uint8Array(align(bytes) - bytes);
}

/** Reads a LoRA file's F32 factors. */
export function readGgufAdapter(file: Uint8Array): GgufAdapter {
  const reader = new Reader(file);
  if (reader.u32() !== MAGIC || reader.u32() < 2) fail('it is not a GGUF file');
  const tensorCount = reader.u64();
  const metadata: Record<string, string | number> = {};
  for (let left = reader.u64(); left > 0; left--) {
    const key = reader.text();
    metadata[key] = reader.value();
  }
  if (metadata['adapter.type'] !== 'lora') fail('it is no LoRA adapter');
  const tensors = Array.from({ length: tensorCount }, () => {
    const name = reader.text();
    const shape = Array.from({ length: reader.u32() }, () => reader.u64());
    return { name, shape, type: reader.u32(), offset: reader.u64() };
  });
  const alignment = Number(metadata['general.alignment'] ?? ALIGNMENT);
  const start = Math.ceil(reader.at / alignment) * alignment;
  const factors: Record<string, { a?: Float32Array; b?: Float32Array }> = {};
  let rank = 0;
  for (const { name, shape, type, offset } of tensors) {
    const match = /^(.+)\.weight\.lora_([ab])$/.exec(name);
    if (!match) fail(`the tensor ${name} is no LoRA factor`);
    const count = shape.reduce((product, size) => product * size, 1);
    const [, module, factor] = match as unknown as [string, string, 'a' | 'b'];
    if (factor === 'a') rank = shape[1] ?? 1;
    factors[module] = { ...factors[module], [factor]: reader.floats(start + offset, count, type) };
  }
  const weights = Object.entries(factors).map(([name, { a, b }]): [string, LoraFactors] => {
    if (!a || !b) return fail(`${name} lacks one of its factors`);
    return [name, { a, b }];
  });
  return {
    architecture: String(metadata['general.architecture'] ?? ''),
    alpha: Number(metadata['adapter.lora.alpha'] ?? 0),
    rank,
    weights: Object.fromEntries(weights),
  };
}

/** Grows as values are appended, little-endian. */
class Writer {
  readonly #parts: Uint8Array[] = [];

  #put(size: number, fill: (view: DataView) => void): void {
    const part = new Uint8Array(size);
    fill(new DataView(part.buffer));
    this.#parts.push(part);
  }

  u32(value: number): void {
    this.#put(4, (view) => view.setUint32(0, value, true));
  }

  u64(value: number): void {
    this.#put(8, (view) => view.setBigUint64(0, BigInt(value), true));
  }

  f32(value: number): void {
    this.#put(4, (view) => view.setFloat32(0, value, true));
  }

  text(value: string): void {
    const bytes = Buffer.from(value);
    this.u64(bytes.length);
    this.#parts.push(bytes);
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#parts);
  }
}

/** Reads values in order; a file that ends early fails. */
class Reader {
  at = 0;
  readonly #file: Uint8Array;
  readonly #view: DataView;

  constructor(file: Uint8Array) {
    this.#file = file;
    this.#view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  }

  #take(size: number): number {
    const from = this.at;
    if (!(size >= 0 && size <= this.#file.length - from)) fail('it ends too early');
    this.at += size;
    return from;
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  u64(): number {
    return Number(this.#view.getBigUint64(this.#take(8), true));
  }

  text(): string {
    const length = this.u64();
    const from = this.#take(length);
    return Buffer.from(this.#file.subarray(from, from + length)).toString();
  }

  /** A metadata value; the numbers and texts that adapters use, others are stepped over. */
  value(type = this.u32()): string | number {
    if (type === TYPE_STRING) return this.text();
    if (type === TYPE_FLOAT32) return this.#view.getFloat32(this.#take(4), true);
    if (type === TYPE_ARRAY) {
      const itemType = this.u32();
      for (let left = this.u64(); left > 0; left--) this.value(itemType);
      return '';
    }
    const size = VALUE_BYTES[type] ?? 0;
    if (size === 0) fail(`a value has the unknown type ${type}`);
    const from = this.#take(size);
    return size === 4 ? this.#view.getUint32(from, true) : 0;
  }

  floats(from: number, count: number, type: number): Float32Array {
    if (type !== TENSOR_F32) fail('a factor is not F32');
    this.at = from;
    this.#take(count * 4);
    return new Float32Array(Uint8Array.from(this.#file.subarray(from, from + count * 4)).buffer);
  }
}

function align(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

function fail(message: string): never {
  throw new OnpolicyError('MODEL_INVALID', `not a readable adapter: ${message}`);
}
