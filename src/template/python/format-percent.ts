/** A format and arguments -> text of `format % arguments`, for str and Markup. */
import { characterOf, floatBody } from './format-spec.ts';
import { type Int, indexOf, intOf, intText, isNumber, toDouble, truncate } from './numbers.ts';
import { typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { asciiRepr, escapeHtml, escapeValue, repr, toText } from './text.ts';
import { codePointLength } from './unicode.ts';
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

type Flags = {
  readonly left: boolean;
  readonly sign: string;
  readonly alternate: boolean;
  readonly zero: boolean;
  readonly width: number;
  readonly precision: number | null;
};

/** Returns the arguments one by one. */
class Arguments {
  readonly #items: readonly Value[];
  readonly mapping: Value | undefined;
  #used = 0;

  constructor(value: Value) {
    this.#items = value instanceof Tuple ? value.items : [value];
    this.mapping = isMapping(value) ? value : undefined;
  }
  next(): Value {
    if (this.#used >= this.#items.length) return typeError('not enough arguments for format string');
    return this.#items[this.#used++]!;
  }
  finish(): void {
    if (this.#used < this.#items.length && this.mapping === undefined)
      typeError('not all arguments converted during string formatting');
  }
}

function isMapping(value: Value): boolean {
  if (value instanceof Dict || isList(value) || value instanceof Undefined) return true;
  return value instanceof PyObject && value.isSubscriptable;
}

/** Formats `format % argument`. A Markup format escapes every argument and returns Markup. */
export function formatPercent(state: RenderState, format: string | Markup, argument: Value): Value {
  const isMarkup = format instanceof Markup;
  const text = isMarkup ? format.text : format;
  const args = new Arguments(argument);
  let result = '';
  let at = 0;
  for (;;) {
    const percent = text.indexOf('%', at);
    if (percent < 0) break;
    result += text.slice(at, percent);
    const piece = formatOne(state, text, percent + 1, args, isMarkup);
    result += piece.text;
    at = piece.end;
    state.reserve(piece.text.length);
    if (result.length > state.limits.maxValueCharacters) state.reserve(result.length);
  }
  args.finish();
  state.reserve(result.length + text.length - at);
  result += text.slice(at);
  return isMarkup ? new Markup(result) : result;
}

function formatOne(
  state: RenderState,
  text: string,
  start: number,
  args: Arguments,
  isMarkup: boolean,
): { text: string; end: number } {
  let at = start;
  const incomplete = (): never => valueError('incomplete format');
  let value: Value | undefined;
  if (text[at] === '(') {
    const [key, end] = readKey(text, at + 1);
    value = lookUp(args.mapping, key);
    at = end;
  }
  const flagStart = at;
  while (at < text.length && '-+ #0'.includes(text[at]!)) at++;
  const flags = text.slice(flagStart, at);
  const readCount = (): number | null => {
    if (text[at] === '*') {
      at++;
      const count = args.next();
      if (intOf(count) === undefined) return typeError('* wants int');
      return indexOf(count, () => '* wants int');
    }
    const digits = /\d*/y;
    digits.lastIndex = at;
    const match = digits.exec(text)![0];
    at += match.length;
    return match === '' ? null : Number(match);
  };
  const width = readCount() ?? 0;
  let precision: number | null = null;
  if (text[at] === '.') {
    at++;
    precision = Math.max(0, readCount() ?? 0);
  }
  if (at < text.length && 'hlL'.includes(text[at]!)) at++;
  if (at >= text.length) return incomplete();
  const code = text[at]!;
  if (Math.abs(width) > 64 || (precision ?? 0) > 64) state.reserve(Math.max(Math.abs(width), precision ?? 0));
  if (code === '%') return { text: '%', end: at + 1 };
  if (!'diouxXeEfFgGcrsa'.includes(code))
    return valueError(
      `unsupported format character '${code}' (0x${code.charCodeAt(0).toString(16)}) at index ${at}`,
    );
  const spec: Flags = {
    left: flags.includes('-') || width < 0,
    sign: flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '',
    alternate: flags.includes('#'),
    zero: flags.includes('0'),
    width: Math.abs(width),
    precision,
  };
  return {
    text: convert(state, code, spec, value === undefined ? args.next() : value, isMarkup),
    end: at + 1,
  };
}

function readKey(text: string, start: number): [key: string, end: number] {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth++;
    else if (text[at] === ')' && --depth === 0) return [text.slice(start, at), at + 1];
  }
  return valueError('incomplete format key');
}

function lookUp(mapping: Value | undefined, key: string): Value {
  if (mapping === undefined) return typeError('format requires a mapping');
  if (mapping instanceof Undefined) return mapping.fail();
  if (!(mapping instanceof Dict))
    return typeError(`${typeName(mapping)} indices must be integers or slices, not str`);
  const value = mapping.get(key);
  return value === undefined ? valueError(`KeyError: '${key}'`) : value;
}

function convert(state: RenderState, code: string, flags: Flags, value: Value, isMarkup: boolean): string {
  if (code === 's' || code === 'r' || code === 'a') {
    let text: string;
    if (code === 's') text = isMarkup ? escapeValue(state, value).text : toText(state, value);
    else {
      text = code === 'r' ? repr(state, value) : asciiRepr(state, value);
      if (isMarkup) text = escapeHtml(state, text);
    }
    if (flags.precision !== null) text = [...text].slice(0, flags.precision).join('');
    return pad(state, '', text, { ...flags, zero: false });
  }
  if (code === 'c') {
    const text = textOf(value);
    if (text !== undefined) {
      if (codePointLength(text) !== 1) typeError('%c requires int or char');
      return pad(state, '', text, { ...flags, zero: false });
    }
    const int = intOf(value);
    if (int === undefined || isMarkup) return typeError('%c requires int or char');
    return pad(state, '', characterOf(int), { ...flags, zero: false });
  }
  if ('eEfFgG'.includes(code)) return formatFloat(state, code, flags, value);
  return formatInt(state, code, flags, value);
}

function formatFloat(state: RenderState, code: string, flags: Flags, value: Value): string {
  if (value instanceof Undefined) value.fail();
  if (!isNumber(value)) return typeError(`must be real number, not ${typeName(value)}`);
  const x = toDouble(value);
  const isNegative = !Number.isNaN(x) && (x < 0 || Object.is(x, -0));
  const body = floatBody(state, Math.abs(x), code, flags.precision, flags.alternate);
  return pad(state, isNegative ? '-' : flags.sign, body, flags);
}

function formatInt(state: RenderState, code: string, flags: Flags, value: Value): string {
  let int: Int;
  if (value instanceof Undefined) value.fail();
  if (value instanceof PyFloat) {
    if ('oxX'.includes(code)) return typeError(`%${code} format: an integer is required, not float`);
    int = truncate(state, value.value);
  } else {
    const given = intOf(value);
    if (given === undefined) {
      const wanted = 'oxX'.includes(code) ? 'an integer' : 'a real number';
      return typeError(`%${code} format: ${wanted} is required, not ${typeName(value)}`);
    }
    int = given;
  }
  const absolute = int < 0 ? -int : int;
  let digits: string;
  let prefix = int < 0 ? '-' : flags.sign;
  if ('oxX'.includes(code)) {
    digits = absolute.toString(code === 'o' ? 8 : 16);
    if (code === 'X') digits = digits.toUpperCase();
    if (flags.alternate) prefix += `0${code}`;
  } else {
    digits = intText(absolute);
  }
  if (flags.precision !== null && flags.precision > digits.length)
    digits = digits.padStart(flags.precision, '0');
  return pad(state, prefix, digits, flags);
}

function pad(state: RenderState, prefix: string, body: string, flags: Flags): string {
  const missing = flags.width - codePointLength(prefix) - codePointLength(body);
  if (missing <= 0) return prefix + body;
  state.reserve(flags.width);
  if (flags.left) return prefix + body + ' '.repeat(missing);
  if (flags.zero) return prefix + '0'.repeat(missing) + body;
  return ' '.repeat(missing) + prefix + body;
}
