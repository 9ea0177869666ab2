/** The caller's JavaScript values -> template values, deeply copied. A template cannot reach objects of the caller. */
import { OnpolicyError } from '../errors.ts';
import { Dict, PyFloat, type Value } from './python/values.ts';

const MAX_INPUT_DEPTH = 100;
const MAX_INPUT_VALUES = 5_000_000;
/** Largest integral number that JavaScript writes without an exponent; larger numbers are floats. */
const MAX_PLAIN_INTEGER = 1e21;

/** Copies one value of the caller. `name` is used in error messages. */
export function toValue(input: unknown, name: string): Value {
  const path: unknown[] = [name];
  /** Copies of objects, so that shared objects stay shared. Null marks an object that contains the current value. */
  const copies = new Map<object, Value>();
  let count = 0;

  const refuse = (got: string): never => {
    const at = path.join('.');
    const msg = `${at}: expected plain data (null, boolean, number, string, array, object or Map), got ${got}`;
    throw new OnpolicyError('INVALID_REQUEST', msg, {
      detail: [{ loc: at.split('.'), msg, type: 'type' }],
    });
  };

  const convert = (value: unknown): Value => {
    if (++count > MAX_INPUT_VALUES) refuse(`more than ${MAX_INPUT_VALUES} values`);
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value;
      case 'number':
        return numberValue(value);
      case 'bigint': {
        const small = Number(value);
        return Number.isSafeInteger(small) ? small : value;
      }
      case 'undefined':
        return null;
      case 'object':
        return value === null ? null : copyObject(value);
      default:
        return refuse(`a ${typeof value}`);
    }
  };

  const inside = (key: unknown, value: unknown): Value => {
    path.push(key);
    const copy = convert(value);
    path.pop();
    return copy;
  };

  const copyObject = (object: object): Value => {
    const known = copies.get(object);
    if (known === null) refuse('an object that holds itself');
    if (known !== undefined) return known;
    if (path.length > MAX_INPUT_DEPTH) refuse(`more than ${MAX_INPUT_DEPTH} levels of nesting`);
    copies.set(object, null);
    const copy = Array.isArray(object) ? copyList(object) : copyDict(object);
    copies.set(object, copy);
    return copy;
  };

  const copyList = (list: readonly unknown[]): Value[] => {
    const items: Value[] = [];
    for (let i = 0; i < list.length; i++) items.push(inside(i, list[i]));
    return items;
  };

  const copyDict = (object: object): Dict => {
    const dict = new Dict();
    if (object instanceof Map) {
      for (const [key, value] of object) {
        if (typeof key !== 'string' && typeof key !== 'number' && typeof key !== 'boolean' && key !== null)
          refuse(`a key of type ${typeof key}`);
        if (value !== undefined) dict.set(convert(key), inside(key, value));
      }
      return dict;
    }
    const prototype: unknown = Object.getPrototypeOf(object);
    // The prototype of a plain object, of any realm, has no prototype.
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) refuse('an instance of a class');
    for (const key of Object.keys(object)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(object, key)!;
      if (get !== undefined || set !== undefined) {
        path.push(key);
        refuse('an accessor');
      }
      if (value !== undefined) dict.set(key, inside(key, value));
    }
    return dict;
  };

  return convert(input);
}

function numberValue(input: number): Value {
  if (Number.isSafeInteger(input)) return input + 0; // + 0: an int has no negative zero
  if (Number.isInteger(input) && Math.abs(input) < MAX_PLAIN_INTEGER) return BigInt(input);
  return new PyFloat(input);
}
