// Samples and times -> medians, rates and rows of results; and a measurement in a separate process.
import { spawn } from 'node:child_process';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** The middle of some numbers. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** One row of a suite: the median of its samples with their range. `ratios`: peer -> how many times the peer's value. */
export function result(name, unit, samples, ratios) {
  const row = { name, unit, median: median(samples), min: Math.min(...samples), max: Math.max(...samples) };
  return ratios ? { ...row, ratios } : row;
}

/** Notes when each token of each sequence came. */
export class TokenClock {
  /** For each sequence, when each of its tokens came: milliseconds of the clock that all processes share. */
  timesMs;
  #onSteady;
  #silent;

  /** `onSteady` is called when every sequence has its first token. */
  constructor(sequenceCount, onSteady = () => {}) {
    this.timesMs = Array.from({ length: sequenceCount }, () => []);
    this.#silent = sequenceCount;
    this.#onSteady = onSteady;
  }

  /** A token of this sequence came. */
  tick(sequence) {
    const times = this.timesMs[sequence];
    if (times.push(sharedMs()) > 1) return;
    this.#silent -= 1;
    if (this.#silent === 0) this.#onSteady();
  }

  /** Returns the number of tokens of this sequence that came. */
  count(sequence) {
    return this.timesMs[sequence].length;
  }

  /**
   * Tokens per second while every sequence was decoding: from the moment the last one got its first token until the first
   * one got its last. Each sequence is timed between two tokens of its own in that time, so that no part of a step counts.
   */
  tokensPerSecond() {
    const from = Math.max(...this.timesMs.map((times) => times[0]));
    const to = Math.min(...this.timesMs.map((times) => times.at(-1)));
    const steady = this.timesMs.map((times) => times.filter((time) => time >= from && time <= to));
    if (steady.some((times) => times.length < 2))
      throw new Error('the sequences hardly ever decoded all at once: ask for more tokens');
    return steady.reduce(
      (total, times) => total + (1000 * (times.length - 1)) / (times.at(-1) - times[0]),
      0,
    );
  }
}

/** Milliseconds of the clock that all processes share. */
export function sharedMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Share of all cores' time that was busy during `seconds`, 0 to 1. */
async function busyShare(seconds) {
  const read = () => {
    const times = os.cpus().map((cpu) => cpu.times);
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    return {
      idle: sum(times.map((time) => time.idle)),
      all: sum(times.map((time) => sum(Object.values(time)))),
    };
  };
  const before = read();
  await sleep(1000 * seconds);
  const after = read();
  return 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
}

let patienceSeconds = 120; // for all waits of a run together

/** Lets measurements begin at once, whatever else the machine does. */
export function measureAtOnce() {
  patienceSeconds = 0;
}

/** Waits until other programs leave the machine alone: threads that spin on each other suffer most from company. */
export async function waitUntilQuiet({ mostBusy = 0.1, log = () => {} } = {}) {
  for (let isFirst = true; patienceSeconds > 0; isFirst = false) {
    const share = await busyShare(1);
    if (share <= mostBusy) return;
    if (isFirst) log(`the machine is ${Math.round(100 * share)} % busy: waiting`);
    patienceSeconds -= 1;
    if (patienceSeconds === 0) log('still busy: measuring all the same, so expect noise');
  }
}

/**
 * Rows of a suite's parts, one after the other, each on a quiet machine; `only` names some of them. A part is a function
 * of `settings`.
 */
export async function runParts(suite, parts, { only = Object.keys(parts), log = () => {}, ...settings }) {
  const rows = [];
  for (const part of only) {
    if (!parts[part])
      throw new Error(`${suite}: no part ${part}; there are ${Object.keys(parts).join(', ')}`);
    await waitUntilQuiet({ log });
    log(`${suite}: ${part}`);
    rows.push(...(await parts[part]({ ...settings, log })));
  }
  return rows;
}

/** Runs bench/<script> with `settings` as its argument in a separate process; returns the object it reports. */
export function inProcess(script, settings, { timeoutMs = 600_000, nodeFlags = [] } = {}) {
  const file = fileURLToPath(new URL(`../${script}`, import.meta.url));
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...nodeFlags, file, JSON.stringify(settings)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a separate process group, so that its children end with it
    });
    const stop = () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {} // it has ended
    };
    process.once('exit', stop);
    const timer = setTimeout(stop, timeoutMs);
    const out = [];
    const errors = [];
    child.stdout.on('data', (chunk) => out.push(chunk));
    child.stderr.on('data', (chunk) => errors.push(chunk));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      process.off('exit', stop);
      const line = Buffer.concat(out).toString().trim().split('\n').at(-1);
      if (code === 0 && line?.startsWith('{')) resolve(JSON.parse(line));
      else
        reject(
          new Error(`${script} ended with ${signal ?? code}:\n${Buffer.concat(errors).toString().trim()}`),
        );
    });
  });
}

/** Returns the settings that `inProcess` passed to this process. */
export function settingsOfProcess() {
  return JSON.parse(process.argv[2] ?? '{}');
}

/** Ends this process and reports `value` to `inProcess`. */
export function report(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`, () => process.exit(0));
}
