/** A format and arguments -> text of `format % arguments`, for str and Markup. */
import { formatFloat, formatInt, padText, type Spec } from './format-spec.ts';
import { intOf, isNumber, toDouble, truncate } from './numbers.ts';
import { Range } from './objects.ts';
import { typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { escapeHtml, replaceEach, repr, toText } from './text.ts';
import { Dict, isList, Markup, PyFloat, Tuple, typeName, Undefined, type Value } from './values.ts';

/** `%(key)flags width.precision code`; the code is empty at the end of the text. */
const PIECE = /%(?:\(([^()]*)\))?([-+ #0]*)(\d*)(?:\.(\d*))?[hlL]?(.?)/gs;

/** Formats `format % argument`. A Markup format escapes every argument and returns Markup. */
export function formatPercent(state: RenderState, format: string | Markup, argument: Value): Value {
  const isMarkup = format instanceof Markup;
  const items = argument instanceof Tuple ? argument.items : [argument];
  let used = 0;
  const text = isMarkup ? format.text : format;
  const result = replaceEach(state, text, PIECE, ([, key, flags = '', width, precision, type = '']) => {
    if (type === '') valueError('incomplete format');
    if (type === '%') return '%';
    if (!'diouxXfFrs'.includes(type)) valueError(`unsupported format character '${type}'`);
    if (key === undefined && used === items.length) typeError('not enough arguments for format string');
    const isLeft = flags.includes('-');
    const isFilled = flags.includes('0') && !isLeft;
    const spec = {
      fill: isFilled ? '0' : ' ',
      align: isLeft ? '<' : isFilled ? '=' : '>',
      sign: flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '',
      alternate: flags.includes('#'),
      width: Number(width),
      grouping: '',
      precision: precision === undefined ? null : Number(precision),
      type,
    };
    return convert(state, spec, key === undefined ? items[used++]! : lookUp(argument, key), isMarkup);
  });
  const isMapping = [Dict, Range, Undefined].some((kind) => argument instanceof kind) || isList(argument);
  if (used < items.length && !isMapping) typeError('not all arguments converted during string formatting');
  return isMarkup ? new Markup(result) : result;
}

function lookUp(mapping: Value, key: string): Value {
  if (mapping instanceof Undefined) return mapping.fail();
  if (!(mapping instanceof Dict)) return typeError('format requires a mapping');
  return mapping.get(key) ?? (mapping.has(key) ? null : valueError(`KeyError: '${key}'`));
}

function convert(state: RenderState, spec: Spec, value: Value, isMarkup: boolean): string {
  const { type } = spec;
  if (type === 's' || type === 'r') {
    const text = type === 'r' ? repr(state, value) : toText(state, value);
    const isSafe = !isMarkup || (type === 's' && value instanceof Markup);
    return padText(state, isSafe ? text : escapeHtml(state, text), { ...spec, fill: ' ' });
  }
  if (value instanceof Undefined) value.fail();
  if (type === 'f' || type === 'F') {
    if (!isNumber(value)) return typeError(`must be real number, not ${typeName(value)}`);
    return formatFloat(state, toDouble(value), spec);
  }
  const isDecimal = !'oxX'.includes(type);
  const int = value instanceof PyFloat && isDecimal ? truncate(state, value.value) : intOf(value);
  if (int === undefined)
    return typeError(
      `%${type} format: ${isDecimal ? 'a real number' : 'an integer'} is required, not ${typeName(value)}`,
    );
  const digits = spec.precision ?? 0;
  if (digits > 64) state.reserve(digits);
  return formatInt(state, int, { ...spec, type: isDecimal ? 'd' : type, precision: null }, digits);
}
