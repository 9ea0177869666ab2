/** Numbers -> results of Python's arithmetic on int (number or bigint), float (PyFloat) and bool. */
import { scaledInteger } from './float-text.ts';
import { strip } from './methods/str-search.ts';
import { overBudget, PyError, typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { SPACES } from './unicode.ts';
import { PyFloat, typeName, type Value } from './values.ts';

/** A Python int in either representation. */
export type Int = number | bigint;

/** Python's limit of digits when it converts integers from or to text. */
const MAX_TEXT_DIGITS = 4300;

/** Converts a bigint to a number if it is a safe integer. */
function fromBig(state: RenderState, value: bigint): Int {
  if (value >= -9007199254740991n && value <= 9007199254740991n) return Number(value);
  const limit = state.limits.maxIntegerBits;
  if (value >> BigInt(limit) !== 0n && value >> BigInt(limit) !== -1n)
    overBudget('bits of one integer', limit);
  state.work(4);
  return value;
}

/** Returns the value as an int if it is an int or a bool, otherwise undefined. */
export function intOf(value: Value): Int | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  return typeof value === 'boolean' ? Number(value) : undefined;
}

export function isNumber(value: Value): value is Int | boolean | PyFloat {
  const kind = typeof value;
  return kind === 'number' || kind === 'boolean' || kind === 'bigint' || value instanceof PyFloat;
}

/** Returns a number as a double. Raises for integers beyond its range. */
export function toDouble(value: Int | boolean | PyFloat): number {
  if (value instanceof PyFloat) return value.value;
  const double = Number(value);
  if (!Number.isFinite(double)) throw new PyError('OverflowError', 'int too large to convert to float');
  return double;
}

/** Returns an int or bool as an index, clamped to safe integers. */
export function indexOf(value: Value, message: () => string): number {
  const int = intOf(value);
  if (int === undefined) return typeError(message());
  if (typeof int === 'number') return int;
  return int > 0n ? Number.MAX_SAFE_INTEGER : -Number.MAX_SAFE_INTEGER;
}

/** Returns an int or bool as a count, for example a width. */
export function countOf(value: Value): number {
  return indexOf(value, () => `'${typeName(value)}' object cannot be interpreted as an integer`);
}

/** Returns a op b for two numbers, or undefined if the operator is not defined for them. */
export function arithmetic(
  state: RenderState,
  operator: '+' | '-' | '*' | '/' | '//' | '%' | '**',
  a: Int | boolean | PyFloat,
  b: Int | boolean | PyFloat,
): Value {
  if (a instanceof PyFloat || b instanceof PyFloat)
    return new PyFloat(floatOperation(operator, toDouble(a), toDouble(b)));
  const x = typeof a === 'boolean' ? Number(a) : a;
  const y = typeof b === 'boolean' ? Number(b) : b;
  switch (operator) {
    case '+':
    case '-':
    case '*':
      return combine(state, operator, x, y);
    case '/':
      if (y === 0) throw new PyError('ZeroDivisionError', 'division by zero');
      return new PyFloat(toDouble(x) / toDouble(y));
    case '//':
      return floorDivide(state, x, y);
    case '%':
      return modulo(state, x, y);
    case '**':
      return power(state, x, y);
  }
}

/** Adds, subtracts or multiplies, with bigints if the result is not a safe integer. */
function combine(state: RenderState, operator: '+' | '-' | '*', x: Int, y: Int): Int {
  if (typeof x === 'number' && typeof y === 'number') {
    const result = operator === '+' ? x + y : operator === '-' ? x - y : x * y;
    if (Number.isSafeInteger(result)) return result + 0; // + 0: an int has no negative zero
  }
  const [p, q] = [BigInt(x), BigInt(y)];
  return fromBig(state, operator === '+' ? p + q : operator === '-' ? p - q : p * q);
}

function floatOperation(operator: string, x: number, y: number): number {
  switch (operator) {
    case '+':
      return x + y;
    case '-':
      return x - y;
    case '*':
      return x * y;
    case '/':
      if (y === 0) throw new PyError('ZeroDivisionError', 'float division by zero');
      return x / y;
    case '//':
      if (y === 0) throw new PyError('ZeroDivisionError', 'float floor division by zero');
      return floatDivMod(x, y)[0];
    case '%':
      if (y === 0) throw new PyError('ZeroDivisionError', 'float modulo');
      return floatDivMod(x, y)[1];
    default:
      return floatPower(x, y);
  }
}

/** Python's float divmod: the remainder takes the sign of the divisor. */
function floatDivMod(x: number, y: number): [quotient: number, remainder: number] {
  let remainder = x % y;
  let quotient = (x - remainder) / y;
  if (remainder !== 0) {
    if (y < 0 !== remainder < 0) {
      remainder += y;
      quotient -= 1;
    }
  } else {
    remainder = y < 0 ? -0 : 0;
  }
  if (quotient === 0) return [x / y < 0 || Object.is(x / y, -0) ? -0 : 0, remainder];
  let floor = Math.floor(quotient);
  if (quotient - floor > 0.5) floor += 1;
  return [floor, remainder];
}

function floatPower(x: number, y: number): number {
  if (x === 0 && y < 0) throw new PyError('ZeroDivisionError', '0.0 cannot be raised to a negative power');
  if (x < 0 && Number.isFinite(x) && Number.isFinite(y) && !Number.isInteger(y))
    return valueError('complex numbers are not supported');
  const result = x ** y;
  if (!Number.isFinite(result) && Number.isFinite(x) && Number.isFinite(y))
    throw new PyError('OverflowError', "(34, 'Numerical result out of range')");
  return result;
}

