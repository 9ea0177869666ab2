/** A value -> its items: iter(), len(), reversed() and tuple unpacking of Python. */
import { typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { codePointLength } from './unicode.ts';
import { Dict, isList, Markup, PyObject, Tuple, textOf, typeName, Undefined, type Value } from './values.ts';

/** Returns the items of an iterable, or undefined if the value is not iterable. The items of text are code points. */
export function tryIterate(state: RenderState, value: Value): Iterable<Value> | undefined {
  if (isList(value)) return value;
  if (typeof value === 'string') return value;
  if (value === null || typeof value !== 'object') return undefined;
  if (value instanceof Dict) return value.keys();
  if (value instanceof Tuple) return value.items;
  if (value instanceof Undefined) return nothing(value);
  if (value instanceof Markup) return value.text; // the items of a str subclass are plain str
  return value instanceof PyObject ? value.iterate?.(state) : undefined;
}

function nothing(value: Undefined): readonly Value[] {
  value.useAsEmpty();
  return [];
}

export function iterate(state: RenderState, value: Value): Iterable<Value> {
  return tryIterate(state, value) ?? typeError(`'${typeName(value)}' object is not iterable`);
}

/** Returns `list(value)` and counts every item as work. */
export function toList(state: RenderState, value: Value): Value[] {
  const items = iterate(state, value);
  if (Array.isArray(items)) {
    state.work(items.length);
    return [...items];
  }
  const list: Value[] = [];
  for (const item of items) {
    state.step();
    list.push(item);
  }
  return list;
}

/** Returns `len(value)`, or undefined if the value has no length. */
export function tryLength(state: RenderState, value: Value): number | undefined {
  const text = textOf(value);
  if (text !== undefined) {
    state.scan(text.length);
    return codePointLength(text);
  }
  if (isList(value)) return value.length;
  if (value instanceof Dict) return value.size;
  if (value instanceof Tuple) return value.items.length;
  if (value instanceof Undefined) return 0;
  return value instanceof PyObject ? value.length?.(state) : undefined;
}

export function length(state: RenderState, value: Value): number {
  return tryLength(state, value) ?? typeError(`object of type '${typeName(value)}' has no len()`);
}

/** Returns the items from last to first, or undefined if Python's reversed() raises. */
export function tryReversed(state: RenderState, value: Value): Iterable<Value> | undefined {
  const text = textOf(value);
  if (text !== undefined) {
    state.work(text.length >> 2);
    const characters = [...text].reverse();
    // Python reverses by index, which keeps Markup, unlike iteration.
    return value instanceof Markup ? characters.map((char) => new Markup(char)) : characters;
  }
  if (isList(value)) return backwards(value);
  if (value instanceof Tuple) return backwards(value.items);
  if (value instanceof Dict) return value.reversedKeys();
  if (value instanceof Undefined) return nothing(value);
  return value instanceof PyObject ? value.reversed?.(state) : undefined;
}

function* backwards(items: readonly Value[]): Generator<Value> {
  for (let i = items.length - 1; i >= 0; i--) yield items[i]!;
}

/** Returns the items of a value, for `a, b = value`. Raises unless there are exactly `count`. */
export function unpack(state: RenderState, value: Value, count: number): readonly Value[] {
  const items = tryIterate(state, value);
  if (items === undefined) return typeError(`cannot unpack non-iterable ${typeName(value)} object`);
  const taken: Value[] = [];
  for (const item of items) {
    if (taken.length === count) valueError(`too many values to unpack (expected ${count})`);
    taken.push(item);
  }
  if (taken.length < count)
    valueError(`not enough values to unpack (expected ${count}, got ${taken.length})`);
  return taken;
}
