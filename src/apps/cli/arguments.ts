/** A command's specification and the words of a command line -> options and positional arguments, help, or an error. */
import fs from 'node:fs/promises';
import { Command, CommanderError, Option } from 'commander';
import { OnpolicyError } from '../../errors.ts';
import type { Terminal } from './terminal.ts';

type Kind = 'text' | 'number' | 'flag' | 'texts';

/** An option: its type, the placeholder of its value in the help, and its description. */
export type OptionSpec<K extends Kind = Kind> = {
  readonly kind: K;
  readonly value: string;
  readonly about: string;
  /** The heading in the help. If absent, the option is listed among the command's own options. */
  readonly group?: string;
};

/** Options by name, without dashes. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export const text = (value: string, about: string): OptionSpec<'text'> => ({ kind: 'text', value, about });
export const number = (about: string): OptionSpec<'number'> => ({ kind: 'number', value: 'N', about });
/** An option without a value. */
export const flag = (about: string): OptionSpec<'flag'> => ({ kind: 'flag', value: '', about });
/** An option with a text that may be repeated. */
export const texts = (value: string, about: string): OptionSpec<'texts'> => ({ kind: 'texts', value, about });

type Value<K> = K extends 'flag'
  ? boolean
  : K extends 'number'
    ? number | undefined
    : K extends 'texts'
      ? readonly string[]
      : string | undefined;

export type Given<Specs extends OptionSpecs> = {
  readonly options: { readonly [Name in keyof Specs]: Value<Specs[Name]['kind']> };
  readonly names: readonly string[];
};

/** A command. It is called with the words after its name. */
export type CliCommand = {
  (words: readonly string[], terminal: Terminal, signal?: AbortSignal): Promise<void>;
  /** Returns the parser of the command, which is a part of the program that shows help. */
  readonly parser: (terminal: Terminal) => Command;
};

const ABSENT: Readonly<Record<Kind, unknown>> = {
  text: undefined,
  number: undefined,
  flag: false,
  texts: [],
};

/** Thrown when the help or the version was shown. */
export class Shown extends Error {}

/** Creates a command. `words` are its positional arguments, for example `<file>` or `[model...]`. */
export function command<const Specs extends OptionSpecs>(spec: {
  readonly name: string;
  readonly words?: string;
  readonly about: string;
  readonly options: Specs;
  run(given: Given<Specs>, terminal: Terminal, signal: AbortSignal | undefined): Promise<void>;
}): CliCommand {
  const parser = (terminal: Terminal): Command => {
    const made = quiet(new Command(spec.name), terminal).description(spec.about);
    if (spec.words) made.arguments(spec.words);
    for (const [name, option] of Object.entries(spec.options)) made.addOption(toOption(name, option));
    return made;
  };
  const called = async (
    words: readonly string[],
    terminal: Terminal,
    signal?: AbortSignal,
  ): Promise<void> => {
    const parsed = parser(terminal)
      .name(`onpolicy ${spec.name}`)
      .action(() => {});
    parse(parsed, words);
    const values = parsed.opts();
    const options = Object.entries(spec.options).map(([name, { kind }]) => {
      const option = new Option(`--${name}`);
      const value = values[option.attributeName()];
      return [name, option.negate ? value === false : (value ?? ABSENT[kind])];
    });
    const given = { options: Object.fromEntries(options), names: parsed.args } as Given<Specs>;
    await spec.run(given, terminal, signal);
  };
  return Object.assign(called, { parser });
}

/** Parses words. @throws OnpolicyError `INVALID_REQUEST`; {@link Shown} if the help was requested */
export function parse(parser: Command, words: readonly string[]): void {
  try {
    parser.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0 || error.code === 'commander.help') throw new Shown();
    const [reason, meant] = error.message.replace(/^error: /, '').split(/\n\(D(id .*)\)$/);
    if (meant) throw new OnpolicyError('INVALID_REQUEST', `${reason}, d${meant}`);
    throw wrongUsage(reason!, parser.name());
  }
}

/** Lets a parser throw, and write to the terminal. */
export function quiet(parser: Command, terminal: Terminal): Command {
  return parser.exitOverride().configureOutput({
    writeOut: (shown) => terminal.output.write(shown),
    writeErr: () => {}, // the error is also thrown
    getOutHelpWidth: () => 110,
  });
}

/**
 * Returns the options that flags set: by default the option of the same name, otherwise the option given for the flag. Absent flags are
 * omitted. Values are checked where they are used.
 */
export function toOptions(
  flags: Readonly<Record<string, unknown>>,
  same: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> {
  const own = same.map((flag) => [flag, new Option(`--${flag}`).attributeName()] as const);
  const given = [...own, ...Object.entries(renamed)].filter(([flag]) => flags[flag] !== undefined);
  return Object.fromEntries(given.map(([flag, option]) => [option, flags[flag]]));
}

/** Reads a file that the command line names. `what` is the name of the argument in errors. */
export async function readFile(what: string, file: string, called?: string): Promise<Buffer> {
  return await fs.readFile(file).catch((cause: Error) => {
    throw wrongUsage(`${what}: cannot read ${file}: ${cause.message}`, called);
  });
}

/** Returns the error of a wrong command line. `called` is `onpolicy` and the command, if one was called. */
export function wrongUsage(message: string, called = 'onpolicy'): OnpolicyError {
  const help = called.replace('onpolicy', 'onpolicy help');
  return new OnpolicyError('INVALID_REQUEST', `${message}; "${help}" shows what there is`);
}

function toOption(name: string, { kind, value, about, group }: OptionSpec): Option {
  const made = new Option(kind === 'flag' ? `--${name}` : `--${name} <${value}>`, about);
  if (group !== undefined) made.helpGroup(group);
  if (kind === 'number') made.argParser((given) => toNumber(name, given));
  if (kind === 'texts') made.argParser((given: string, former: readonly string[] = []) => [...former, given]);
  return made;
}

function toNumber(name: string, given: string): number {
  const value = Number(given);
  if (given === '' || !Number.isFinite(value))
    throw wrongUsage(`--${name}: expected a number, got ${JSON.stringify(given)}`);
  return value;
}
