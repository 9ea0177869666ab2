/** The text of a parameter -> its value as JSON, in pieces. */
import type { Reading } from '../common/index.ts';
import { type CallContext, NOT_A_CALL } from './context.ts';
import { escapeJson } from './literal.ts';
import { isStringOnly, type ParameterTypes, valueToJson } from './parameter-values.ts';

/** Reads the value of a parameter up to one of `ends`, which is returned: a string piece by piece, any other value as a whole. */
export function* readValue(
  { reader, sink }: Pick<CallContext, 'reader' | 'sink'>,
  ends: readonly string[],
  types: ParameterTypes,
): Reading<string> {
  const isString = isStringOnly(types);
  let value = '';
  if (isString) sink.arguments('"');
  const take = (text: string): void => {
    if (isString) sink.arguments(escapeJson(text));
    else value += text;
  };
  const end = yield* reader.until(ends, take, Number.POSITIVE_INFINITY, true);
  if (end === null) throw NOT_A_CALL;
  sink.arguments(isString ? '"' : valueToJson(value, types));
  return end;
}
