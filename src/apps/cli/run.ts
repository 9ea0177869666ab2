/** Words of a command line -> the command, and its exit code. */
import { Command } from 'commander';
import { packageVersion } from '../../common/index.ts';
import { messageOf, OnpolicyError } from '../../errors.ts';
import { type CliCommand, parse, quiet, Shown } from './arguments.ts';
import { batch } from './batch.ts';
import { bench } from './bench.ts';
import { caches } from './caches.ts';
import { chat } from './chat.ts';
import { complete } from './complete.ts';
import { decide } from './decide.ts';
import { downloads, pull } from './downloads.ts';
import { exportModel } from './export.ts';
import { init } from './init.ts';
import { inspect } from './inspect.ts';
import { ps } from './loaded.ts';
import { checkpoints, models } from './models.ts';
import { classify, rerank, score } from './rank.ts';
import { report } from './report.ts';
import { serve } from './serve.ts';
import type { Terminal } from './terminal.ts';
import { transcribe } from './transcribe.ts';

const COMMANDS: Readonly<Record<string, CliCommand>> = {
  init,
  chat,
  complete,
  transcribe,
  batch,
  decide,
  rerank,
  score,
  classify,
  inspect,
  pull,
  downloads,
  caches,
  serve,
  ps,
  models,
  checkpoints,
  export: exportModel,
  report,
  bench,
};

const AFTER = `"onpolicy help COMMAND": its options; "--version". Exits with 0, with 2 for wrong arguments, else with 1.`;

/** Runs a command and returns the exit code. Errors are written to the error stream. */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  const [name = '--help', ...rest] = words;
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (command) await command(rest, terminal);
    else parse(program(terminal), [name, ...rest]);
    return 0;
  } catch (error) {
    if (error instanceof Shown) return 0;
    const { code = 'FAILED' } = error as { code?: string };
    if (rest.includes('--json'))
      terminal.errors.write(`${JSON.stringify({ error: { code, message: messageOf(error) } })}\n`);
    else terminal.errors.write(`onpolicy: ${messageOf(error)}\n`);
    return error instanceof OnpolicyError && error.code === 'INVALID_REQUEST' ? 2 : 1;
  }
}

/** Returns the program with all commands, for the help and for errors about unknown commands. */
function program(terminal: Terminal): Command {
  const made = quiet(new Command('onpolicy'), terminal)
    .version(packageVersion())
    .configureHelp({
      subcommandTerm: (command) => command.name(),
      visibleCommands: (command) => [...command.commands], // without `help`, which the last line names
      visibleOptions: () => [],
    })
    .addHelpText('after', AFTER);
  for (const command of Object.values(COMMANDS)) made.addCommand(command.parser(terminal));
  return made;
}
