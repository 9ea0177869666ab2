/** The text of a parameter and the types that its schema allows -> JSON, for families without types in the text. */

import { parseJson } from '../../common/index.ts';
import { type Reading, TextReader } from '../text-reader.ts';
import { PYTHON, readLiteral } from './literal.ts';
import { isNumberText, numberToJson } from './numbers.ts';
import { type ParameterTypes, typeOfJson } from './schema-types.ts';

/**
 * Returns the JSON text of a value. Text that fits no type becomes a string. If the schema does not ask for a number, text is a number
 * only if JSON writes it in exactly this way, so that no digit is lost.
 */
export function valueToJson(text: string, types: ParameterTypes): string {
  const trimmed = text.trim();
  if (isNumberText(trimmed)) return numberToJson(trimmed, types, isExact) ?? JSON.stringify(text);
  const json = literalToJson(trimmed);
  if (json === null) return JSON.stringify(text);
  const type = typeOfJson(json);
  const isAllowed = types === null ? type !== 'string' : types.has(type);
  return isAllowed || (type !== 'string' && !types?.has('string')) ? json : JSON.stringify(text);
}

function isExact(text: string): boolean {
  return JSON.stringify(Number(text)) === text;
}

function literalToJson(text: string): string | null {
  if (parseJson(text) !== undefined) return text;
  const lower = text.toLowerCase();
  if (lower === 'true' || lower === 'false' || lower === 'null') return lower;
  const reader = new TextReader();
  reader.push(text);
  reader.end();
  let json = '';
  const reading: Reading = readLiteral(reader, PYTHON, (piece) => {
    json += piece;
  });
  try {
    reading.next();
  } catch {
    return null;
  }
  return reader.isAtEnd() ? json : null;
}
