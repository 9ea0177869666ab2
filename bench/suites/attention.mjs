// Sequences and their lengths -> milliseconds of attention in one layer of Qwen3-0.6B's shape, and of others: our kernels and ggml's own, in turns of a
// fraction of a second in one process.
import { execFileSync } from 'node:child_process';
import os from 'node:os';
import { buildBare, kernelParts } from '../bare/build.mjs';
import { median, result, waitUntilQuiet } from '../lib/measure.mjs';

const TURN_SECONDS = 0.1;
const MS = 1000;

function rowsOf({ case: label, turns }) {
  const ratio = median(turns.map(({ ours, ggml }) => ggml / ours));
  const of = (key) => turns.map((turn) => turn[key] * MS);
  return [
    result(`${label}: onpolicy`, 'ms', of('ours'), { ggml: ratio }),
    result(`${label}: ggml`, 'ms', of('ggml')),
  ];
}

/** Rows of every case; ratios say how many times as long ggml takes. */
export async function run({ rounds = 3, threads = os.availableParallelism(), log = () => {} } = {}) {
  const { program, libraries } = await buildBare({ name: 'attention', parts: kernelParts() });
  await waitUntilQuiet({ log });
  const words = Object.entries({ libraries, threads, rounds, seconds: TURN_SECONDS }).map(
    ([key, value]) => `${key}=${value}`,
  );
  const output = execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const cases = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  log(`attention: ${cases[0].kernels} kernels`);
  return cases.flatMap(rowsOf);
}
