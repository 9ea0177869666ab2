/** The text of a number, in any form that models write -> JSON, without losing a digit. */
import type { ParameterTypes } from './schema-types.ts';

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const LOOSE_NUMBER = /^([-+]?)(\d[\d_]*)?(?:\.([\d_]*))?([eE][+-]?\d+)?$/;

/** Returns true if a text is a JSON number. */
export function isJsonNumber(text: string): boolean {
  return JSON_NUMBER.test(text);
}

/** Returns true if a text looks like a number to a reader, for example `007`, `+1` or `1_000`. */
export function isNumberText(text: string): boolean {
  return JSON_NUMBER.test(text) || (LOOSE_NUMBER.test(text) && /\d/.test(text));
}

/**
 * Returns the JSON of a text that {@link isNumberText} if the schema wants a number, or null if it is a string.
 * @param isNumber true if the text is a number even if the schema also allows strings, or anything
 */
export function numberToJson(
  text: string,
  types: ParameterTypes,
  isNumber: (text: string) => boolean,
): string | null {
  const allowsNumber = types === null || types.has('number') || types.has('integer');
  if (types === null || types.has('string')) return allowsNumber && isNumber(text) ? text : null;
  if (JSON_NUMBER.test(text)) return text;
  const [, sign, whole = '', fraction = '', exponent = ''] = LOOSE_NUMBER.exec(text)!;
  const digits = whole.replaceAll('_', '').replace(/^0+(?=\d)/, '') || '0';
  const rest = fraction.replaceAll('_', '');
  return (sign === '-' ? '-' : '') + digits + (rest === '' ? '' : `.${rest}`) + exponent;
}
