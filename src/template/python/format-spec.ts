/** A value and a specification -> text of Python's `format(value, spec)`. */
import { exponentText, layOut, reprFloat, significantDigits, toFixed } from './float-text.ts';
import { type Int, intText, toDouble } from './numbers.ts';
import { typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { toText } from './text.ts';
import { codePointLength } from './unicode.ts';
import { PyFloat, textOf, typeName, Undefined, type Value } from './values.ts';

/** How a value is laid out. */
export type Spec = {
  readonly fill: string;
  readonly align: string; // '' if missing
  readonly sign: string;
  readonly coerceZero: boolean;
  readonly alternate: boolean;
  readonly width: number;
  readonly grouping: string;
  readonly precision: number | null;
  readonly type: string;
};

const SPEC = /^(?:(.)?([<>=^]))?([-+ ]?)(z?)(#?)(0?)(\d*)([,_]?)(?:\.(\d+))?(.?)$/su;

function parseSpec(state: RenderState, text: string, value: Value): Spec {
  const match = SPEC.exec(text);
  if (match === null) return valueError(`Invalid format specifier`);
  const [, fill, align, sign, coerceZero, alternate, zero, width, grouping, precision, type] = match;
  const bounded = (digits: string): number => {
    const count = Number(digits);
    if (count > state.limits.maxValueCharacters) state.reserve(count);
    return count;
  };
  return {
    fill: fill ?? (zero ? '0' : ' '),
    align: align ?? (zero && typeof value !== 'string' ? '=' : ''),
    sign: sign!,
    coerceZero: coerceZero !== '',
    alternate: alternate !== '',
    width: width === '' ? 0 : bounded(width!),
    grouping: grouping!,
    precision: precision === undefined ? null : bounded(precision),
    type: type!,
  };
}

/** `format(value, spec)`. */
export function formatValue(state: RenderState, value: Value, specText: string): string {
  if (specText === '') return toText(state, value);
  const text = textOf(value);
  if (text !== undefined) return formatText(state, text, parseSpec(state, specText, text));
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') {
    const spec = parseSpec(state, specText, value);
    const int = typeof value === 'boolean' ? Number(value) : value;
    if ('eEfFgG%'.includes(spec.type) && spec.type !== '') return formatFloat(state, toDouble(int), spec);
    return formatInt(state, int, spec);
  }
  if (value instanceof PyFloat) return formatFloat(state, value.value, parseSpec(state, specText, value));
  if (value instanceof Undefined)
    return typeError('unsupported format string passed to Undefined.__format__');
  return typeError(`unsupported format string passed to ${typeName(value)}.__format__`);
}

function formatText(state: RenderState, text: string, spec: Spec): string {
  if (spec.type !== '' && spec.type !== 's') unknownCode(spec.type, 'str');
  if (spec.sign !== '') valueError('Sign not allowed in string format specifier');
  if (spec.alternate) valueError('Alternate form (#) not allowed in string format specifier');
  if (spec.coerceZero)
    valueError("Negative zero coercion (z) not allowed in format specifier with presentation type 's'");
  if (spec.align === '=') valueError("'=' alignment not allowed in string format specifier");
  if (spec.grouping !== '') valueError(`Cannot specify '${spec.grouping}' with 's'.`);
  const cut = spec.precision === null ? text : [...text].slice(0, spec.precision).join('');
  return pad(state, '', cut, { ...spec, align: spec.align || '<' });
}

function unknownCode(code: string, type: string): never {
  return valueError(`Unknown format code '${code}' for object of type '${type}'`);
}

/** Pads `prefix + body` to the width. `=` pads between the two. */
export function pad(state: RenderState, prefix: string, body: string, spec: Spec): string {
  const missing = spec.width - codePointLength(prefix) - codePointLength(body);
  if (missing <= 0) return state.made(prefix + body);
  state.reserve(spec.width);
  const fill = (count: number): string => spec.fill.repeat(count);
  switch (spec.align) {
    case '<':
      return prefix + body + fill(missing);
    case '^':
      return fill(missing >> 1) + prefix + body + fill(missing - (missing >> 1));
    case '=':
      return prefix + fill(missing) + body;
    default:
      return fill(missing) + prefix + body;
  }
}

function signOf(isNegative: boolean, spec: Spec): string {
  return isNegative ? '-' : spec.sign === '-' ? '' : spec.sign;
}

/** Inserts separators, and leading zeros with separators. */
function group(state: RenderState, digits: string, spec: Spec, size: number, reserved: number): string {
  if (spec.grouping === '') return digits;
  state.reserve(digits.length * 2);
  const grouped = (text: string): string => {
    const parts: string[] = [];
    for (let end = text.length; end > 0; end -= size) parts.unshift(text.slice(Math.max(0, end - size), end));
    return parts.join(spec.grouping);
  };
  let result = grouped(digits);
  if (spec.fill === '0' && spec.align === '=') {
    const target = spec.width - reserved;
    if (target > result.length) state.reserve(target);
    let count = digits.length;
    // A digit may add a separator, so extend the digits and format again.
    if (result.length < target) {
      count = target - Math.floor(target / (size + 1));
      result = grouped(digits.padStart(count, '0'));
      if (result.length < target) result = grouped(digits.padStart(count + 1, '0'));
    }
  }
  return result;
}

const BASES: Readonly<Record<string, readonly [radix: number, prefix: string]>> = {
  b: [2, '0b'],
  o: [8, '0o'],
  x: [16, '0x'],
  X: [16, '0X'],
};

/** Formats an int with at least `minDigits` digits. */
export function formatInt(state: RenderState, value: Int, spec: Spec, minDigits = 0): string {
  if (spec.precision !== null) valueError('Precision not allowed in integer format specifier');
  if (spec.coerceZero)
    valueError('Negative zero coercion (z) not allowed in format specifier with integer presentation types');
  const withAlign = { ...spec, align: spec.align || '>' };
  if (spec.type === 'c') {
    if (spec.sign !== '') valueError("Sign not allowed with integer format specifier 'c'");
    if (spec.alternate) valueError("Alternate form (#) not allowed with integer format specifier 'c'");
    if (spec.grouping !== '') valueError(`Cannot specify '${spec.grouping}' with 'c'.`);
    return pad(state, '', characterOf(value), withAlign);
  }
  const absolute = value < 0 ? -value : value;
  const base = BASES[spec.type];
  if (base === undefined && !['', 'd', 'n'].includes(spec.type)) unknownCode(spec.type, 'int');
  if (base !== undefined && spec.grouping === ',') valueError(`Cannot specify ',' with '${spec.type}'.`);
  if (spec.type === 'n' && spec.grouping !== '') valueError(`Cannot specify '${spec.grouping}' with 'n'.`);
  let digits = base === undefined ? intText(absolute) : absolute.toString(base[0]);
  if (spec.type === 'X') digits = digits.toUpperCase();
  digits = digits.padStart(minDigits, '0');
  const prefix = signOf(value < 0, spec) + (spec.alternate && base !== undefined ? base[1] : '');
  return pad(state, prefix, group(state, digits, spec, base === undefined ? 3 : 4, prefix.length), withAlign);
}

/** `chr(value)`. */
export function characterOf(value: Int): string {
  if (value < 0 || value > 0x10ffff) throw valueError('%c arg not in range(0x110000)');
  return String.fromCodePoint(Number(value));
}

/** Formats a float by its presentation type. */
export function formatFloat(state: RenderState, x: number, spec: Spec): string {
  const withAlign = { ...spec, align: spec.align || '>' };
  const type = spec.type === 'n' ? 'g' : spec.type;
  if (!['', 'e', 'E', 'f', 'F', 'g', 'G', '%'].includes(type)) unknownCode(spec.type, 'float');
  if (spec.type === 'n' && spec.grouping !== '') valueError(`Cannot specify '${spec.grouping}' with 'n'.`);
  const absolute = Math.abs(x);
  let isNegative = x < 0 || Object.is(x, -0);
  let body = floatBody(state, absolute, type, spec.precision, spec.alternate);
  if (spec.coerceZero && isNegative && !/[1-9]/.test(body)) isNegative = false;
  if (Number.isNaN(x)) isNegative = false;
  const prefix = signOf(isNegative, spec);
  const match = /^(\d+)(.*)$/s.exec(body);
  if (match !== null) body = group(state, match[1]!, spec, 3, prefix.length + match[2]!.length) + match[2]!;
  return pad(state, prefix, body, withAlign);
}

/** Digits of a non-negative float for one presentation type. '' is repr with at least one decimal. */
function floatBody(
  state: RenderState,
  x: number,
  type: string,
  precision: number | null,
  alternate: boolean,
): string {
  const isUpper = type === 'E' || type === 'F' || type === 'G';
  const percent = type === '%' ? '%' : '';
  if (!Number.isFinite(x)) {
    const name = Number.isNaN(x) ? 'nan' : 'inf';
    return (isUpper ? name.toUpperCase() : name) + percent;
  }
  if (precision !== null) state.reserve(precision + 400);
  if (precision !== null && precision > 5000) state.work(precision);
  const text = finiteBody(x, type.toLowerCase(), precision, alternate);
  return (isUpper ? text.toUpperCase() : text) + percent;
}

/** Maximum number of significant digits of a double; further digits are zeros. */
const MAX_SIGNIFICANT_DIGITS = 1100;

function finiteBody(x: number, type: string, precision: number | null, alternate: boolean): string {
  if (type === '' && precision === null) {
    const text = reprFloat(x);
    return alternate && !text.includes('.') ? text.replace('e', '.e') : text;
  }
  if (type === 'f' || type === '%') {
    const places = precision ?? 6;
    const exact = Math.min(places, MAX_SIGNIFICANT_DIGITS);
    const value = type === '%' ? x * 100 : x;
    if (!Number.isFinite(value)) return 'inf';
    const text = toFixed(value, exact) + '0'.repeat(places - exact);
    return alternate && places === 0 ? `${text}.` : text;
  }
  if (type === 'e') {
    const places = precision ?? 6;
    const exact = Math.min(places, MAX_SIGNIFICANT_DIGITS);
    const [digits, exponent] = significantDigits(x, exact + 1);
    const rest = digits.slice(1) + '0'.repeat(places - exact);
    return `${digits[0]}${rest !== '' || alternate ? '.' : ''}${rest}${exponentText(exponent)}`;
  }
  // 'g', and '' with a precision: like 'g' with at least one decimal
  const wanted = precision === 0 ? 1 : (precision ?? 6);
  const count = Math.min(wanted, MAX_SIGNIFICANT_DIGITS);
  const [significant, exponent] = x === 0 ? ['0'.repeat(count), 0] : significantDigits(x, count);
  const padded = significant + '0'.repeat(wanted - count);
  const digits = alternate ? padded : padded.replace(/0+$/, '') || '0';
  const text = layOut(digits, exponent, type === '' ? wanted - 1 : wanted, type === '');
  return alternate && !text.includes('.') ? text.replace(/(?=e|$)/, '.') : text;
}
