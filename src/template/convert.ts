/** The caller's JavaScript values -> template values, deeply copied. A template cannot reach objects of the caller. */
import { OnpolicyError } from '../errors.ts';
import { Dict, PyFloat, type Value } from './python/values.ts';

/** Maximum nesting of the caller's values. */
const MAX_INPUT_DEPTH = 100;
/** Maximum number of values in one variable. */
const MAX_INPUT_VALUES = 5_000_000;
/** Largest integral number that JavaScript writes without an exponent; larger numbers are floats. */
const MAX_PLAIN_INTEGER = 1e21;

/** Copies one value of the caller. `name` is used in error messages. */
export function toValue(input: unknown, name: string): Value {
  return new Converter().convert(input, name, 0);
}

class Converter {
  /** Copies of objects, so that shared objects stay shared; null while the copy is incomplete. */
  readonly #copies = new Map<object, Value | null>();

  #count = 0;

  convert(input: unknown, path: string, depth: number): Value {
    if (++this.#count > MAX_INPUT_VALUES) return refuse(path, `more than ${MAX_INPUT_VALUES} values`);
    switch (typeof input) {
      case 'string':
      case 'boolean':
        return input;
      case 'number':
        return numberValue(input);
      case 'bigint': {
        const small = Number(input);
        return Number.isSafeInteger(small) ? small : input;
      }
      case 'undefined':
        return null;
      case 'object':
        return input === null ? null : this.#object(input, path, depth);
      default:
        return refuse(path, `a ${typeof input}`);
    }
  }

  #object(input: object, path: string, depth: number): Value {
    const known = this.#copies.get(input);
    if (known === null) return refuse(path, 'an object that holds itself');
    if (known !== undefined) return known;
    if (depth >= MAX_INPUT_DEPTH) return refuse(path, `more than ${MAX_INPUT_DEPTH} levels of nesting`);
    this.#copies.set(input, null);
    const copy = Array.isArray(input)
      ? this.#array(input, path, depth)
      : input instanceof Map
        ? this.#map(input, path, depth)
        : this.#plain(input, path, depth);
    this.#copies.set(input, copy);
    return copy;
  }

  #array(input: readonly unknown[], path: string, depth: number): Value {
    const items: Value[] = [];
    for (let i = 0; i < input.length; i++) items.push(this.convert(input[i], `${path}.${i}`, depth + 1));
    return items;
  }

  #map(input: ReadonlyMap<unknown, unknown>, path: string, depth: number): Value {
    const dict = new Dict();
    for (const [key, value] of input) {
      if (typeof key !== 'string' && typeof key !== 'number' && typeof key !== 'boolean' && key !== null)
        return refuse(path, `a key of type ${typeof key}`);
      if (value !== undefined)
        dict.set(this.convert(key, path, depth), this.convert(value, `${path}.${String(key)}`, depth + 1));
    }
    return dict;
  }

  #plain(input: object, path: string, depth: number): Value {
    const prototype: unknown = Object.getPrototypeOf(input);
    // Object.prototype of any realm has no prototype of its own.
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
      return refuse(path, 'an instance of a class');
    const dict = new Dict();
    for (const key of Object.keys(input)) {
      const property = Object.getOwnPropertyDescriptor(input, key)!;
      if (property.get !== undefined || property.set !== undefined)
        return refuse(`${path}.${key}`, 'an accessor');
      if (property.value !== undefined)
        dict.set(key, this.convert(property.value, `${path}.${key}`, depth + 1));
    }
    return dict;
  }
}

function numberValue(input: number): Value {
  if (Number.isSafeInteger(input)) return input + 0; // + 0: an int has no negative zero
  if (Number.isInteger(input) && Math.abs(input) < MAX_PLAIN_INTEGER) return BigInt(input);
  return new PyFloat(input);
}

function refuse(path: string, got: string): never {
  const msg = `${path}: expected plain data (null, boolean, number, string, array, object or Map), got ${got}`;
  throw new OnpolicyError('INVALID_REQUEST', msg, {
    detail: [{ loc: path.split('.'), msg, type: 'type' }],
  });
}
