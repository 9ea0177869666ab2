/** A caller's options and a table of checks -> nothing, or an error that names the option. */
import { OnpolicyError } from './errors.ts';
import { describe } from './protocol/index.ts';

/** What was expected, or null when the value is right. */
export type Check = (value: unknown) => string | null;

/** An integer in these bounds. */
export const integer =
  (least: number, most = Number.MAX_SAFE_INTEGER): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? null
      : `an integer from ${least}${most === Number.MAX_SAFE_INTEGER ? ' up' : ` to ${most}`}`;
/** One of some values. */
export const oneOf =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value)
      ? null
      : `one of ${values.map((candidate) => JSON.stringify(candidate)).join(', ')}`;
/** A value of a type as `typeof` names it. */
export const ofType =
  (type: string): Check =>
  (value) =>
    typeof value === type ? null : `a ${type}`;

/** A check of an object's fields, by name. `needed`: the one that must be there. */
export const fieldsOf =
  (what: string, fields: Record<string, Check>, needed?: string): Check =>
  (value) => {
    const expected = needed ? `an object with a ${needed}` : 'an object of settings';
    if (typeof value !== 'object' || value === null) return expected;
    checkFields(what, value, fields);
    return needed === undefined || needed in value ? null : expected;
  };

/** A finite number above 0. */
export const positive: Check = (value) =>
  Number.isFinite(value) && (value as number) > 0 ? null : 'a number above 0';

/** Checks the fields of an object by name; unknown ones are refused. */
export function checkFields(what: string, value: object, fields: Record<string, Check>): void {
  for (const [name, given] of Object.entries(value)) {
    if (given === undefined) continue;
    const check = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!check)
      fail(`${what}.${name.slice(0, 200)}`, `one of ${Object.keys(fields).join(', ')}`, 'an unknown option');
    checkField(what === 'options' ? name : `${what}.${name}`, given, check);
  }
}

/** A message does not show its value. */
const SECRET = 'hub.token';

/** Checks one value. */
export function checkField(name: string, value: unknown, check: Check): void {
  const expected = check(value);
  if (expected !== null) fail(name, expected, name === SECRET ? typeof value : describe(value));
}

/** Throws the error of a wrong option. */
export function fail(name: string, expected: string, got: string): never {
  throw new OnpolicyError('INVALID_REQUEST', `${name}: expected ${expected}, got ${got}`, { param: name });
}
