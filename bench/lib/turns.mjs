// Engines -> the times of their steps, measured in turns: all are loaded, and one runs while the others are stopped.
// The speed of a shared machine changes over seconds; turns give all engines the same conditions.
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sharedMs } from './measure.mjs';

const TURN_MS = 1500;
const READY = 'ready';

/** Reports that every sequence has its first token. The measured process is then stopped until its first turn. */
export function sayReady() {
  process.stdout.write(`${READY}\n`);
}

/** A separate process that runs bench/<script>; `turns` are the times in which it was not stopped. */
class Contender {
  turns = [];
  report = null;
  #child;
  #script;
  #output = '';
  #errors = '';
  #ended;

  constructor(script, settings) {
    this.#script = script;
    const file = fileURLToPath(new URL(`../${script}`, import.meta.url));
    this.#child = spawn(process.execPath, [file, JSON.stringify(settings)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a separate process group, so that its children stop and end with it
    });
    this.#child.stdout.on('data', (chunk) => {
      this.#output += chunk;
    });
    this.#child.stderr.on('data', (chunk) => {
      this.#errors += chunk;
    });
    this.#ended = new Promise((resolve, reject) => {
      this.#child.on('error', reject);
      this.#child.on('close', (code, signal) => {
        const line = this.#output.trim().split('\n').at(-1);
        if (code === 0 && line.startsWith('{')) resolve(JSON.parse(line));
        else reject(new Error(`${script} ended with ${signal ?? code}:\n${this.#errors.trim()}`));
      });
    });
    this.#ended.then(
      (report) => {
        this.report = report;
      },
      () => {},
    );
  }

  /** Runs until every sequence decodes, then stops. */
  async load() {
    const isReady = async () => {
      while (!this.#output.startsWith(READY)) await sleep(1);
    };
    await Promise.race([isReady(), this.#ended]);
    if (this.report) throw new Error(`${this.#script} ended before it decoded`);
    this.signal('SIGSTOP');
  }

  /** Runs for one turn, or to its end. */
  async takeTurn(turnMs) {
    const start = sharedMs();
    this.signal('SIGCONT');
    const alarm = new AbortController();
    const turn = sleep(turnMs, null, { signal: alarm.signal }).catch(() => {});
    await Promise.race([turn, this.#ended]).finally(() => alarm.abort());
    if (!this.report) this.signal('SIGSTOP');
    this.turns.push({ start, end: sharedMs() });
  }

  signal(name) {
    try {
      process.kill(-this.#child.pid, name);
    } catch {} // it has ended
  }
}

/**
 * Runs all `engines` ({ script, settings }) to their end, in turns. Gives for each the tokens per second of its steps that
 * lie within one turn, while all its sequences decode. A turn is longer than a step of the slowest.
 */
export async function inTurns(engines, turnMs = TURN_MS) {
  const contenders = [];
  const stop = () => {
    for (const contender of contenders) contender.signal('SIGKILL');
  };
  process.once('exit', stop);
  try {
    for (const { script, settings } of engines) {
      const contender = new Contender(script, settings);
      contenders.push(contender);
      await contender.load();
    }
    while (contenders.some(({ report }) => !report))
      for (const contender of contenders) if (!contender.report) await contender.takeTurn(turnMs);
    return contenders.map(({ report, turns }) => rateWithin(report.timesMs, turns));
  } finally {
    stop();
    process.off('exit', stop);
  }
}

/** `timesMs`: for each sequence, when each of its tokens came. */
function rateWithin(timesMs, turns) {
  const from = Math.max(...timesMs.map((times) => times[0]));
  const to = Math.min(...timesMs.map((times) => times.at(-1)));
  let rate = 0;
  for (const times of timesMs) {
    const steps = times
      .slice(1)
      .map((end, i) => ({ start: times[i], end }))
      .filter(({ start, end }) => start >= from && end <= to)
      .filter((step) => turns.some((turn) => turn.start <= step.start && step.end <= turn.end));
    if (steps.length === 0) throw new Error('no step lies within a turn: ask for more tokens');
    const totalMs = steps.reduce((sum, { start, end }) => sum + end - start, 0);
    rate += (1000 * steps.length) / totalMs;
  }
  return rate;
}
