// A kind of file, a first number and a count -> what became of so many mutants, each used in a child process.
import { fork } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const WORKER = path.join(path.dirname(fileURLToPath(import.meta.url)), 'worker.mjs');
const PATIENCE_MS = 10_000;
/** Folder of mutants. It is in memory if the system has such a folder. */
const TEMPORARY = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir();
/** Pattern of the lines of a dead child's output that give the reason. */
const REASON = /GGML_ASSERT|abort|what\(\)|[Ee]rror/;

/** `say` gets a line for each fault. `processes`: children at a time. */
export async function fuzz({ kind, first, count, processes = 1, ...more }) {
  const totals = {
    mutants: count,
    deaths: 0,
    hangs: 0,
    foreign: 0,
    refused: 0,
    accepted: 0,
    codes: {},
    seconds: 0,
  };
  const started = performance.now();
  const { bases, names } = await import(new URL(`.//${kind}.mjs`, import.meta.url).href);
  const all = names ?? bases(more.models).map(({ name }) => name);
  const known = all.filter((name) => !more.model || name === more.model).length;
  // Below zero: the undamaged files.
  const queue = [
    ...Array.from({ length: known }, (_, i) => i - 2 * known),
    ...Array.from({ length: count }, (_, i) => first + i),
  ];
  const work = async () => {
    while (queue.length > 0) await useChild(queue, totals, { kind, ...more });
  };
  await Promise.all(Array.from({ length: processes }, work));
  totals.seconds = (performance.now() - started) / 1000;
  return totals;
}

/** Hands mutants of the queue to a new child until there are none, or it dies of one. */
async function useChild(queue, totals, { kind, model = '', models = '', say, isVerbose = false }) {
  const folder = fs.mkdtempSync(path.join(TEMPORARY, 'onpolicy-fuzz-'));
  const child = fork(WORKER, [kind, folder, model, models], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let lastWords = '';
  let current;
  let doing = '';
  let timer;
  const next = () => {
    clearTimeout(timer);
    current = queue.shift();
    doing = '';
    if (current === undefined) return child.disconnect();
    timer = setTimeout(() => {
      totals.hangs++;
      say(`${current} hangs: ${doing}`);
      current = undefined;
      child.kill('SIGKILL');
    }, PATIENCE_MS);
    child.send(current);
  };
  child.stderr.on('data', (text) => {
    lastWords = `${lastWords}${text}`.slice(-4000);
  });
  child.on('message', (message) => {
    if (message.begins) {
      doing = message.begins;
      return;
    }
    if (message.errors) judge(message, totals, say, isVerbose);
    next();
  });
  const [code, signal] = await new Promise((resolve) => {
    child.on('exit', (...end) => resolve(end));
  });
  clearTimeout(timer);
  fs.rmSync(folder, { recursive: true, force: true });
  if (current === undefined && !code) return;
  if (current === undefined) throw new Error(`a child ends with ${code}: ${lastWords}`);
  totals.deaths++;
  const reason = lastWords.split('\n').find((line) => REASON.test(line)) ?? lastWords.slice(-300);
  say(`${current} dies (${signal ?? code}): ${doing}\n    ${reason}`);
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
  const outcome = errors.map(([, text]) => text.split('\n')[0]).join(' | ') || 'answers';
  if (isVerbose) say(`${seed} ${done}: ${outcome}`);
  for (const [code, text] of errors) {
    totals.codes[code] = (totals.codes[code] ?? 0) + 1;
    if (code !== null) continue;
    totals.foreign++;
    say(`${seed} throws what is no OnpolicyError: ${done}\n    ${text}`);
  }
}
