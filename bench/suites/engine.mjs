// The library's engine -> groups of choices beside bare llama.cpp, and what no peer offers: cached prefixes, event loop, memory, aborts.
// Each part runs in a separate process.
import { execFileSync } from 'node:child_process';
import os from 'node:os';
import { buildBare } from '../bare/build.mjs';
import { inProcess, median, result, runParts } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

const GROUP = { choices: 16, promptTokens: 512, outputTokens: 64 };
/** Contexts of bare llama.cpp: cells in a pool, where copies of a prompt take none, or separate cells for each sequence. */
const GROUP_CONTEXTS = [{ kv_unified: 1 }, { kv_unified: 0 }];

/** Parts in order: each gives rows from what its process reports. */
const PARTS = {
  'shared-prompt': async ({ model, threads, rounds }) => {
    const settings = { model, threads, rounds };
    const { oneMs, manyMs, choices, promptTokens } = await inProcess('engine/shared-prompt.mjs', settings);
    const label = `first token of all, ${promptTokens}-token prompt`;
    return [
      result(`${label}: n = 1`, 'ms', oneMs),
      result(`${label}: n = ${choices}`, 'ms', manyMs, { 'n = 1': medianRatio(manyMs, oneMs) }),
    ];
  },
  group: async ({ model, threads, rounds }) => {
    const settings = { model, threads, ...GROUP };
    const ours = [];
    const bare = [];
    for (let round = 0; round < rounds; round++) {
      ours.push((await inProcess('engine/group.mjs', settings)).ms);
      const all = [];
      for (const context of GROUP_CONTEXTS) all.push(await bareGroupMs({ ...settings, context }));
      bare.push(Math.min(...all));
    }
    const label = `n = ${GROUP.choices} over a ${GROUP.promptTokens}-token prompt, ${GROUP.outputTokens} tokens each`;
    return [
      result(`${label}: onpolicy`, 'ms', ours, { 'bare llama_decode': medianRatio(ours, bare) }),
      result(`${label}: bare llama_decode`, 'ms', bare),
    ];
  },
  'prefix-cache': async ({ model, threads, rounds }) => {
    const settings = { model, threads, rounds };
    const { firstMs, secondMs, prefixTokens } = await inProcess('engine/prefix-cache.mjs', settings);
    const label = `first token, same ${prefixTokens}-token prefix`;
    return [
      result(`${label}: first request`, 'ms', firstMs),
      result(`${label}: second request`, 'ms', secondMs, { first: medianRatio(secondMs, firstMs) }),
    ];
  },
  'step-cost': async ({ rounds }) => {
    const { samples, sequences } = await inProcess('engine/step-cost.mjs', { rounds: 3 * rounds });
    const label = `JavaScript a step, ${sequences} sequences`;
    return Object.entries(samples).flatMap(([name, { stepMs, waitMs }]) => [
      result(`${label}: ${name}`, 'ms', stepMs),
      result(`${label}: ${name}, before the next step`, 'ms', waitMs),
    ]);
  },
  'event-loop': async ({ model, threads, rounds }) => {
    const runs = [];
    for (let round = 0; round < rounds; round++)
      runs.push(await inProcess('engine/event-loop.mjs', { model, threads }));
    const label = 'event loop delay, 16 sequences decoding';
    return [
      result(
        `${label}: p50`,
        'ms',
        runs.map((run) => run.p50Ms),
      ),
      result(
        `${label}: p99`,
        'ms',
        runs.map((run) => run.p99Ms),
      ),
    ];
  },
  memory: async () => {
    const requests = [500, 2000, 5000];
    // A small nursery of fixed size: its growth would hide the differences measured here.
    const nodeFlags = ['--expose-gc', '--min-semi-space-size=2', '--max-semi-space-size=2'];
    const { residentMb } = await inProcess('engine/memory.mjs', { requests }, { nodeFlags });
    const growth = (from, to) => [100 * (residentMb[to] / residentMb[from] - 1)];
    return [
      ...requests.map((count, i) =>
        result(`resident memory: after ${count} requests`, 'MB', [residentMb[i]]),
      ),
      result('memory growth, request 500 to 5,000', '%', growth(0, 2)),
      result('memory growth, request 2,000 to 5,000', '%', growth(1, 2)),
    ];
  },
  aborts: async () => {
    const { aborted, stats } = await inProcess('engine/aborts.mjs', {});
    return [
      result('aborted requests of 500', 'requests', [aborted]),
      result('sequences in use after the aborts', 'sequences', [stats.running + stats.waiting]),
      result('KV tokens in use after the aborts', 'tokens', [stats.kvTokensInUse]),
    ];
  },
};

/** Milliseconds of a prompt, its copies and the steps behind it, without a sampler. */
async function bareGroupMs({ model, threads, choices, promptTokens, outputTokens, context }) {
  const { program, libraries } = await buildBare();
  const sizes = { threads, sequences: choices, prompt: promptTokens, steps: outputTokens, shared: 1 };
  const words = Object.entries({ libraries, model, ...sizes, ...context });
  const output = execFileSync(
    program,
    words.map(([key, value]) => `${key}=${value}`),
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const { startMs, stepEndsMs } = JSON.parse(output.trim().split('\n').at(-1));
  return stepEndsMs.at(-1) - startMs;
}

/** The ratio of each pair, and of these the median. */
function medianRatio(values, bases) {
  return median(values.map((value, i) => value / bases[i]));
}

/** Rows of every part; `only` names some of them. */
export function run({ rounds = 3, threads = os.availableParallelism(), model = ensureModel(), only, log }) {
  return runParts('engine', PARTS, { model, threads, rounds, only, log });
}
