/** A wrong value and its path -> the error that names it. */
import type { OnpolicyError } from '../errors.ts';
import { fault, invalidRequest } from '../protocol/index.ts';

/** The error of a value that is not what was expected at `loc`. */
export function wrongInput(loc: readonly string[], expected: string, input: unknown): OnpolicyError {
  return invalidRequest({ listed: [fault(loc, 'value', expected, input)], count: 1 });
}
