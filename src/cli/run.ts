/** Words of a command line -> the command, and its exit code. */
import { messageOf, OnpolicyError } from '../errors.ts';
import { wrongUsage } from './arguments.ts';
import { batch } from './batch.ts';
import { bench } from './bench.ts';
import { caches } from './caches.ts';
import { chat, complete } from './complete.ts';
import { exportModel } from './export.ts';
import { inspect } from './inspect.ts';
import { ps, pull } from './loaded.ts';
import { checkpoints, models } from './models.ts';
import { classify, rerank, score } from './rank.ts';
import { report } from './report.ts';
import { serve } from './serve.ts';
import { print, type Terminal } from './terminal.ts';
import { transcribe } from './transcribe.ts';

const COMMANDS: Readonly<Record<string, (words: readonly string[], terminal: Terminal) => Promise<void>>> = {
  chat,
  complete,
  transcribe,
  batch,
  rerank,
  score,
  classify,
  models,
  checkpoints,
  export: exportModel,
  report,
  serve,
  inspect,
  pull,
  caches,
  ps,
  bench,
};

const HELP = `onpolicy: a language model in this process

  onpolicy chat                          a conversation on the terminal
  onpolicy complete [PROMPT]             one answer; without a prompt it is read from the input
      --model M  --mmproj F  --system TEXT  --max-tokens N  --temperature T  --top-p P  --seed N
  onpolicy batch IN.jsonl OUT.jsonl      many requests out of a file; --resume goes on; more in docs/batch.md
  onpolicy rerank QUERY [TEXT...]        the best texts or lines of the input; --model M; also score, classify
  onpolicy models [list]                 registered models; also: create BASE --name N | show M | delete M
  onpolicy export M --to PATH            M and its adapters as one file; --type T  --adapter F  --format T
  onpolicy checkpoints M [list]          what training left; delete STEP... | prune --keep N --metric NAME
      lists take --after ID  --limit N  --order asc|desc
  onpolicy report M --out FILE           the run as a page; --csv: its metrics; --split S: its trajectories
      --compare M: beside another one's; --port N: served, and kept up to date
  onpolicy serve --port N --host H       over HTTP; --token T, --token-file F: who may ask; --model M: to list
      --alias NAME=MODEL  --adapter NAME=FILE  --context N  --kv-tokens N  --max-sequences N  --max-waiting N
      --threads N  --gpu G  --gpu-layers N  --cache-type T  --sliding-window W  --scheduling P
      --disk-cache BYTES  --config FILE: options of runtime and server as JSON; --access-log FILE
  onpolicy pull URI... | caches [list]   downloads | caches of prompts; ps --url U --token T: a server's own
  onpolicy inspect FILE                  what a file is and takes; --context N  --sequences N  --cache-type T
  onpolicy bench | transcribe SOUND      how fast this machine is | what is said; --language L  --prompt T

M is the id or name of a registered model, or where a model only answers a path, an hf: URI, or name@step.
Everywhere: --home FOLDER (default .onpolicy), --json; for hf: URIs --hub-token T, --hub-folder FOLDER,
--hub-endpoint URL, --offline. Ends with 0, with 2 when called wrongly, else with 1.`;

/** Runs a command and returns the exit code. Errors are written to the error stream. */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  const [name = 'help', ...rest] = words;
  if (['help', '--help', '-h'].includes(name) || rest.includes('--help')) {
    print(terminal, HELP);
    return 0;
  }
  try {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!command) throw wrongUsage(`expected one of ${Object.keys(COMMANDS).join(', ')}, got ${name}`);
    await command(rest, terminal);
    return 0;
  } catch (error) {
    const { code = 'FAILED' } = error as { code?: string };
    if (rest.includes('--json'))
      terminal.errors.write(`${JSON.stringify({ error: { code, message: messageOf(error) } })}\n`);
    else terminal.errors.write(`onpolicy: ${messageOf(error)}\n`);
    return error instanceof OnpolicyError && error.code === 'INVALID_REQUEST' ? 2 : 1;
  }
}
