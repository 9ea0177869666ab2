/** The header of a GGUF file -> its values and tensors, read with rules that they must satisfy. */
import { OnpolicyError } from '../../errors.ts';
import type { TensorType } from './tensor-types.ts';

/** Types of metadata values, by their number in the file. */
export const VALUE_TYPES = [
  'u8',
  'i8',
  'u16',
  'i16',
  'u32',
  'i32',
  'f32',
  'bool',
  'string',
  'array',
  'u64',
  'i64',
  'f64',
] as const;

export type ValueType = (typeof VALUE_TYPES)[number];

/** Elements of an array. Texts follow each other in the file. */
export type GgufArray = {
  readonly of: ValueType;
  readonly count: number;
  /** Elements of an array of numbers. Flags are 0 and 1. */
  readonly numbers: readonly number[] | Float64Array;
  /** Returns the bytes of each text of an array of texts, in order. */
  texts(): Iterable<Buffer>;
};

export type GgufValue =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'array'; readonly value: GgufArray }
  | { readonly type: Exclude<ValueType, 'string' | 'array'>; readonly value: number };

/** Position, type and shape of a tensor. */
export type GgufTensor = {
  readonly type: TensorType;
  /** Four sizes, the fastest first. */
  readonly shape: readonly number[];
  readonly offset: number; // of its first byte in the file
  readonly bytes: number;
};

/** Rule for a number. Default: an unsigned 32-bit integer, the type of most keys that the engine reads. */
export type NumberRule = {
  readonly type?: ValueType | readonly ValueType[];
  readonly min?: number;
  readonly max?: number;
};

/** Rule for a tensor. Missing sizes of a shape are 1. */
export type TensorRule = {
  readonly types?: readonly string[];
  readonly shape?: readonly number[];
};

/** The header of one file. Its methods throw `MODEL_INVALID`, naming the file, the key or tensor, the expected and the actual value. */
export class GgufHeader {
  readonly file: string;
  readonly values: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;

  constructor(
    file: string,
    values: ReadonlyMap<string, GgufValue>,
    tensors: ReadonlyMap<string, GgufTensor>,
  ) {
    this.file = file;
    this.values = values;
    this.tensors = tensors;
  }

  get architecture(): string {
    return this.text('general.architecture') ?? '';
  }

  /** Texts and numbers by key, flags as 0 and 1. */
  get scalars(): Readonly<Record<string, string | number>> {
    const scalars = Object.create(null) as Record<string, string | number>;
    for (const [key, { type, value }] of this.values) if (type !== 'array') scalars[key] = value;
    return scalars;
  }

  fail(message: string): never {
    throw new OnpolicyError('MODEL_INVALID', `${this.file}: ${message}`);
  }

  /** Throws an error about `what`, a key or a tensor. */
  refuse(what: string, expected: string, found: unknown): never {
    this.fail(`${what}: expected ${expected}, got ${shown(found)}`);
  }

  /** Returns a text. Returns undefined if the file does not have the key. */
  text(key: string, among?: readonly string[]): string | undefined {
    const found = this.values.get(key);
    if (found === undefined) return undefined;
    if (found.type !== 'string') return this.refuse(key, 'a text', describe(found));
    if (among && !among.includes(found.value)) this.refuse(key, `one of ${among.join(', ')}`, found.value);
    return found.value;
  }

  /** Returns a number, flags as 0 and 1. Returns undefined if the file does not have the key. */
  number(
    key: string,
    { type = 'u32', min = -Infinity, max = Infinity }: NumberRule = {},
  ): number | undefined {
    const found = this.values.get(key);
    if (found === undefined) return undefined;
    const types = typeof type === 'string' ? [type] : type;
    if (!types.includes(found.type))
      return this.refuse(key, `a number of type ${types.join(' or ')}`, describe(found));
    const value = found.value as number;
    if (!(value >= min && value <= max)) this.refuse(key, `a number ${range(min, max)}`, value);
    return value;
  }

  /** Returns an array of type `of` with `count` elements. Returns undefined if the file does not have the key. */
  array(key: string, of: ValueType | readonly ValueType[], count?: number): GgufArray | undefined {
    const found = this.values.get(key);
    if (found === undefined) return undefined;
    const types = typeof of === 'string' ? [of] : of;
    if (found.type !== 'array' || !types.includes(found.value.of))
      return this.refuse(key, `an array of ${types.join(' or ')}`, describe(found));
    if (count !== undefined && found.value.count !== count)
      this.refuse(key, `${count} elements`, `${found.value.count}`);
    return found.value;
  }

  /** Returns the result of one of the methods above, or throws if the file does not have the value. */
  need<T>(key: string, found: T | undefined): T {
    return found ?? this.refuse(key, 'a value', 'none');
  }

  /** Returns a tensor. Returns undefined if the file has no tensor of that name. */
  tensor(name: string, { types, shape }: TensorRule = {}): GgufTensor | undefined {
    const found = this.tensors.get(name);
    if (found === undefined) return undefined;
    if (types && !types.includes(found.type.name))
      this.refuse(`the tensor ${name}`, `numbers of type ${types.join(' or ')}`, found.type.name);
    if (shape && found.shape.some((size, i) => size !== (shape[i] ?? 1)))
      this.refuse(`the tensor ${name}`, `the shape ${showShape(shape)}`, showShape(found.shape));
    return found;
  }
}

/** Returns the shapes of the tensors of a model's files by name. */
export function shapesOf(parts: readonly GgufHeader[]): Readonly<Record<string, readonly number[]>> {
  const shapes = Object.create(null) as Record<string, readonly number[]>;
  for (const { tensors } of parts) for (const [name, { shape }] of tensors) shapes[name] = shape;
  return shapes;
}

/** Formats a shape without the ones at its end. */
export function showShape(shape: readonly number[]): string {
  const last = shape.findLastIndex((size) => size !== 1);
  return shape.slice(0, Math.max(last, 1) + 1).join(' x ');
}

function describe(found: GgufValue): string {
  if (found.type === 'array') return `an array of ${found.value.of}`;
  return found.type === 'string' ? 'a text' : `${found.value} of type ${found.type}`;
}

function range(min: number, max: number): string {
  if (max === Infinity) return `of at least ${min}`;
  return min === -Infinity ? `of at most ${max}` : `from ${min} to ${max}`;
}

function shown(found: unknown): string {
  const text = String(found);
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}
