/** A value and a specification -> text of Python's `format(value, spec)`. */
import { reprFloat, toFixed } from './float-text.ts';
import { type Int, intOf, intText, isNumber, toDouble } from './numbers.ts';
import { typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { toText } from './text.ts';
import { codePointLength } from './unicode.ts';
import { PyFloat, textOf, typeName, type Value } from './values.ts';

export type Spec = {
  readonly fill: string;
  readonly align: string; // '' if missing
  readonly sign: string;
  readonly alternate: boolean;
  readonly width: number;
  readonly grouping: string;
  readonly precision: number | null;
  readonly type: string;
};

const SPEC = /^(?:(.)?([<>=^]))?([-+ ]?)(#?)(0?)(\d*)([,_]?)(?:\.(\d+))?(.?)$/su;

/** `format(value, spec)`. */
export function formatValue(state: RenderState, value: Value, specText: string): string {
  if (specText === '') return toText(state, value);
  const text = textOf(value);
  if (text === undefined && !isNumber(value))
    return typeError(`unsupported format string passed to ${typeName(value)}.__format__`);
  const match = SPEC.exec(specText) ?? valueError('Invalid format specifier');
  const [, fill, align, sign = '', alternate, zero, width, grouping = '', precision, type = ''] = match;
  const spec = {
    fill: fill ?? (zero ? '0' : ' '),
    align: align ?? (text !== undefined ? '<' : zero ? '=' : ''),
    sign,
    alternate: alternate !== '',
    width: Number(width),
    grouping,
    precision: precision === undefined ? null : Number(precision),
    type,
  };
  if (text !== undefined) return formatText(state, text, spec);
  if (value instanceof PyFloat || (type !== '' && 'fF%'.includes(type)))
    return formatFloat(state, toDouble(value as Int | PyFloat), spec);
  return formatInt(state, intOf(value)!, spec);
}

function formatText(state: RenderState, text: string, spec: Spec): string {
  if (spec.type !== '' && spec.type !== 's') unknownCode(spec.type, 'str');
  const wrong = spec.sign || spec.grouping || (spec.alternate ? '#' : spec.align === '=' ? '=' : '');
  if (wrong !== '') valueError(`'${wrong}' not allowed in string format specifier`);
  return padText(state, text, spec);
}

export function padText(state: RenderState, text: string, spec: Spec): string {
  return pad(state, '', spec.precision === null ? text : [...text].slice(0, spec.precision).join(''), spec);
}

function unknownCode(code: string, type: string): never {
  return valueError(`Unknown format code '${code}' for object of type '${type}'`);
}

/** Pads `prefix + body` to the width. `=` pads between the two. */
function pad(state: RenderState, prefix: string, body: string, spec: Spec): string {
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

function group(digits: string, { grouping, fill, align, width }: Spec): string {
  if (grouping === '') return digits;
  if (fill === '0' && align === '=' && width > digits.length)
    valueError(`zeros with '${grouping}' between them are not supported in chat templates`);
  return digits.replace(/\B(?=(?:\d{3})+$)/g, grouping);
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
  const base = BASES[spec.type];
  if (base === undefined && spec.type !== '' && spec.type !== 'd') unknownCode(spec.type, 'int');
  if (base !== undefined && spec.grouping !== '')
    valueError(`Cannot specify '${spec.grouping}' with '${spec.type}'.`);
  const absolute = value < 0 ? -value : value;
  let digits = base === undefined ? intText(absolute) : absolute.toString(base[0]);
  if (spec.type === 'X') digits = digits.toUpperCase();
  const prefix = signOf(value < 0, spec) + (spec.alternate && base !== undefined ? base[1] : '');
  return pad(state, prefix, group(digits.padStart(minDigits, '0'), spec), spec);
}

/** Formats a float: as its repr, or with a fixed number of places. */
export function formatFloat(state: RenderState, x: number, spec: Spec): string {
  const { type, precision, alternate } = spec;
  if (!['', 'f', 'F', '%'].includes(type)) unknownCode(type, 'float');
  if (type === '' && (precision !== null || alternate))
    valueError('a precision without the format code f is not supported in chat templates');
  const size = Math.abs(type === '%' ? x * 100 : x);
  let body = reprFloat(size);
  if (type === 'F') body = body.toUpperCase();
  if (type !== '' && Number.isFinite(size)) {
    const places = precision ?? 6;
    state.reserve(places + 400);
    if (places > 5000) state.work(places);
    body = toFixed(size, places) + (alternate && places === 0 ? '.' : '');
  }
  const grouped = body.replace(/^\d+/, (digits) => group(digits, spec));
  return pad(state, signOf(x < 0 || Object.is(x, -0), spec), grouped + (type === '%' ? '%' : ''), spec);
}
