/** An addon -> the same addon with functions that fail with the library's errors. */
import { fromNative } from '../../errors.ts';

/** Wraps all exports except classes, whose names are capitalized. */
export function withKnownErrors<Addon extends object>(addon: Addon): Addon {
  const entries = Object.entries(addon).map(([name, value]) => {
    if (typeof value !== 'function' || /^[A-Z]/.test(name)) return [name, value];
    const call = (...given: unknown[]): unknown => {
      try {
        const result: unknown = value(...given);
        return result instanceof Promise ? result.catch(throwKnown) : result;
      } catch (error) {
        throw fromNative(error);
      }
    };
    return [name, call];
  });
  return Object.fromEntries(entries) as Addon;
}

/** Returns the result of `work` on an object of the addon. Its errors become the library's errors. */
export async function knowingErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw fromNative(error);
  }
}

function throwKnown(error: unknown): never {
  throw fromNative(error);
}