function bitLength(value: bigint): number {
  return value.toString(2).length;
}

function floorDivide(state: RenderState, x: Int, y: Int): Int {
  if (y === 0) throw new PyError('ZeroDivisionError', 'integer division or modulo by zero');
  if (typeof x === 'number' && typeof y === 'number') {
    const rest = x % y;
    return (x - rest) / y - (rest !== 0 && rest < 0 !== y < 0 ? 1 : 0) + 0;
  }
  const remainder = BigInt(modulo(state, x, y));
  return fromBig(state, (BigInt(x) - remainder) / BigInt(y));
}

function modulo(state: RenderState, x: Int, y: Int): Int {
  if (y === 0) throw new PyError('ZeroDivisionError', 'integer modulo by zero');
  if (typeof x === 'number' && typeof y === 'number') {
    const remainder = x % y;
    return (remainder !== 0 && remainder < 0 !== y < 0 ? remainder + y : remainder) + 0;
  }
  const [p, q] = [BigInt(x), BigInt(y)];
  const remainder = p % q;
  return fromBig(state, remainder !== 0n && remainder < 0n !== q < 0n ? remainder + q : remainder);
}

function power(state: RenderState, x: Int, y: Int): Value {
  if (y < 0) {
    if (x === 0) throw new PyError('ZeroDivisionError', '0.0 cannot be raised to a negative power');
    return new PyFloat(floatPower(toDouble(x), toDouble(y)));
  }
  if (x === 0 || x === 1) return y === 0 ? 1 : x;
  if (x === -1) return BigInt(y) % 2n === 0n ? 1 : -1;
  const base = BigInt(x);
  const limit = state.limits.maxIntegerBits;
  if ((bitLength(base < 0n ? -base : base) - 1) * Number(y) > limit) overBudget('bits of one integer', limit);
  return fromBig(state, base ** BigInt(y));
}

export function negate(state: RenderState, value: Int | boolean | PyFloat): Value {
  if (value instanceof PyFloat) return new PyFloat(-value.value);
  if (typeof value === 'bigint') return fromBig(state, -value);
  return 0 - Number(value);
}

/** The text of an int. Raises beyond Python's digit limit. */
export function intText(value: Int): string {
  const text = String(value);
  if (text.length > MAX_TEXT_DIGITS && text.replace('-', '').length > MAX_TEXT_DIGITS)
    valueError(`Exceeds the limit (${MAX_TEXT_DIGITS} digits) for integer string conversion`);
  return text;
}

/** int(x) of a float: truncates. */
export function truncate(state: RenderState, x: number): Int {
  if (Number.isNaN(x)) return valueError('cannot convert float NaN to integer');
  if (!Number.isFinite(x)) throw new PyError('OverflowError', 'cannot convert float infinity to integer');
  return fromDouble(state, Math.trunc(x));
}

/** An integral double as int. */
export function fromDouble(state: RenderState, x: number): Int {
  return Number.isSafeInteger(x) ? x + 0 : fromBig(state, BigInt(x));
}

/** round(value, places): half to even on the exact value. */
export function roundNumber(state: RenderState, value: Int | PyFloat, places: number): Value {
  const isFloat = value instanceof PyFloat;
  const x = toDouble(value);
  if (!Number.isFinite(x) || x === 0 || places > 323 || (!isFloat && places >= 0)) return value;
  const scaled = scaledInteger(Math.abs(x), Math.max(places, -400)) * (x < 0 ? -1n : 1n);
  if (!isFloat) return fromBig(state, scaled * 10n ** BigInt(Math.min(-places, 400)));
  const rounded = scaled === 0n ? 0 * x : Number(`${scaled}e${-places}`); // 0 * x keeps the sign
  if (!Number.isFinite(rounded)) throw new PyError('OverflowError', 'rounded value too large to represent');
  return new PyFloat(rounded);
}

const PREFIXES: Readonly<Record<number, string>> = { 2: '0b', 8: '0o', 16: '0x' };

/** int(text, base); undefined where Python raises. */
export function parseInteger(state: RenderState, text: string, base: number): Int | undefined {
  const [, sign, written] = /^([+-]?)(\w+)$/.exec(strip(text, SPACES, true, true)) ?? [];
  if (written === undefined || base < 2 || base > 36) return undefined;
  let digits = written.toLowerCase();
  if (base in PREFIXES && digits.startsWith(PREFIXES[base]!)) digits = digits.slice(2).replace(/^_/, '');
  if (!/^[0-9a-z]+(?:_[0-9a-z]+)*$/.test(digits)) return undefined;
  digits = digits.replaceAll('_', '');
  if (digits.length > MAX_TEXT_DIGITS) return undefined;
  state.work(digits.length);
  let value = 0n;
  for (const digit of digits) {
    const digitValue = Number.parseInt(digit, 36);
    if (digitValue >= base) return undefined;
    value = value * BigInt(base) + BigInt(digitValue);
  }
  return fromBig(state, sign === '-' ? -value : value);
}

const FLOAT_TEXT = /^[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?$/;

/** float(text); undefined where Python raises. */
export function parseFloatText(text: string): number | undefined {
  if (text.length > 100_000) overBudget('digits of a number', 100_000);
  const trimmed = strip(text, SPACES, true, true);
  if (FLOAT_TEXT.test(trimmed)) return Number(trimmed.replaceAll('_', ''));
  const special = /^([+-]?)(?:(inf|infinity)|nan)$/i.exec(trimmed);
  if (special === null) return undefined;
  if (special[2] === undefined) return Number.NaN;
  return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
