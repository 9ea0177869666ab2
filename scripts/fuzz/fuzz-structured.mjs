// Fuzzes constrained decoding: random and damaged specifications are compiled and walked with tokens drawn from their masks.
//   node scripts/fuzz/fuzz-structured.mjs [--minutes N] [--seed N] [--work-divisor N]
// Reports, and exits 1 for: a crash, a hang, a mask that differs from feeding a token byte by byte (asked in every other
// case: what is asked for warms the steps after it, so the others are only timed), a dead end, a step over
// 20 ms of processor time: a token that is accepted, and the forced text and the mask after it. A step is slow when it is
// so in three more rounds, each on a vocabulary and a constraint that remember nothing. A mask that says that it ran out of
// work may lack tokens; such steps are counted. One process works and one watches it; each case has a number that alone
// makes it again. With --work-divisor 10 masks have a tenth of their work: there must be no dead end then, either.
import { fork } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    'work-divisor': { type: 'string', default: '1' },
  },
});
const worker = path.join(path.dirname(fileURLToPath(import.meta.url)), 'fuzz-structured-worker.mjs');
/** Seconds of silence after which the worker counts as hung. */
const PATIENCE = 60;

let failures = 0;
let cases = 0;
let steps = 0;
let forgiven = 0;
let worst = 0;
let cpuSeconds = 0;

/** Works from case `seed` on until the time is up, or the worker dies; gives the case to go on with. */
function work(seed) {
  return new Promise((resolve) => {
    const seconds = Number(flags.minutes) * 60 - cpuSeconds;
    const child = fork(worker, [String(seed), String(seconds), flags['work-divisor']]);
    let current = seed;
    let silence = 0;
    const before = { cases, steps, forgiven, cpuSeconds };
    // Counted in ticks, so that a pause of the whole group is no silence.
    const watch = setInterval(() => {
      silence++;
      if (silence < PATIENCE) return;
      console.log(`case ${current}: hangs`);
      failures++;
      child.kill('SIGKILL');
    }, 1000);
    child.on('message', (message) => {
      silence = 0;
      if (message.begins !== undefined) current = message.begins;
      if (message.failure) {
        failures++;
        console.log(`case ${current}: ${message.failure}`);
      }
      if (message.totals) {
        cases = before.cases + message.totals.cases;
        steps = before.steps + message.totals.steps;
        forgiven = before.forgiven + message.totals.forgiven;
        cpuSeconds = before.cpuSeconds + message.totals.cpuSeconds;
        worst = Math.max(worst, message.totals.worst);
      }
    });
    child.on('exit', (code, signal) => {
      clearInterval(watch);
      if (code === 0) return resolve(undefined);
      if (silence < PATIENCE) {
        failures++;
        console.log(`case ${current}: the process ended with ${signal ?? code}`);
      }
      resolve(current + 1);
    });
  });
}

let next = Number(flags.seed);
while (next !== undefined) next = await work(next);
console.log(
  `${cases} specifications compiled, ${steps} steps in ${(cpuSeconds / 60).toFixed(1)} core-minutes; ` +
    `${forgiven} steps with tokens missing, worst step ${worst.toFixed(1)} ms; ${failures} failures`,
);
process.exit(failures > 0 ? 1 : 0);
