// Sequence counts -> tokens per second of this library beside bare llama_decode and its peers, which take turns of a second or
// two. Ratios are taken within a round, and the median of the rounds is given.
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, result, waitUntilQuiet } from '../lib/measure.mjs';
import { inTurns } from '../lib/turns.mjs';
import { ensureOf, TYPE_NAMES } from '../model/quantized.mjs';

const PROMPT_TOKENS = 32;
/** Steps of a measurement, some seconds long: more sequences need fewer, since a step then takes longer. */
const OUTPUT_TOKENS = { 1: 96, 8: 28, 16: 18 };
const FEWEST_OUTPUT_TOKENS = 12;
/** Requests that engines in JavaScript answer before they are measured, so that their code is compiled. */
const WARM_UP = {
  model: fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url)),
  promptTokens: PROMPT_TOKENS,
  answers: 8,
  tokens: 250,
};
const OURS = 'onpolicy';
const BARE = 'bare llama_decode';

/** Bare llama_decode runs with each of these contexts; the best one is the yardstick. */
const BARE_CONTEXTS = {
  [`${BARE}, shared KV`]: { kv_unified: 1 },
  [`${BARE}, KV per sequence`]: { kv_unified: 0 },
  [`${BARE}, KV per sequence, no flash attention`]: { kv_unified: 0, flash_attn: 0 },
};

/** Behind long prompts: one is computed, and copied to each sequence. A shared KV would hold it once for all, and all contexts do not fit. */
const DEEP_TOKENS = 1000;
const DEEP_TURN_MS = 10_000; // a step takes seconds
const DEEP_OUTPUT_TOKENS = 12;
const DEEP_CONTEXTS = { [`${BARE}, KV per sequence`]: { kv_unified: 0, shared: 1 } };

function enginesOf({ llamaServer, promptTokens }) {
  const contexts = promptTokens < DEEP_TOKENS ? BARE_CONTEXTS : DEEP_CONTEXTS;
  const engines = Object.entries(contexts).map(([name, bare]) => ({
    name,
    script: 'peers/bare.mjs',
    settings: { bare },
  }));
  engines.push({ name: OURS, script: 'peers/onpolicy.mjs', settings: {} });
  engines.push({ name: 'node-llama-cpp', script: 'peers/node-llama-cpp.mjs', settings: {} });
  if (llamaServer === undefined) return engines;
  const program = path.resolve(llamaServer);
  engines.push({
    name: 'llama-server',
    script: 'peers/llama-server.mjs',
    settings: { program, logprobs: false },
  });
  engines.push({
    name: 'llama-server, logprobs',
    script: 'peers/llama-server.mjs',
    settings: { program, logprobs: true },
  });
  return engines;
}

/** Rows of one sequence count: `rates` is engine -> tokens per second, one for each round. */
function rowsOf(model, sequences, rates) {
  const bareNames = Object.keys(BARE_CONTEXTS).filter((name) => rates.has(name));
  const bestBare = bareNames.sort((a, b) => median(rates.get(b)) - median(rates.get(a)))[0];
  const compared = new Map(rates);
  for (const name of bareNames) compared.delete(name);
  if (bestBare !== undefined) compared.set(BARE, rates.get(bestBare));

  const label = `${model}${sequences} ${sequences === 1 ? 'sequence' : 'sequences'}`;
  const ours = rates.get(OURS);
  const ratios = {};
  for (const [name, peer] of compared)
    if (ours && name !== OURS) ratios[name] = median(ours.map((rate, round) => rate / peer[round]));
  return [...rates].map(([name, samples]) =>
    result(`${label}: ${name}`, 'tokens/s', samples, name === OURS ? ratios : undefined),
  );
}

/** Tokens per second of one model at each sequence count. */
async function measure(label, model, engines, { rounds, counts, threads, promptTokens, log }) {
  const rates = new Map(counts.map((count) => [count, new Map(engines.map(({ name }) => [name, []]))]));
  for (let round = 0; round < rounds; round++)
    for (const sequences of counts) {
      const outputTokens =
        promptTokens < DEEP_TOKENS ? (OUTPUT_TOKENS[sequences] ?? FEWEST_OUTPUT_TOKENS) : DEEP_OUTPUT_TOKENS;
      const common = {
        model,
        warmUp: WARM_UP,
        sequences,
        promptTokens,
        isDeep: promptTokens >= DEEP_TOKENS,
        outputTokens,
        threads,
      };
      await waitUntilQuiet({ log });
      const measured = await inTurns(
        engines.map(({ script, settings }) => ({ script, settings: { ...common, ...settings } })),
        promptTokens < DEEP_TOKENS ? undefined : DEEP_TURN_MS,
      );
      for (const [i, { name }] of engines.entries()) {
        rates.get(sequences).get(name).push(measured[i]);
        log(
          `round ${round + 1}/${rounds}, ${label}${sequences} sequences, ${name}: ${measured[i].toFixed(1)} tokens/s`,
        );
      }
    }
  return counts.flatMap((count) => rowsOf(label, count, rates.get(count)));
}

/**
 * Tokens per second at each sequence count, behind prompts of as many tokens as `lengths` says first. `only` limits the engines, by the start of their names, and names types of the model:
 * q8_0, which is alone by default, q4_k_m, f16, f32.
 */
export async function run({
  rounds = 3,
  sequences: counts = [1, 8, 16, 32],
  lengths: [promptTokens] = [PROMPT_TOKENS],
  threads = os.availableParallelism(),
  model,
  llamaServer,
  only = [],
  log = () => {},
} = {}) {
  const types = only.filter((name) => TYPE_NAMES.includes(name));
  const starts = only.filter((name) => !TYPE_NAMES.includes(name));
  const engines = enginesOf({ llamaServer, promptTokens }).filter(
    ({ name }) => starts.length === 0 || starts.some((start) => name.startsWith(start)),
  );
  const settings = { rounds, counts, threads, promptTokens, log };
  if (model !== undefined) return await measure('', model, engines, settings);
  const rows = [];
  for (const type of types.length > 0 ? types : TYPE_NAMES.slice(0, 1)) {
    const label = types.length > 0 ? `${type}, ` : '';
    rows.push(...(await measure(label, await ensureOf(type), engines, settings)));
  }
  return rows;
}
