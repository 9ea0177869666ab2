/** Options of a caller -> those that are given, each checked by its row in a table. */
import { OnpolicyError } from '../errors.ts';
import { atTheDoor, describe } from '../protocol/index.ts';

/** What an option must be, in words, and the test for it. */
export type OptionCheck = readonly [expected: string, isValid: (value: unknown) => boolean];

/** Checks that several options share. */
export const COUNT: OptionCheck = ['an integer from 0 up', isCount];
export const COUNT_OR_NULL: OptionCheck = [
  'an integer from 0 up, or null',
  (value) => value === null || isCount(value),
];
export const FUNCTION: OptionCheck = ['a function', (value) => typeof value === 'function'];
export const TEXT_LIST: OptionCheck = [
  'a list of texts',
  (value) => Array.isArray(value) && value.every((entry) => typeof entry === 'string'),
];

/**
 * Returns the options that are not `undefined`. A message does not show the value of the option `secret`. `within`: what is before the
 * names in messages.
 * @throws OnpolicyError `INVALID_REQUEST` for an unknown option or a wrong value, naming the option
 */
export function checkOptions<Options extends object>(
  options: Options,
  checks: Readonly<Record<keyof Options, OptionCheck>>,
  secret: keyof Options,
  within = '',
): Options {
  if (typeof options !== 'object' || options === null) wrongOption('options', 'an object', describe(options));
  return atTheDoor(options, () => checkEach(options, checks, secret, within));
}

function checkEach<Options extends object>(
  options: Options,
  checks: Readonly<Record<keyof Options, OptionCheck>>,
  secret: keyof Options,
  within: string,
): Options {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const check = Object.hasOwn(checks, name) ? checks[name as keyof Options] : undefined;
    if (!check)
      wrongOption(
        `${within}${name.slice(0, 200)}`,
        `one of ${Object.keys(checks).join(', ')}`,
        'an unknown option',
      );
    const [expected, isValid] = check;
    if (!isValid(value))
      wrongOption(`${within}${name}`, expected, name === secret ? typeof value : describe(value));
  }
  return Object.fromEntries(given) as Options;
}

/** Throws the error of a wrong option. */
export function wrongOption(name: string, expected: string, got: string): never {
  throw new OnpolicyError('INVALID_REQUEST', `${name}: expected ${expected}, got ${got}`, { param: name });
}

/** Whether a value is an integer from 0 up. */
export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
