/** The text of a parameter -> its value as JSON, in pieces. */
import type { Reading, TextReader } from '../text-reader.ts';
import { NOT_A_CALL } from './context.ts';
import { escapeJson } from './literal.ts';
import { valueToJson } from './parameter-values.ts';
import { isStringOnly, type ParameterTypes } from './schema-types.ts';

/** Reads the value of a parameter up to one of `ends`, which is returned: a string piece by piece, any other value as a whole. */
export function* readValue(
  reader: TextReader,
  emit: (json: string) => void,
  ends: readonly string[],
  types: ParameterTypes,
): Reading<string> {
  const isString = isStringOnly(types);
  let value = '';
  if (isString) emit('"');
  const take = (text: string): void => {
    if (isString) emit(escapeJson(text));
    else value += text;
  };
  const end = yield* reader.until(ends, take, Number.POSITIVE_INFINITY, 'dropped');
  if (end === null) throw NOT_A_CALL;
  emit(isString ? '"' : valueToJson(value, types));
  return end;
}
