// Settings -> microseconds that a step pays for its drafts, by what drafts: a token is taken in, and what may follow is looked for.
import { loadAddon } from '../../dist/engine/native/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { rounds, contextTokens, steps, limit } = settingsOfProcess();
const { addAnswer, createAnswerIndex, createDrafter, draft } = loadAddon();

let state = 1;
const next = () => {
  state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
  return (state ^ (state >>> 13)) >>> 0;
};
/** Text of few different tokens, so that many places match: sentences that come again, each with a token changed. */
const sentences = Array.from({ length: 40 }, () => Array.from({ length: 12 }, () => next() % 400));
const text = (count) => {
  const tokens = [];
  while (tokens.length < count)
    tokens.push(
      ...sentences[next() % sentences.length].map((token) => (next() % 12 === 0 ? next() % 400 : token)),
    );
  return Int32Array.from(tokens.slice(0, count));
};

const answers = createAnswerIndex(3, 2 ** 26);
for (let i = 0; i < 50; i++) addAnswer(answers, text(contextTokens));
const SOURCES = { ngram: {}, suffix: { answers } };
const microseconds = Object.fromEntries(Object.keys(SOURCES).map((name) => [name, []]));
for (let round = -1; round < rounds; round++)
  for (const [name, sources] of Object.entries(SOURCES)) {
    const drafter = createDrafter({ minMatch: 3, usesText: true, ...sources }, text(contextTokens));
    const tokens = text(steps);
    const startMs = performance.now();
    for (let i = 0; i < steps; i++) draft(drafter, tokens.subarray(i, i + 1), limit);
    if (round >= 0) microseconds[name].push((1000 * (performance.now() - startMs)) / steps); // the first round warms up
  }
report({ microseconds });
