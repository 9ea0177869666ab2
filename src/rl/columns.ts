/** Numbers per token in a caller's form -> columns of float64 of one length, or an error that names the column and the entry. */
import { describe } from '../common/index.ts';
import { errorAt, type OnpolicyError } from '../errors.ts';

/** Numbers per token; `null` or NaN where unknown. */
export type Column = ArrayLike<number | null>;

/** Returns a column with NaN for unknown entries: the given one if it has that form, which must then not be changed. */
export function viewColumn(name: string, column: unknown, count?: number): Float64Array {
  if (column instanceof Float64Array && column.length === (count ?? column.length)) return column;
  return readColumn(name, column, count);
}

/** Copies a column, with NaN for unknown entries. `count`: the required number of entries. */
export function readColumn(name: string, column: unknown, count?: number): Float64Array {
  if (!isList(column)) throw wrong(name, 'a list of numbers', describe(column));
  if (column.length !== (count ?? column.length))
    throw wrong(name, `${count} entries`, String(column.length));
  if (NUMBERS.some((Numbers) => column instanceof Numbers)) return new Float64Array(column as Float64Array);
  const values = new Float64Array(column.length);
  for (let i = 0; i < values.length; i++) {
    const value = column[i] ?? Number.NaN;
    if (typeof value !== 'number') throw wrong(`${name}.${i}`, 'a number or null', describe(value));
    values[i] = value;
  }
  return values;
}

/** Throws if a number of a trained token is not finite. */
export function requireKnown(columns: Readonly<Record<string, Float64Array>>, mask: Uint8Array): void {
  for (const [name, values] of Object.entries(columns))
    for (let i = 0; i < values.length; i++)
      if (mask[i] && !Number.isFinite(values[i]))
        throw wrong(`${name}.${i}`, 'a finite number for a trained token', String(values[i]));
}

/** Typed arrays, which are copied at once because all entries are numbers. */
const NUMBERS = [Float64Array, Float32Array, Int32Array, Uint8Array];

function isList(value: unknown): value is ArrayLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Number.isSafeInteger((value as { length?: unknown }).length)
  );
}

function wrong(path: string, expected: string, got: string): OnpolicyError {
  return errorAt(path, 'INVALID_REQUEST', `expected ${expected}, got ${got}`);
}
