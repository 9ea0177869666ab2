// The sampler alone -> microseconds a row, for three vocabularies, beside a plain JavaScript softmax sampler.
import { createRequire } from 'node:module';
import { median, result, waitUntilQuiet } from '../lib/measure.mjs';

const addon = createRequire(import.meta.url)('../../native/build/Release/testing.node');

const VOCABULARIES = [32_000, 151_936, 262_144];
const ROWS = 16; // different rows in turn: none stays in the processor's private caches
const PENALISED = 500;

const WHOLE = {
  temperature: 0.8,
  top_k: 40,
  top_p: 0.95,
  min_p: 0.05,
  repetition_penalty: 1.1,
  frequency_penalty: 0.1,
};
const PLANS = {
  greedy: { temperature: 0 },
  'plain temperature 1': {},
  'plain temperature 1, log-probability': { topLogprobs: 0 },
  'plain temperature 0.8': { temperature: 0.8 },
  'top_p 0.95': { top_p: 0.95 },
  'whole pipeline': WHOLE,
  'whole pipeline, 5 log-probabilities': { ...WHOLE, topLogprobs: 5 },
};

/** Numbers in [0, 1), the same in every run. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A normal bulk of logits and a few likely tokens. */
function makeRow(size, next) {
  const row = new Float32Array(size);
  for (let id = 0; id < size; id++)
    row[id] = 2.5 * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  for (let peak = 0; peak < 30; peak++) row[Math.floor(next() * size)] += 8 + 0.3 * peak;
  return row;
}

/** The peer: the plain loop that a JavaScript runtime would use for temperature 1. */
function javascriptSample(row, u) {
  let best = -Infinity;
  for (let id = 0; id < row.length; id++) if (row[id] > best) best = row[id];
  let total = 0;
  for (let id = 0; id < row.length; id++) total += Math.exp(row[id] - best);
  let target = u * total;
  for (let id = 0; id < row.length; id++) {
    target -= Math.exp(row[id] - best);
    if (target < 0) return id;
  }
  return row.length - 1;
}

/** Microseconds of each of `count` calls. */
function time(count, call) {
  for (let i = 0; i < Math.min(count, 50); i++) call(i);
  const times = [];
  for (let i = 0; i < count; i++) {
    const start = process.hrtime.bigint();
    call(i);
    times.push(Number(process.hrtime.bigint() - start) / 1000);
  }
  return times;
}

/** Microseconds a row of every plan and vocabulary: medians of a few hundred calls, one for each round. */
export async function run({ rounds = 5, calls = 300, log = () => {} } = {}) {
  const results = [];
  for (const size of VOCABULARIES) {
    await waitUntilQuiet({ log });
    const next = numbers(size);
    const rows = Array.from({ length: ROWS }, () => makeRow(size, next));
    const penalised = Array.from({ length: PENALISED }, () => Math.floor(next() * size));
    const script = median(time(Math.ceil(calls / 10), (i) => javascriptSample(rows[i % ROWS], next())));
    for (const [name, options] of Object.entries(PLANS)) {
      const plan = new addon.SamplerPlan({ ...options, vocabSize: size });
      const sampler = new addon.Sampler(plan, 1n);
      for (const id of penalised) sampler.accept(id);
      const samples = Array.from({ length: rounds }, () =>
        median(time(calls, (i) => sampler.drawMany(rows[i % ROWS], 1))),
      );
      const ratios = { 'plain temperature 1 in JavaScript': median(samples) / script };
      results.push(result(`vocabulary ${size}, ${name}`, 'us a row', samples, ratios));
    }
  }
  return results;
}
