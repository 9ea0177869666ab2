/** An addon -> the same, whose functions fail with the library's errors. */
import { fromNative } from '../errors.ts';

/** Of the exports all but classes, whose names are capitalized. */
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

/** What `work` on an object of the addon gives, or its error as one of the library's. */
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
