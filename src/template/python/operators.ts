/** Template values -> results of the operators `+ - * / // % ** ~` and unary `+ -`. */

import { formatPercent } from './format-percent.ts';
import { arithmetic, isNumber, negate } from './numbers.ts';
import { typeError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { escapeValue, toText } from './text.ts';
import { isList, Markup, Tuple, textOf, typeName, Undefined, type Value } from './values.ts';

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**';

export function operate(state: RenderState, operator: ArithmeticOperator, a: Value, b: Value): Value {
  if (isNumber(a) && isNumber(b)) return arithmetic(state, operator, a, b);
  if (operator === '+') return add(state, a, b);
  if (operator === '*') {
    const product = repeat(state, a, b) ?? repeat(state, b, a);
    if (product !== undefined) return product;
  }
  if (operator === '%' && (typeof a === 'string' || a instanceof Markup)) return formatPercent(state, a, b);
  return unsupported(operator, a, b);
}

function unsupported(operator: string, a: Value, b: Value): never {
  if (a instanceof Undefined) a.fail();
  if (b instanceof Undefined) b.fail();
  const [left, right] = [typeName(a), typeName(b)];
  if (operator === '+' && ['str', 'list', 'tuple'].includes(left))
    return typeError(`can only concatenate ${left} (not "${right}") to ${left}`);
  const name = operator === '**' ? '** or pow()' : operator;
  return typeError(`unsupported operand type(s) for ${name}: '${left}' and '${right}'`);
}

export function add(state: RenderState, a: Value, b: Value): Value {
  if (typeof a === 'string' && typeof b === 'string') {
    state.reserve(a.length + b.length);
    return a + b;
  }
  if (isNumber(a) && isNumber(b)) return arithmetic(state, '+', a, b);
  if (textOf(a) !== undefined && textOf(b) !== undefined)
    return new Markup(state.made(escapeValue(state, a).text + escapeValue(state, b).text));
  if (isList(a) && isList(b)) {
    state.work(a.length + b.length);
    return [...a, ...b];
  }
  if (!(a instanceof Tuple && b instanceof Tuple)) return unsupported('+', a, b);
  state.work(a.items.length + b.items.length);
  return new Tuple([...a.items, ...b.items]);
}

/** Returns `sequence * count`, or undefined for other operands. */
function repeat(state: RenderState, sequence: Value, count: Value): Value | undefined {
  const text = textOf(sequence);
  const items = isList(sequence) ? sequence : sequence instanceof Tuple ? sequence.items : undefined;
  if (text === undefined && items === undefined) return undefined;
  if (typeof count !== 'number' && typeof count !== 'boolean' && typeof count !== 'bigint') {
    if (count instanceof Undefined) count.fail();
    return typeError(`can't multiply sequence by non-int of type '${typeName(count)}'`);
  }
  const times = Math.max(0, Number(count));
  if (text !== undefined) {
    if (text === '' || times === 0) return sequence instanceof Markup ? new Markup('') : '';
    state.reserve(text.length * times);
    const result = text.repeat(times);
    return sequence instanceof Markup ? new Markup(result) : result;
  }
  const length = items!.length * times;
  if (length === 0) return isList(sequence) ? [] : new Tuple([]);
  state.work(length);
  const result: Value[] = [];
  for (let i = 0; i < times; i++) for (const item of items!) result.push(item);
  return isList(sequence) ? result : new Tuple(result);
}

export function negative(state: RenderState, value: Value): Value {
  if (isNumber(value)) return negate(state, value);
  if (value instanceof Undefined) value.fail();
  return typeError(`bad operand type for unary -: '${typeName(value)}'`);
}

export function positive(_state: RenderState, value: Value): Value {
  if (isNumber(value)) return typeof value === 'boolean' ? Number(value) : value;
  if (value instanceof Undefined) value.fail();
  return typeError(`bad operand type for unary +: '${typeName(value)}'`);
}

/** Returns `a ~ b ~ c`: the concatenated texts, as plain str. */
export function concatenate(state: RenderState, values: readonly Value[]): Value {
  let text = '';
  for (const value of values) text += toText(state, value);
  return state.made(text);
}
