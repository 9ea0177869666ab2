/** Work for a field of a caller -> its result, or an error that names the field. */
import { errorAt, fromNative } from '../errors.ts';

/** Runs `work`. Errors without a field get this one. */
export async function atField<T>(field: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const error = fromNative(cause);
    if (error.param !== undefined) throw error;
    throw errorAt(field, error.code, error.message, error);
  }
}
