// Other programs that count beside -> tokens per second of this library and its peers, each with its default threads; and of two models
// of this library at once. A ratio is to what it has without company, and to peers in the same company.
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { inProcess, median, result, runParts } from '../lib/measure.mjs';
import { inTurns } from '../lib/turns.mjs';
import { ensureModel } from '../model/make.mjs';

const PROMPT_TOKENS = 32;
const OUTPUT_TOKENS = { 1: 200, 8: 120 };
/** Answer length for engines that other programs may slow down to one token in some seconds. */
const FEW_TOKENS = 8;
const PROGRAMS = [0, 1, 2, 4];
/** A step of an engine that waits for other programs may take seconds. */
const BUSY_TURN_MS = 8000;
const OURS = 'onpolicy';

/** Runs `work` while so many programs count. */
async function beside(programs, work) {
  const children = Array.from({ length: programs }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  );
  const stop = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.once('exit', stop);
  try {
    return await work();
  } finally {
    stop();
    process.off('exit', stop);
  }
}

function enginesOf({ threads, llamaServer, engines: wanted }) {
  const engines = [
    { name: OURS, script: 'peers/onpolicy.mjs', settings: {} },
    { name: 'bare llama_decode', script: 'peers/bare.mjs', settings: { threads, bare: { kv_unified: 0 } } },
    { name: 'node-llama-cpp', script: 'peers/node-llama-cpp.mjs', settings: { threads } },
  ];
  if (llamaServer !== undefined) {
    const settings = { threads, program: path.resolve(llamaServer), logprobs: false };
    engines.push({ name: 'llama-server', script: 'peers/llama-server.mjs', settings });
  }
  if (wanted.length === 0) return engines;
  return engines.filter(({ name }) => wanted.some((start) => name.startsWith(start)));
}

/** Each engine by itself in turns, in the company of 0, 1, 2 and 4 programs. */
async function programs({ rounds, counts, model, log, ...how }) {
  const engines = enginesOf(how);
  const warmUp = { model: path.resolve('models/onpolicy-tiny.gguf'), answers: 2, tokens: 100 };
  const rates = new Map();
  const of = (sequences, busy, name) => rates.get(`${sequences} ${busy} ${name}`);
  for (let round = 0; round < rounds; round++)
    for (const sequences of counts)
      for (const busy of PROGRAMS) {
        const common = {
          model,
          warmUp,
          sequences,
          promptTokens: PROMPT_TOKENS,
        };
        const measured = await beside(busy, () =>
          inTurns(
            engines.map(({ name, script, settings }) => {
              const outputTokens = busy > 0 && name !== OURS ? FEW_TOKENS : (OUTPUT_TOKENS[sequences] ?? 16);
              return { script, settings: { ...common, outputTokens, ...settings } };
            }),
            busy > 0 ? BUSY_TURN_MS : undefined,
          ),
        );
        for (const [i, { name }] of engines.entries()) {
          const key = `${sequences} ${busy} ${name}`;
          rates.set(key, [...(rates.get(key) ?? []), measured[i]]);
          log(
            `round ${round + 1}/${rounds}, ${sequences} sequences, ${busy} programs, ${name}: ${measured[i].toFixed(1)}`,
          );
        }
      }
  const cores = os.availableParallelism();
  return counts.flatMap((sequences) =>
    PROGRAMS.flatMap((busy) =>
      engines.map(({ name }) => {
        const own = of(sequences, busy, name);
        const share = (rates, other) => median(rates.map((rate, round) => rate / other[round]));
        const ratios = { 'itself, alone': share(own, of(sequences, 0, name)) };
        ratios['its fair share'] = (ratios['itself, alone'] * (cores + busy)) / cores;
        if (name === OURS)
          for (const { name: peer } of engines)
            if (peer !== OURS) ratios[peer] = share(own, of(sequences, busy, peer));
        return result(`${sequences} sequences beside ${busy} programs: ${name}`, 'tokens/s', own, ratios);
      }),
    ),
  );
}

/** Two models of one process: streams of both, and a stream beside prompts. */
async function models({ rounds, model, log }) {
  const samples = {
    alone: [],
    both: [],
    besidePrompts: [],
    promptsAlone: [],
    promptsBeside: [],
    longestSteps: [],
  };
  for (let round = 0; round < rounds; round++) {
    const measured = await inProcess('busy/two-models.mjs', { model });
    log(`round ${round + 1}/${rounds}: ${JSON.stringify(measured)}`);
    for (const [name, value] of Object.entries(measured)) samples[name].push(value);
  }
  const share = (own, other) => ({ alone: median(own.map((rate, round) => rate / other[round])) });
  return [
    result('a stream', 'tokens/s', samples.alone),
    result(
      'a stream beside a stream of another model',
      'tokens/s',
      samples.both,
      share(samples.both, samples.alone),
    ),
    result(
      "a stream beside another model's prompts",
      'tokens/s',
      samples.besidePrompts,
      share(samples.besidePrompts, samples.alone),
    ),
    result(
      'these prompts',
      'tokens/s',
      samples.promptsBeside,
      share(samples.promptsBeside, samples.promptsAlone),
    ),
    result('the longest wait for a token meanwhile, in steps of the median', 'steps', samples.longestSteps),
  ];
}

const PARTS = { programs, models };

/** Runs all parts, or those that `only` names; other names of `only` are those of engines. */
export async function run({
  rounds = 3,
  sequences: counts = [1, 8],
  threads = os.availableParallelism(),
  model = ensureModel(),
  llamaServer,
  only = [],
  log = () => {},
} = {}) {
  const parts = only.filter((name) => PARTS[name]);
  const engines = only.filter((name) => !PARTS[name]);
  return await runParts('busy', PARTS, {
    ...(parts.length > 0 ? { only: parts } : {}),
    rounds,
    counts,
    threads,
    model,
    llamaServer,
    log,
    engines,
  });
}
