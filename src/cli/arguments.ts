/** Words of a command line -> options and positional arguments, or an error. */
import { parseArgs } from 'node:util';
import { OnpolicyError } from '../errors.ts';

/** Types of options: text, number, flag, or repeatable text. */
export type OptionKinds = Readonly<Record<string, 'text' | 'number' | 'flag' | 'texts'>>;

type Value<Kind> = Kind extends 'flag'
  ? boolean
  : Kind extends 'number'
    ? number | undefined
    : Kind extends 'texts'
      ? readonly string[]
      : string | undefined;

/** Parsed arguments. */
export type Given<Kinds extends OptionKinds> = {
  readonly options: { readonly [Name in keyof Kinds]: Value<Kinds[Name]> };
  readonly names: readonly string[];
};

/** Parses a command line. @throws OnpolicyError `INVALID_REQUEST` for an unknown option or a wrong value */
export function readArguments<const Kinds extends OptionKinds>(
  words: readonly string[],
  kinds: Kinds,
): Given<Kinds> {
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [
      name,
      { type: kind === 'flag' ? 'boolean' : 'string', multiple: kind === 'texts' } as const,
    ]),
  );
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true });
    const read = Object.entries(kinds).map(([name, kind]) => [name, toValue(name, kind, values[name])]);
    return { options: Object.fromEntries(read), names: positionals };
  } catch (error) {
    if (error instanceof OnpolicyError) throw error;
    throw wrongUsage((error as Error).message.split('. ')[0]!); // the rest explains shell syntax
  }
}

/** The options that flags stand for, by their names; flags that are not given are left out. Values are checked where they are used. */
export function toOptions(
  flags: Readonly<Record<string, unknown>>,
  names: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  const given = Object.entries(names).filter(([flag]) => flags[flag] !== undefined);
  return Object.fromEntries(given.map(([flag, option]) => [option, flags[flag]]));
}

/** The error of a wrong command line. */
export function wrongUsage(message: string): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', `${message}; "onpolicy help" shows what there is`);
}

function toValue(name: string, kind: OptionKinds[string], value: unknown): unknown {
  if (kind === 'flag') return value === true;
  if (kind === 'texts') return value ?? [];
  if (kind === 'text' || value === undefined) return value;
  const number = Number(value);
  if (value === '' || !Number.isFinite(number))
    throw wrongUsage(`--${name}: expected a number, got ${JSON.stringify(value)}`);
  return number;
}
