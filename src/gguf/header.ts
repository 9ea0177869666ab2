/** What the header of a GGUF file says -> its values and tensors, asked for with what they must be. */
import { OnpolicyError } from '../errors.ts';
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

/** Elements of an array; texts lie in the file one after the other. */
export type GgufArray = {
  readonly of: ValueType;
  readonly count: number;
  /** Of arrays of numbers. Flags are 0 and 1. */
  readonly numbers: readonly number[] | Float64Array;
  /** Of arrays of texts: each one's bytes, in order. */
  texts(): Iterable<Buffer>;
};

export type GgufValue =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'array'; readonly value: GgufArray }
  | { readonly type: Exclude<ValueType, 'string' | 'array'>; readonly value: number };

/** Where a tensor lies and what it holds. */
export type GgufTensor = {
  readonly type: TensorType;
  /** Four sizes, the fastest first. */
  readonly shape: readonly number[];
  readonly offset: number; // of its first byte in the file
  readonly bytes: number;
};

/** What a number must be. Default: an integer of 32 bits without a sign, as the engine reads most. */
export type NumberRule = {
  readonly type?: ValueType | readonly ValueType[];
  readonly min?: number;
  readonly max?: number;
};

/** What a tensor must be. A shape's missing sizes are 1. */
export type TensorRule = {
  readonly types?: readonly string[];
  readonly shape?: readonly number[];
};

/** The header of one file. Its methods throw `MODEL_INVALID`, naming the file, the key or tensor, what was expected and what is there. */
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

  /** `what` is wrong: a key, a tensor. */
  refuse(what: string, expected: string, found: unknown): never {
    this.fail(`${what}: expected ${expected}, got ${shown(found)}`);
  }

  /** A text; undefined where the file has no such key. */
  text(key: string, among?: readonly string[]): string | undefined {
    const found = this.values.get(key);
    if (found === undefined) return undefined;
    if (found.type !== 'string') return this.refuse(key, 'a text', describe(found));
    if (among && !among.includes(found.value)) this.refuse(key, `one of ${among.join(', ')}`, found.value);
    return found.value;
  }

  /** A number, flags as 0 and 1; undefined where the file has no such key. */
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

  /** An array of `of`; undefined where the file has no such key. `count`: how many elements it must have. */
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

  /** A value that the file must have, of one of the methods above. */
  need<T>(key: string, found: T | undefined): T {
    return found ?? this.refuse(key, 'a value', 'none');
  }

  /** A tensor; undefined where the file has none of that name. */
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

/** Shapes of the tensors of a model's files by name. */
export function shapesOf(parts: readonly GgufHeader[]): Readonly<Record<string, readonly number[]>> {
  const shapes = Object.create(null) as Record<string, readonly number[]>;
  for (const { tensors } of parts) for (const [name, { shape }] of tensors) shapes[name] = shape;
  return shapes;
}

/** A shape without the ones at its end. */
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
