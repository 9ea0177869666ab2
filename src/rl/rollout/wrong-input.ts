/** A wrong value and its path -> an error that names it. */
import type { OnpolicyError } from '../../errors.ts';
import { fault, invalidRequest } from '../../protocol/index.ts';

/** Returns the error of a value at `loc` that differs from what was expected. */
export function wrongInput(loc: readonly string[], expected: string, input: unknown): OnpolicyError {
  return invalidRequest({ listed: [fault(loc, 'value', expected, input)], count: 1 });
}
