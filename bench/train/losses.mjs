// Settings -> rows a second whose policy loss is computed: in place, on one worker thread, and on as many as there are cores.
import { availableParallelism } from 'node:os';
import { openLossPool } from '../../dist/rl/loss-pool.js';
import { policyLoss, policyLosses } from '../../dist/rl/public.js';
import { resolveSettings } from '../../dist/rl/settings.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { rounds, rows: count = 64, tokens = 2048 } = settingsOfProcess();

/** A row of answers of 128 tokens. */
function rowOf(seed) {
  const column = (numberOf) =>
    Float64Array.from({ length: tokens }, (_, i) => numberOf((i * 7919 + seed * 104729) % 1000));
  return {
    new_logprobs: column((x) => -x / 250),
    old_logprobs: column((x) => -x / 240),
    advantages: column((x) => (x % 2 ? 1 : -1)),
    weights: new Float64Array(tokens).fill(1),
    mask: new Uint8Array(tokens).fill(1),
    sequence_ids: Int32Array.from({ length: tokens }, (_, i) => Math.floor(i / 128)),
    entropies: column((x) => x / 500),
  };
}

const rows = Array.from({ length: count }, (_, i) => rowOf(i));
const one = openLossPool();
const ways = {
  inPlace: () => rows.map((row) => policyLoss(row)),
  oneThread: () => Promise.all(rows.map((row) => one.compute(row, resolveSettings()))),
  allCores: () => policyLosses(rows),
};
const samples = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let round = -1; round < rounds; round++)
  for (const [name, way] of Object.entries(ways)) {
    const start = performance.now();
    await way();
    if (round >= 0) samples[name].push((1000 * count) / (performance.now() - start)); // the first round starts the threads
  }
await one.close();
report({ ...samples, count, tokens, cores: availableParallelism() });
