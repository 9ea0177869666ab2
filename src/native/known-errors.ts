/** An addon -> the same, whose functions throw the library's errors. */
import { fromNative } from '../errors.ts';

/** Of the exports all but classes, whose names are capitalized. What a promise rejects with stays as it is. */
export function withKnownErrors<Addon extends object>(addon: Addon): Addon {
  const entries = Object.entries(addon).map(([name, value]) => {
    if (typeof value !== 'function' || /^[A-Z]/.test(name)) return [name, value];
    const call = (...given: unknown[]): unknown => {
      try {
        return value(...given);
      } catch (error) {
        throw fromNative(error);
      }
    };
    return [name, call];
  });
  return Object.fromEntries(entries) as Addon;
}
