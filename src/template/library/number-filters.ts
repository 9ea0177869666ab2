/** A number -> the result of a filter. */
import { truth } from '../python/compare.ts';
import { toFixed } from '../python/float-text.ts';
import {
  arithmetic,
  countOf,
  fromDouble,
  type Int,
  intOf,
  isNumber,
  parseFloatText,
  parseInteger,
  roundNumber,
  toDouble,
  truncate,
} from '../python/numbers.ts';
import { typeError, valueError } from '../python/py-error.ts';
import { Table } from '../python/table.ts';
import { toText } from '../python/text.ts';
import { PyFloat, textOf, typeName, Undefined } from '../python/values.ts';

export const NUMBER_FILTERS = new Table();

NUMBER_FILTERS.add('abs', '', (state, value) => {
  if (value instanceof Undefined) value.fail();
  if (!isNumber(value)) return typeError(`bad operand type for abs(): '${typeName(value)}'`);
  if (value instanceof PyFloat) return new PyFloat(Math.abs(value.value));
  const int = intOf(value)!;
  return int < 0 ? arithmetic(state, '-', 0, int) : int;
});
NUMBER_FILTERS.add('round', 'precision? method?', (state, value, [precision, method]) => {
  const how = method === undefined ? 'common' : textOf(method);
  if (how !== 'common' && how !== 'ceil' && how !== 'floor')
    return valueError('method must be common, ceil or floor');
  if (value instanceof Undefined) value.fail();
  if (!isNumber(value)) return typeError(`type ${typeName(value)} doesn't define __round__ method`);
  const places = precision === undefined ? 0 : precision;
  if (how === 'common')
    return roundNumber(state, typeof value === 'boolean' ? Number(value) : value, countOf(places));
  if (!isNumber(places))
    return typeError(`unsupported operand type(s) for **: 'int' and '${typeName(places)}'`);
  const unit = arithmetic(state, '**', 10, places) as Int | PyFloat;
  const scaled = arithmetic(state, '*', value, unit) as Int | PyFloat;
  let whole: Int;
  if (scaled instanceof PyFloat) {
    if (!Number.isFinite(scaled.value)) return truncate(state, scaled.value);
    whole = fromDouble(state, how === 'ceil' ? Math.ceil(scaled.value) : Math.floor(scaled.value));
  } else whole = scaled;
  return arithmetic(state, '/', whole, unit);
});
NUMBER_FILTERS.add('int', 'default? base?', (state, value, [fallback = 0, base = 10]) => {
  if (value instanceof Undefined) value.fail();
  if (value instanceof PyFloat) return Number.isNaN(value.value) ? fallback : truncate(state, value.value);
  const text = textOf(value);
  if (text === undefined) return intOf(value) ?? fallback;
  const int = parseInteger(state, text, countOf(base));
  if (int !== undefined) return int;
  const float = parseFloatText(text);
  return float !== undefined && Number.isFinite(float) ? truncate(state, float) : fallback;
});
NUMBER_FILTERS.add('float', 'default?', (_state, value, [fallback = new PyFloat(0)]) => {
  if (value instanceof Undefined) value.fail();
  if (isNumber(value)) return new PyFloat(toDouble(value));
  const float = parseFloatText(textOf(value) ?? '');
  return float === undefined ? fallback : new PyFloat(float);
});
NUMBER_FILTERS.add('filesizeformat', 'binary?', (state, value, [binary]) => {
  const text = textOf(value);
  if (text === undefined && !isNumber(value))
    return value instanceof Undefined
      ? value.fail()
      : typeError(`float() argument must be a string or a real number, not '${typeName(value)}'`);
  const bytes = text === undefined ? toDouble(value as Int | PyFloat) : parseFloatText(text);
  if (bytes === undefined) return valueError(`could not convert string to float: '${text!.slice(0, 100)}'`);
  const isBinary = binary !== undefined && truth(state, binary);
  const base = isBinary ? 1024 : 1000;
  if (bytes === 1) return '1 Byte';
  if (bytes < base) return `${toText(state, truncate(state, bytes))} Bytes`;
  const letters = isBinary ? 'KMGTPEZY' : 'kMGTPEZY';
  const last = letters.length - 1;
  let power = 0;
  while (power < last && !(bytes < base ** (power + 2))) power++;
  const amount = (base * bytes) / base ** (power + 2);
  const shown = Number.isFinite(amount) ? toFixed(amount, 1) : Number.isNaN(amount) ? 'nan' : 'inf';
  return `${shown} ${letters[power]}${isBinary ? 'iB' : 'B'}`;
});
