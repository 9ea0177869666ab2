/** An error inside a template -> the library's error, with line, column, source line and a caret. */
import { OnpolicyError } from '../errors.ts';
import { PyError } from './python/py-error.ts';
import { positionOf } from './syntax/tokens.ts';

/** Maximum number of characters of the source line that are shown on either side of the error. */
const CONTEXT_CHARACTERS = 80;

/** Makes the error for the caller. The message of raise_exception() is unchanged. */
export function toTemplateError(error: unknown, source: string): OnpolicyError {
  if (error instanceof OnpolicyError) return error;
  if (!(error instanceof PyError)) {
    const message = error instanceof Error ? error.message : String(error);
    return new OnpolicyError('TEMPLATE_FAILED', `the template failed: ${message}`, { cause: error });
  }
  if (error.offset === null) return build(error, error.message, {});
  const { line, column, sourceLine } = positionOf(source, error.offset);
  const place = { line, column };
  if (error.kind === 'Raised') return build(error, error.message, place);
  const characters = [...sourceLine];
  const start = Math.max(0, column - 1 - CONTEXT_CHARACTERS);
  const shown = characters.slice(start, column - 1 + CONTEXT_CHARACTERS).join('');
  const label = `${line} | `;
  const caret = `${' '.repeat(label.length + column - 1 - start)}^`;
  return build(
    error,
    `${error.message}\n  at line ${line}, column ${column}\n${label}${shown}\n${caret}`,
    place,
  );
}

function build(error: PyError, message: string, place: Readonly<Record<string, unknown>>): OnpolicyError {
  return new OnpolicyError('TEMPLATE_FAILED', message, {
    cause: error,
    detail: [{ loc: ['chat_template'], msg: error.message, type: error.kind, ctx: place }],
  });
}
