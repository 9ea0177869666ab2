// The engine with drafts -> its speed beside the same engine without, in turns within a round; what drafting costs; and answers that
// repeat their prompt, beside other engines that draft from it.
import os from 'node:os';
import path from 'node:path';
import { inProcess, median, result, runParts } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';
import { ensureQ4Model } from '../model/quantized.mjs';
import { REPEAT_TASKS } from '../speculation/repeat-tasks.mjs';

/** Tokens of a stream, a few seconds long. */
const OUTPUT_TOKENS = { 1: 128, 8: 48 };
const NONE = 'no drafts';
/** Length of the sequence whose drafts are timed. */
const CONTEXT_TOKENS = 8000;
const DRAFTED_STEPS = 2000;
/** Room for a prompt of a task and its answer. */
const TASK_CONTEXT = 4096;
/** llama.cpp's server drafts from the prompt in several ways; the fastest counts. */
const SERVER_WAYS = ['ngram-simple', 'ngram-map-k', 'ngram-cache'];

const medianRatio = (values, others) => median(values.map((value, round) => value / others[round]));

/** Microseconds of drafts from text. */
async function drafting({ rounds }) {
  const settings = { rounds, contextTokens: CONTEXT_TOKENS, steps: DRAFTED_STEPS, limit: 15 };
  const { microseconds } = await inProcess('speculation/drafting.mjs', settings);
  return Object.entries(microseconds).map(([name, samples]) =>
    result(`drafting, ${CONTEXT_TOKENS} tokens of context: ${name}`, 'us a step', samples),
  );
}

/** Speed of streams by how many of their drafts are right. */
async function streams(label, { model, rounds, sequences: counts, threads, log }) {
  const rows = [];
  for (const sequences of counts) {
    const settings = { model, threads, rounds, sequences, outputTokens: OUTPUT_TOKENS[sequences] ?? 32 };
    const { rates, gains, drafts, different } = await inProcess('speculation/streams.mjs', settings);
    const where = `${label}, ${sequences} ${sequences === 1 ? 'stream' : 'streams'}`;
    for (const [name, samples] of Object.entries(rates)) {
      rows.push(result(`${where}: ${name}`, 'tokens/s', samples, { [NONE]: median(gains[name]) }));
      const { drafted, accepted } = drafts[name];
      log(`${where}: ${name}: ${accepted} of ${drafted} drafts accepted`);
    }
    log(`${where}: ${different} answers with another token`);
  }
  return rows;
}

/** An answer that repeats its prompt: each engine in a separate process, in turns within a round. */
async function repeats(task, { rounds, threads, llamaServer, log }) {
  const program = llamaServer && path.resolve(llamaServer);
  const model = ensureModel({ shape: 'copying-0.6b' });
  const engines = {
    'no drafts': ['onpolicy', false],
    auto: ['onpolicy', 'auto'],
    'node-llama-cpp': ['node-llama-cpp', false],
    'node-llama-cpp, its predictor': ['node-llama-cpp', true],
    ...(program ? { "llama.cpp's server": ['llama-server', ''] } : {}),
    ...(program
      ? Object.fromEntries(SERVER_WAYS.map((way) => [`llama.cpp's server, ${way}`, ['llama-server', way]]))
      : {}),
  };
  const rates = Object.fromEntries(Object.keys(engines).map((name) => [name, []]));
  const texts = new Set();
  for (let round = 0; round < rounds; round++)
    for (const [name, [engine, speculation]] of Object.entries(engines)) {
      const settings = {
        ...REPEAT_TASKS[task],
        program,
        model,
        threads,
        contextSize: TASK_CONTEXT,
        speculation,
      };
      const { rate, text } = await inProcess(`speculation/repeat-${engine}.mjs`, settings);
      rates[name].push(rate);
      texts.add(text.trim());
      log(`${task}: ${name}: ${rate.toFixed(1)} tokens/s`);
    }
  log(`${task}: ${texts.size} different answers`);
  return Object.entries(rates).map(([name, samples]) =>
    result(`${task}: ${name}`, 'tokens/s', samples, { 'auto here': medianRatio(samples, rates.auto) }),
  );
}

/** Parts in order. */
const PARTS = {
  drafting,
  q8_0: ({ model = ensureModel(), ...settings }) => streams('Q8_0', { model, ...settings }),
  q4_k_m: async ({ model: _, ...settings }) =>
    streams('Q4_K_M', { model: await ensureQ4Model(), ...settings }),
  quote: (settings) => repeats('quoting a page', settings),
  edit: (settings) => repeats('editing a JSON document', settings),
};

/** Rows of all parts; `model` is one for the part `q8_0`. */
export function run({
  rounds = 3,
  sequences = [1, 8],
  threads = os.availableParallelism(),
  ...options
} = {}) {
  return runParts('speculation', PARTS, { rounds, sequences, threads, ...options });
}
