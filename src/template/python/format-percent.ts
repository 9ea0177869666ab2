/** A format and arguments -> text of `format % arguments`, for str and Markup. */
import { characterOf, formatFloat, formatInt, pad, type Spec } from './format-spec.ts';
import { indexOf, intOf, isNumber, toDouble, truncate } from './numbers.ts';
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
  const isLeft = flags.includes('-') || width < 0;
  const spec: Spec = {
    fill: flags.includes('0') && !isLeft ? '0' : ' ',
    align: isLeft ? '<' : flags.includes('0') ? '=' : '>',
    sign: flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '',
    coerceZero: false,
    alternate: flags.includes('#'),
    width: Math.abs(width),
    grouping: '',
    precision,
    type: code,
  };
  return { text: convert(state, spec, value === undefined ? args.next() : value, isMarkup), end: at + 1 };
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

function convert(state: RenderState, spec: Spec, value: Value, isMarkup: boolean): string {
  const { type } = spec;
  if ('rsac'.includes(type)) {
    const text = type === 'c' ? character(value, isMarkup) : textFor(state, type, value, isMarkup);
    const cut = type === 'c' || spec.precision === null ? text : [...text].slice(0, spec.precision).join('');
    return pad(state, '', cut, { ...spec, fill: ' ' });
  }
  if (value instanceof Undefined) value.fail();
  if ('eEfFgG'.includes(type)) {
    if (!isNumber(value)) return typeError(`must be real number, not ${typeName(value)}`);
    return formatFloat(state, toDouble(value), spec);
  }
  const isDecimal = !'oxX'.includes(type);
  const int = value instanceof PyFloat && isDecimal ? truncate(state, value.value) : intOf(value);
  if (int === undefined)
    return typeError(
      `%${type} format: ${isDecimal ? 'a real number' : 'an integer'} is required, not ${typeName(value)}`,
    );
  return formatInt(
    state,
    int,
    { ...spec, type: isDecimal ? 'd' : type, precision: null },
    spec.precision ?? 0,
  );
}

function textFor(state: RenderState, type: string, value: Value, isMarkup: boolean): string {
  if (type === 's') return isMarkup ? escapeValue(state, value).text : toText(state, value);
  const text = type === 'r' ? repr(state, value) : asciiRepr(state, value);
  return isMarkup ? escapeHtml(state, text) : text;
}

function character(value: Value, isMarkup: boolean): string {
  const text = textOf(value);
  const int = intOf(value);
  if (text === undefined && int !== undefined && !isMarkup) return characterOf(int);
  return text !== undefined && codePointLength(text) === 1 ? text : typeError('%c requires int or char');
}
