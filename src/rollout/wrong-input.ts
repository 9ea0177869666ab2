/** A wrong value and its path -> the error that names it. */
import { invalidInput, type OnpolicyError } from '../errors.ts';

/** The error of a value that is not what was expected at `loc`. */
export function wrongInput(loc: readonly string[], expected: string, input: unknown): OnpolicyError {
  const got = typeof input === 'object' && input !== null ? 'an object' : String(input);
  return invalidInput([{ loc, type: 'value', msg: `expected ${expected}, got ${got}`, input }]);
}
