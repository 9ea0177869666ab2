/** A text, list, tuple or range and a slice -> its part. */

import { indexOf } from './numbers.ts';
import { Range } from './objects.ts';
import { typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { isPlain } from './unicode.ts';
import { Dict, isList, Markup, Tuple, textOf, typeName, Undefined, type Value } from './values.ts';

const NO_INDEX = 'slice indices must be integers or None or have an __index__ method';

/** Returns one of the numbers of a slice. Raises if it is not an integer. */
export function sliceIndex(value: Value): number {
  return indexOf(value, () => NO_INDEX);
}

/** Returns `value[start:stop:step]`. Unlike `value[key]` it raises for values that cannot be sliced. */
export function getSlice(
  state: RenderState,
  value: Value,
  start: Value,
  stop: Value,
  stepValue: Value,
): Value {
  if (value instanceof Undefined) return value.fail();
  const step = stepValue === null ? 1 : sliceIndex(stepValue);
  if (step === 0) valueError('slice step cannot be zero');
  const text = textOf(value);
  if (text !== undefined) {
    const result = sliceText(state, text, start, stop, step);
    return value instanceof Markup ? new Markup(result) : result;
  }
  if (isList(value)) return sliceItems(state, value, start, stop, step);
  if (value instanceof Tuple) return new Tuple(sliceItems(state, value.items, start, stop, step));
  if (value instanceof Range) {
    const [from, to] = sliceBounds(value.count, start, stop, step);
    return new Range(value.at(from), value.at(to), value.step * step);
  }
  if (value instanceof Dict) return typeError("unhashable type: 'slice'");
  return typeError(`'${typeName(value)}' object is not subscriptable`);
}

function sliceText(state: RenderState, text: string, start: Value, stop: Value, step: number): string {
  state.scan(text.length);
  if (step !== 1 || !isPlain(text)) return sliceItems(state, [...text], start, stop, step).join('');
  const [from, to] = sliceBounds(text.length, start, stop, step);
  return state.made(text.slice(from, Math.max(from, to)));
}

function sliceItems<T>(
  state: RenderState,
  items: readonly T[],
  start: Value,
  stop: Value,
  step: number,
): T[] {
  const [from, to] = sliceBounds(items.length, start, stop, step);
  state.work(Math.ceil(Math.max(0, (to - from) / step)));
  if (step === 1) return items.slice(from, Math.max(from, to));
  const result: T[] = [];
  for (let i = from; step > 0 ? i < to : i > to; i += step) result.push(items[i]!);
  return result;
}

/** Returns start and end of a slice, as in Python's slice.indices(). */
export function sliceBounds(
  length: number,
  start: Value,
  stop: Value,
  step: number,
): [start: number, stop: number] {
  const lower = step > 0 ? 0 : -1;
  const upper = step > 0 ? length : length - 1;
  const clamp = (value: Value, fallback: number): number => {
    if (value === null) return fallback;
    if (value instanceof Undefined) return typeError(NO_INDEX);
    const index = sliceIndex(value);
    return index < 0 ? Math.max(lower, index + length) : Math.min(upper, index);
  };
  return [clamp(start, step > 0 ? lower : upper), clamp(stop, step > 0 ? upper : lower)];
}
