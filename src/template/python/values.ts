/**
 * The types of template values. None is null, a missing variable is undefined, int is number or bigint, float is PyFloat,
 * str is string or Markup, list is an immutable array.
 */
import { OnpolicyError } from '../../errors.ts';
import { overBudget, PyError, typeError } from './py-error.ts';
import type { RenderState } from './render-state.ts';

export type Value =
  | null
  | boolean
  | number // a safe integer
  | bigint // an integer beyond the safe integers
  | string
  | PyFloat
  | Markup
  | Tuple
  | Dict
  | Undefined
  | PyObject
  | readonly Value[];

export type Keywords = ReadonlyMap<string, Value>;

/** A Python float, to tell 1.0 from 1. */
export class PyFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** A string that is escaped for HTML. Plain text added to it is escaped. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export class Tuple {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** A group made by `groupby`: a tuple of two with names. */
export class GroupTuple extends Tuple {}

/** A missing value. It can be printed and iterated; any other use raises `message`. */
export class Undefined {
  readonly #message: string | (() => string);
  readonly kind: 'UndefinedError' | 'SecurityError';

  constructor(message: string | (() => string), kind: 'UndefinedError' | 'SecurityError' = 'UndefinedError') {
    this.#message = message;
    this.kind = kind;
  }

  fail(): never {
    const message = this.#message;
    throw new PyError(this.kind, typeof message === 'string' ? message : message());
  }

  /** Called when the value is printed or iterated as if it were empty. */
  useAsEmpty(): void {}
}

/** A field that the caller's data lacks. Every use raises, except tests and defaults. */
export class MissingField extends Undefined {
  readonly #path: string;

  constructor(path: string) {
    super(path);
    this.#path = path;
  }

