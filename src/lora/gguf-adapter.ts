/** Adapter weights <-> a GGUF LoRA file, as llama.cpp loads it. */
import fs from 'node:fs/promises';
import { readHeader } from '../gguf/index.ts';
import { type AdapterWeights, type LoraFactors, onDisk } from '../native/index.ts';

/** An adapter with what its file says about it. */
export type GgufAdapter = {
  readonly architecture: string;
  readonly alpha: number;
  /** Of the layers with the largest. */
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
const TENSOR_F32 = 0;

/** Lays the adapter out in a file. The parts of the file follow each other; none is a copy. */
export function writeGgufAdapter({ architecture, alpha, rank, weights }: GgufAdapter): Uint8Array[] {
  const tensors = Object.entries(weights).flatMap(([name, { a, b, experts = 1 }]) => {
    const all = experts > 1 ? [experts] : [];
    return [
      { name: `${name}.weight.lora_a`, shape: [a.length / rank / experts, rank, ...all], values: a },
      { name: `${name}.weight.lora_b`, shape: [rank, b.length / rank / experts, ...all], values: b },
    ];
  });
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

/** Reads a LoRA file's F32 factors. Fails with `MODEL_NOT_FOUND` or `MODEL_INVALID`. */
export async function readGgufAdapter(path: string): Promise<GgufAdapter> {
  const header = await readHeader(path);
  if (header.text('adapter.type') !== 'lora') header.fail('expected a LoRA adapter');
  const bytes = await fs.readFile(onDisk(path));
  const found: Record<string, { a?: Float32Array; b?: Float32Array; experts?: number }> = Object.create(null);
  let rank = 0;
  for (const [name, { shape, offset, bytes: size }] of header.tensors) {
    const [, module, factor] = /^(.+)\.weight\.lora_([ab])$/.exec(name) ?? [];
    if (!module) return header.fail(`the tensor ${name} is no LoRA factor`);
    const [width = 0, rows = 0, experts = 1] = shape;
    header.tensor(name, { types: ['f32'] });
    rank = Math.max(rank, factor === 'a' ? rows : width);
    const values = new Float32Array(Uint8Array.from(bytes.subarray(offset, offset + size)).buffer);
    found[module] = {
      ...found[module],
      [factor as 'a' | 'b']: values,
      ...(experts > 1 ? { experts } : {}),
    };
  }
  const weights = Object.entries(found).map(([name, { a, b, ...experts }]): [string, LoraFactors] => {
    if (!a || !b) return header.fail(`${name} lacks one of its factors`);
    return [name, { a, b, ...experts }];
  });
  return {
    architecture: header.architecture,
    alpha: header.number('adapter.lora.alpha', { type: 'f32' }) ?? 0,
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

function align(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}
