/** A failed operation -> an error with its Python exception. `template-error` converts it to an OnpolicyError. */

/** The Python or Jinja2 exception of an error. */
export type PyErrorKind =
  | 'TypeError'
  | 'ValueError'
  | 'KeyError'
  | 'IndexError'
  | 'ZeroDivisionError'
  | 'OverflowError'
  | 'RuntimeError'
  | 'UndefinedError'
  | 'SecurityError'
  | 'SyntaxError'
  | 'Raised' // raise_exception(message)
  | 'Budget'; // a limit of the sandbox, never caught inside a template

/** Thrown by operations on template values. `offset` is the position in the template, once known. */
export class PyError extends Error {
  override readonly name = 'PyError';
  readonly kind: PyErrorKind;
  /** UTF-16 offset into the normalised template source. */
  offset: number | null;

  constructor(kind: PyErrorKind, message: string, offset: number | null = null) {
    super(message);
    this.kind = kind;
    this.offset = offset;
  }
}

export function typeError(message: string): never {
  throw new PyError('TypeError', message);
}

export function valueError(message: string): never {
  throw new PyError('ValueError', message);
}

export function syntaxError(message: string, offset: number): never {
  throw new PyError('SyntaxError', message, offset);
}

export function overBudget(what: string, limit: number): never {
  throw new PyError('Budget', `the template ran over its budget: ${what} (limit ${limit})`);
}

/** Adds a position to an error that has none. A RangeError is V8's own limit, of the stack or of a string. */
export function locate(error: unknown, offset: number): unknown {
  if (error instanceof PyError) error.offset ??= offset;
  else if (error instanceof RangeError)
    return new PyError('Budget', `the template ran over its budget: ${error.message}`, offset);
  return error;
}