  override fail(): never {
    const msg = `${this.#path}: the chat template needs this field, and it is not there`;
    const detail = [{ loc: this.#path.split('.'), msg, type: 'missing' }];
    throw new OnpolicyError('INVALID_REQUEST', msg, { param: this.#path, detail });
  }

  override useAsEmpty(): void {
    this.fail();
  }
}

/** Base of every other object: ranges, views, generators, namespaces, macros, functions, loops. */
export abstract class PyObject {
  abstract readonly typeName: string;

  /** The printed text, or another value that is printed with text around it. */
  repr(
    _state: RenderState,
  ): string | { readonly before: string; readonly inner: Value; readonly after: string } {
    return `<${this.typeName} object>`;
  }
  /** A Python attribute, or undefined if there is none. */
  attribute?(name: string, state: RenderState): Value | undefined;
  /** `object[key]` without the attribute fallback, or undefined if there is no such item. */
  item?(key: Value): Value | undefined;
  iterate?(state: RenderState): Iterable<Value>;
  length?(state: RenderState): number;
  reversed?(state: RenderState): Iterable<Value>;
  call?(state: RenderState, args: readonly Value[], keywords: Keywords | null): Value;
}

/** The code of a call: a function of the library, or a method bound to its object. */
export type Callee = (state: RenderState, args: readonly Value[], keywords: Keywords | null) => Value;

export class BuiltinFunction extends PyObject {
  readonly typeName: string;
  readonly functionName: string;
  override readonly call: Callee;

  constructor(functionName: string, call: Callee, typeName = 'builtin_function_or_method') {
    super();
    this.functionName = functionName;
    this.call = call;
    this.typeName = typeName;
  }
  override repr(): string {
    return this.typeName === 'type' ? `<class '${this.functionName}'>` : `<function ${this.functionName}>`;
  }
}

export function typeName(value: Value): string {
  if (value === null) return 'NoneType';
  switch (typeof value) {
    case 'boolean':
      return 'bool';
    case 'number':
    case 'bigint':
      return 'int';
    case 'string':
      return 'str';
  }
  if (Array.isArray(value)) return 'list';
  if (value instanceof PyFloat) return 'float';
  if (value instanceof Dict) return 'dict';
  if (value instanceof GroupTuple) return '_GroupTuple';
  if (value instanceof Tuple) return 'tuple';
  if (value instanceof Markup) return 'Markup';
  if (value instanceof Undefined) return 'Undefined';
  return (value as PyObject).typeName;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Returns the text of a str, including Markup, or undefined for other types. */
export function textOf(value: Value): string | undefined {
  if (typeof value === 'string') return value;
  return value instanceof Markup ? value.text : undefined;
}

/** A dict key in normal form: 1, 1.0 and True are the same key, Markup equals its text. */
type NormalKey = string | number | bigint | null | object;

/** The key of all Undefined values, which are equal in Python. */
const UNDEFINED_KEY = Object.freeze({});
/** Prefix of encoded tuples; strings with it are escaped to avoid collisions. */
const ESCAPE = '\u0000';

/** A key in normal form. Raises for lists and dicts. */
export function normalKey(key: Value): NormalKey {
  if (typeof key === 'string') return key.charCodeAt(0) === 0 ? `${ESCAPE}s${key}` : key;
  if (typeof key === 'number' || typeof key === 'bigint' || key === null) return key;
  if (typeof key === 'boolean') return key ? 1 : 0;
  if (key instanceof Markup) return normalKey(key.text);
  if (key instanceof PyFloat) return normalFloat(key.value);
  if (key instanceof Tuple) return ESCAPE + keyText(key, { parts: 0 });
  if (key instanceof Undefined) return UNDEFINED_KEY;
  if (isList(key) || key instanceof Dict || ['dict_keys', 'dict_items'].includes(key.typeName))
    return typeError(`unhashable type: '${typeName(key)}'`);
  return key;
}

function normalFloat(value: number): number | bigint {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(value) : value + 0;
}

const objectNumbers = new WeakMap<object, number>();
let objectCount = 0;

/** Maximum number of values, including nested ones, in a tuple used as key. Shared tuples can be exponentially large. */
const MAX_KEY_PARTS = 1000;

/** Returns a key inside a tuple as text. Two texts are equal if and only if the keys are. */
function keyText(key: Value, count: { parts: number }): string {
  if (++count.parts > MAX_KEY_PARTS) overBudget('values in a tuple used as a key', MAX_KEY_PARTS);
  if (key instanceof Tuple) return `(${key.items.map((item) => keyText(item, count)).join()})`;
  const normal = normalKey(key);
  if (typeof normal === 'string') return JSON.stringify(normal);
  if (typeof normal !== 'object' || normal === null) return String(normal);
  if (!objectNumbers.has(normal)) objectNumbers.set(normal, ++objectCount);
  return `#${objectNumbers.get(normal)}`;
}

/** A Python dict: insertion order, Python's equality of keys; the first of equal keys is stored. */
export class Dict {
  readonly #values = new Map<NormalKey, Value>();
  /** Original keys that differ from their normal form. */
  #originals: Map<NormalKey, Value> | null = null;

  static from(entries: Iterable<readonly [Value, Value]>): Dict {
    const dict = new Dict();
    for (const [key, value] of entries) dict.set(key, value);
    return dict;
  }

  get size(): number {
    return this.#values.size;
  }
  /** Adds an entry; only for new dicts, as templates see dicts as immutable. */
  set(key: Value, value: Value): void {
    const normal = normalKey(key);
    if (normal !== key && !this.#values.has(normal)) {
      this.#originals ??= new Map();
      this.#originals.set(normal, key);
    }
    this.#values.set(normal, value);
  }
  get(key: Value): Value | undefined {
    return this.#values.get(typeof key === 'string' && key.charCodeAt(0) !== 0 ? key : normalKey(key));
  }
  has(key: Value): boolean {
    return this.#values.has(normalKey(key));
  }
  *keys(): Generator<Value> {
    for (const normal of this.#values.keys()) yield this.#original(normal);
  }
  values(): IterableIterator<Value> {
    return this.#values.values();
  }
  *entries(): Generator<[Value, Value]> {
    for (const [normal, value] of this.#values) yield [this.#original(normal), value];
  }
  *reversedKeys(): Generator<Value> {
    for (const normal of [...this.#values.keys()].reverse()) yield this.#original(normal);
  }
  #original(normal: NormalKey): Value {
    const original = this.#originals?.get(normal);
    return original === undefined ? (normal as Value) : original;
  }
}
