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
  return new Converter(name).convert(input, 0);
}

class Converter {
  /** Complete copies of objects, so that shared objects stay shared. */
  readonly #copies = new Map<object, Value>();
  /** The objects around the current value, and where in them it is. */
  readonly #around: object[] = [];
  readonly #path: unknown[];
  #count = 0;

  constructor(name: string) {
    this.#path = [name];
  }

  convert(input: unknown, depth: number): Value {
    if (++this.#count > MAX_INPUT_VALUES) this.#refuse(`more than ${MAX_INPUT_VALUES} values`, depth);
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
        return input === null ? null : this.#object(input, depth);
      default:
        return this.#refuse(`a ${typeof input}`, depth);
    }
  }

  #object(input: object, depth: number): Value {
    const known = this.#copies.get(input);
    if (known !== undefined) return known;
    if (depth >= MAX_INPUT_DEPTH) {
      const isCycle = this.#around.lastIndexOf(input, depth - 1) >= 0;
      this.#refuse(
        isCycle ? 'an object that holds itself' : `more than ${MAX_INPUT_DEPTH} levels of nesting`,
        depth,
      );
    }
    this.#around[depth] = input;
    const copy = Array.isArray(input) ? this.#array(input, depth + 1) : this.#dict(input, depth + 1);
    this.#copies.set(input, copy);
    return copy;
  }

  #array(input: readonly unknown[], depth: number): Value {
    const items: Value[] = [];
    for (let i = 0; i < input.length; i++) {
      this.#path[depth] = i;
      items.push(this.convert(input[i], depth));
    }
    return items;
  }

  #dict(input: object, depth: number): Value {
    const dict = new Dict();
    if (input instanceof Map) {
      for (const [key, value] of input) {
        if (typeof key !== 'string' && typeof key !== 'number' && typeof key !== 'boolean' && key !== null)
          this.#refuse(`a key of type ${typeof key}`, depth - 1);
        this.#path[depth] = key;
        if (value !== undefined) dict.set(this.convert(key, depth), this.convert(value, depth));
      }
      return dict;
    }
    const prototype: unknown = Object.getPrototypeOf(input);
    // Object.prototype of any realm has no prototype of its own.
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
      this.#refuse('an instance of a class', depth - 1);
    for (const key of Object.keys(input)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(input, key)!;
      this.#path[depth] = key;
      if (get !== undefined || set !== undefined) this.#refuse('an accessor', depth);
      if (value !== undefined) dict.set(key, this.convert(value, depth));
    }
    return dict;
  }

  #refuse(got: string, depth: number): never {
    const path = this.#path.slice(0, depth + 1).join('.');
    const msg = `${path}: expected plain data (null, boolean, number, string, array, object or Map), got ${got}`;
    throw new OnpolicyError('INVALID_REQUEST', msg, {
      detail: [{ loc: path.split('.'), msg, type: 'type' }],
    });
  }
}

function numberValue(input: number): Value {
  if (Number.isSafeInteger(input)) return input + 0; // + 0: an int has no negative zero
  if (Number.isInteger(input) && Math.abs(input) < MAX_PLAIN_INTEGER) return BigInt(input);
  return new PyFloat(input);
}
