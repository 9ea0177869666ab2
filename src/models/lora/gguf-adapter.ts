/** Adapter weights <-> a GGUF LoRA file, as llama.cpp loads it. */
import fs from 'node:fs/promises';
import { readHeader } from '../../engine/gguf/index.ts';
import { type AdapterWeights, type LoraFactors, onDisk } from '../../engine/native/index.ts';

/** An adapter with what its file says about it. */
export type GgufAdapter = {
  readonly architecture: string;
  readonly alpha: number;
  /** The largest rank of all layers. */
  readonly rank: number;
  readonly weights: AdapterWeights;
};

export type AdapterLayout = Pick<GgufAdapter, 'architecture' | 'alpha'> & {
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[];
};

const MAGIC = 0x46554747; // "GGUF", little-endian
const VERSION = 3;
const ALIGNMENT = 32;
const TYPE_FLOAT32 = 6;
const TYPE_STRING = 8;
const TENSOR_F32 = 0;

/** Serializes the adapter. The parts of the file follow each other and are views, not copies. */
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

/** Returns the bytes before the numbers of the tensors. The tensors follow in this order, each padded by {@link padding}. */
export function adapterHeader({ architecture, alpha, tensors }: AdapterLayout): Uint8Array {
  const texts = Object.entries({
    'general.type': 'adapter',
    'general.architecture': architecture,
    'adapter.type': 'lora',
  });
  let offset = 0;
  const header = Buffer.concat([
    ...[u32(MAGIC), u32(VERSION), u64(tensors.length), u64(texts.length + 1)],
    ...texts.flatMap(([key, value]) => [...text(key), u32(TYPE_STRING), ...text(value)]),
    ...[...text('adapter.lora.alpha'), u32(TYPE_FLOAT32), f32(alpha)],
    ...tensors.flatMap(({ name, shape }) => {
      const at = offset;
      offset += align(4 * shape.reduce((product, size) => product * size, 1));
      return [...text(name), u32(shape.length), ...shape.map(u64), u32(TENSOR_F32), u64(at)];
    }),
  ]);
  return Buffer.concat([header, padding(header.length)]);
}

/** Returns the zeros between a tensor of this many bytes and the next one. */
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
    if (!module) return header.fail(`the tensor ${name} is not a LoRA factor`);
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

// Values of a header, little-endian.

const u32 = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer);
const u64 = (value: number): Uint8Array => new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
const f32 = (value: number): Uint8Array => new Uint8Array(Float32Array.of(value).buffer);

function text(value: string): Uint8Array[] {
  const bytes = Buffer.from(value);
  return [u64(bytes.length), bytes];
}

function align(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}
