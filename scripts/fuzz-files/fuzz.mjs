// A kind of file, a first number and a count -> what became of so many mutants, each used in a child process.
import { fork } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const WORKER = path.join(path.dirname(fileURLToPath(import.meta.url)), 'worker.mjs');
const PATIENCE_MS = 10_000;

/** `say` gets a line for each fault. */
export async function fuzz({ kind, first, count, model = '', models = '', say, isVerbose = false }) {
  const totals = {
    mutants: 0,
    deaths: 0,
    hangs: 0,
    foreign: 0,
    refused: 0,
    accepted: 0,
    codes: {},
    seconds: 0,
  };
  const started = performance.now();
  let queue = null;
  while (queue === null || queue.length > 0) {
    await new Promise((resolve) => {
      const child = fork(WORKER, [kind, model, models], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
      let lastWords = '';
      let current;
      let doing = '';
      let timer;
      child.stderr.on('data', (text) => {
        lastWords = `${lastWords}${text}`.slice(-4000);
      });
      const next = () => {
        current = queue.shift();
        if (current === undefined) return child.disconnect();
        doing = '';
        clearTimeout(timer);
        timer = setTimeout(() => {
          totals.hangs++;
          say(`${current} hangs: ${doing}`);
          current = undefined;
          child.kill('SIGKILL');
        }, PATIENCE_MS);
        child.send(current);
      };
      child.on('message', (message) => {
        if (message.ready !== undefined) {
          // Below zero: the undamaged files.
          queue ??= [
            ...Array.from({ length: message.ready }, (_, i) => -i - message.ready),
            ...Array.from({ length: count }, (_, i) => first + i),
          ];
          next();
        } else if (message.begins) doing = message.begins;
        else {
          judge(message, totals, say, isVerbose);
          next();
        }
      });
      child.on('exit', (code, signal) => {
        clearTimeout(timer);
        if (current !== undefined) {
          totals.deaths++;
          say(
            `${current} dies (${signal ?? code}): ${doing}\n    ${lastWords.split('\n').find((line) => /GGML_ASSERT|abort|what\(\)|Error|error/.test(line)) ?? lastWords.slice(-300)}`,
          );
        }
        if (queue === null) throw new Error(`the child does not begin: ${lastWords}`);
        resolve();
      });
    });
  }
  totals.mutants = count;
  totals.seconds = (performance.now() - started) / 1000;
  return totals;
}

function judge({ seed, done, errors }, totals, say, isVerbose) {
  if (seed < 0) {
    const faults = errors.filter(([code]) => code !== 'UNSUPPORTED');
    if (faults.length > 0) {
      totals.refused++;
      say(`${done} is refused: ${faults.map(([, text]) => text).join('\n')}`);
    }
    return;
  }
  if (errors.length === 0) totals.accepted++;
  if (isVerbose)
    say(`${seed} ${done}: ${errors.map(([, text]) => text.split('\n')[0]).join(' | ') || 'answers'}`);
  for (const [code, text] of errors) {
    totals.codes[code] = (totals.codes[code] ?? 0) + 1;
    if (code !== null) continue;
    totals.foreign++;
    say(`${seed} throws what is no OnpolicyError: ${done}\n    ${text}`);
  }
}
