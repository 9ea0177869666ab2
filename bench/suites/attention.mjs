// Sequences and their lengths -> milliseconds of attention in one layer of Qwen3-0.6B's shape, and of others: our kernels and ggml's own, in turns of a
// fraction of a second in one process.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { buildBare } from '../bare/build.mjs';
import { median, result, waitUntilQuiet } from '../lib/measure.mjs';

const TURN_SECONDS = 0.1;
const MS = 1000;

const sourcesOf = (folder) =>
  fs
    .readdirSync(fileURLToPath(new URL(`../../native/${folder}/`, import.meta.url)))
    .filter((name) => name.endsWith('.cc') && name !== 'install.cc')
    .map((name) => `${folder}/${name}`);

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
  const parts = [...sourcesOf('attention'), ...sourcesOf('matmul')];
  const { program, libraries } = await buildBare({ name: 'attention', parts });
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
