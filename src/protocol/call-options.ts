/** Options of a call -> the same, checked. */
import type { ErrorDetail } from '../errors.ts';
import { closestName, fault, throwFaults } from './faults.ts';
import { atTheDoor } from './validate.ts';

/** What each option must be. */
const CHECKS: Readonly<Record<string, readonly [expected: string, isValid: (value: unknown) => boolean]>> = {
  signal: ['an AbortSignal', isSignal],
  clientKey: ['1 to 200 characters', isClientKey],
  traceId: ['1 to 200 visible ASCII characters, which a header can hold', isTraceId],
};

/** Whether a value can be the id of a request in a header. */
export function isTraceId(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value);
}

/** Checks the options of a call. Throws `INVALID_REQUEST` with all faults. */
export function checkCallOptions(options: unknown): void {
  if (options === undefined) return;
  atTheDoor({ options }, () => {
    if (typeof options !== 'object' || options === null)
      return throwFaults([fault(['options'], 'type', 'an object', options)]);
    throwFaults(Object.entries(options).flatMap(([name, value]) => optionFault(name, value) ?? []));
  });
}

function optionFault(name: string, value: unknown): ErrorDetail | null {
  if (value === undefined) return null;
  const loc = ['options', name.slice(0, 200)];
  const check = Object.hasOwn(CHECKS, name) ? CHECKS[name] : undefined;
  if (check) return check[1](value) ? null : fault(loc, 'type', check[0], value);
  const near = closestName(name, Object.keys(CHECKS));
  return fault(
    loc,
    'unknown_field',
    near ? `${near} as its name` : 'only signal, traceId and clientKey',
    value,
  );
}

function isClientKey(value: unknown): boolean {
  return typeof value === 'string' && value.length > 0 && value.length <= 200;
}

/** Also one of another realm. */
function isSignal(value: unknown): boolean {
  const { aborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return typeof aborted === 'boolean' && typeof addEventListener === 'function';
}
