/** Values -> equality, order, truth and membership. Counts each step, as shared structures can be exponentially large. */
import { intOf, isNumber } from './numbers.ts';
import { typeError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { compareText } from './unicode.ts';
import {
  Dict,
  isList,
  Markup,
  PyFloat,
  PyObject,
  Tuple,
  textOf,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

/** `bool(value)`. */
export function truth(state: RenderState, value: Value): boolean {
  if (typeof value === 'boolean') return value;
  if (value === null) return false;
  if (typeof value === 'string') return value.length > 0;
  if (typeof value === 'number') return value !== 0;
  if (typeof value === 'bigint') return true; // a bigint is beyond the safe integers, so it is not 0
  if (isList(value)) return value.length > 0;
  if (value instanceof Dict) return value.size > 0;
  if (value instanceof Undefined) return false;
  if (value instanceof PyFloat) return value.value !== 0;
  if (value instanceof Markup) return value.text.length > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  return value.length?.(state) !== 0;
}

function double(value: Value): number | bigint {
  return value instanceof PyFloat ? value.value : intOf(value)!;
}

/** Compares numbers. A bigint is beyond the safe integers, but a double may have the same value. */
function equalNumbers(a: number | bigint, b: number | bigint): boolean {
  if (typeof a === typeof b) return a === b;
  const [big, other] = typeof a === 'bigint' ? [a, Number(b)] : [BigInt(b), Number(a)];
  return Number.isInteger(other) && BigInt(other) === big;
}

export function equal(state: RenderState, a: Value, b: Value): boolean {
  state.step();
  if (typeof a === 'string' && typeof b === 'string' && a.length !== b.length) return false;
  if (isNumber(a)) return isNumber(b) && equalNumbers(double(a), double(b));
  const text = textOf(a);
  if (text !== undefined) {
    const other = textOf(b);
    if (other === undefined || text.length !== other.length) return false;
    state.scan(text.length);
    return text === other;
  }
  if (a === b) return true;
  if (a === null || b === null) return false;
  if (isList(a)) return isList(b) && equalItems(state, a, b);
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(state, a.items, b.items);
  if (a instanceof Dict) return b instanceof Dict && equalDicts(state, a, b);
  return a instanceof Undefined && b instanceof Undefined;
}

/** Compares items of containers. Identical objects are equal, as in Python. */
function same(state: RenderState, a: Value, b: Value): boolean {
  return a === b || equal(state, a, b);
}

function equalItems(state: RenderState, a: readonly Value[], b: readonly Value[]): boolean {
  if (a.length !== b.length) return false;
  state.enter();
  const result = a.every((item, index) => same(state, item, b[index]!));
  state.leave();
  return result;
}

function equalDicts(state: RenderState, a: Dict, b: Dict): boolean {
  if (a.size !== b.size) return false;
  state.enter();
  let result = true;
  for (const [key, value] of a.entries()) {
    const other = b.get(key);
    if (other === undefined || !same(state, value, other)) {
      result = false;
      break;
    }
  }
  state.leave();
  return result;
}

type OrderOperator = '<' | '<=' | '>' | '>=';

export function order(state: RenderState, operator: OrderOperator, a: Value, b: Value): boolean {
  state.step();
  if (isNumber(a) && isNumber(b)) return HOLDS[operator](double(a), double(b));
  const text = textOf(a);
  const other = textOf(b);
  if (text !== undefined && other !== undefined) {
    state.scan(Math.min(text.length, other.length));
    return HOLDS[operator](compareText(text, other), 0);
  }
  if (isList(a) && isList(b)) return orderItems(state, operator, a, b);
  if (a instanceof Tuple && b instanceof Tuple) return orderItems(state, operator, a.items, b.items);
  if (a instanceof Undefined) a.fail();
  if (b instanceof Undefined) b.fail();
  return typeError(`'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

const HOLDS: Readonly<Record<OrderOperator, (a: number | bigint, b: number | bigint) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
};

function orderItems(
  state: RenderState,
  operator: OrderOperator,
  a: readonly Value[],
  b: readonly Value[],
): boolean {
  const length = Math.min(a.length, b.length);
  state.enter();
  try {
    for (let i = 0; i < length; i++)
      if (!same(state, a[i]!, b[i]!)) return order(state, operator, a[i]!, b[i]!);
    return HOLDS[operator](a.length, b.length);
  } finally {
    state.leave();
  }
}

function contains(state: RenderState, haystack: Value, needle: Value): boolean {
  state.step();
  const text = textOf(haystack);
  if (text !== undefined) {
    const part = textOf(needle);
    if (part === undefined)
      return typeError(`'in <string>' requires string as left operand, not ${typeName(needle)}`);
    state.scan(text.length);
    return text.includes(part);
  }
  if (isList(haystack)) return haystack.some((item) => same(state, item, needle));
  if (haystack instanceof Tuple) return haystack.items.some((item) => same(state, item, needle));
  if (haystack instanceof Dict) return haystack.has(needle);
  if (haystack instanceof Undefined) return false;
  if (haystack instanceof PyObject && haystack.iterate) {
    for (const item of haystack.iterate(state)) if (same(state, item, needle)) return true;
    return false;
  }
  return typeError(`argument of type '${typeName(haystack)}' is not iterable`);
}

type Comparison = (state: RenderState, a: Value, b: Value) => boolean;

export const COMPARISONS = {
  '==': equal,
  '!=': (state, a, b) => !equal(state, a, b),
  '<': (state, a, b) => order(state, '<', a, b),
  '<=': (state, a, b) => order(state, '<=', a, b),
  '>': (state, a, b) => order(state, '>', a, b),
  '>=': (state, a, b) => order(state, '>=', a, b),
  in: (state, a, b) => contains(state, b, a),
  'not in': (state, a, b) => !contains(state, b, a),
} as const satisfies Record<string, Comparison>;

/** Returns `sorted(items, key=...)`. The sort is stable and uses only `<`; mixed types raise. */
export function sortBy(
  state: RenderState,
  items: readonly Value[],
  key: (item: Value) => Value,
  isReversed = false,
): Value[] {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  // Reversing twice keeps the order of equal items, as in Python.
  if (isReversed) keyed.reverse();
  keyed.sort((a, b) => (order(state, '<', b.key, a.key) ? 1 : order(state, '<', a.key, b.key) ? -1 : 0));
  if (isReversed) keyed.reverse();
  return keyed.map((entry) => entry.item);
}
