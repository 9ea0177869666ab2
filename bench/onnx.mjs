// Kinds of weights and sequence counts -> tokens per second on ONNX graphs, beside transformers.js and bare session runs.
import os from 'node:os';
import { inProcess, median, result, waitUntilQuiet } from './measure.mjs';
import { ensureOnnxModel } from './model/onnx.mjs';

const PROMPT_WORDS = 32;
/** What the words come to. */
const PROMPT_TOKENS = 110;
const OUTPUT_TOKENS = { 1: 64, 8: 40 };
const OURS = 'onpolicy';
const PEERS = [
  ['bare session runs', 'peers/onnx-bare.mjs', { promptTokens: PROMPT_TOKENS }],
  ['transformers.js', 'peers/transformers.mjs', { promptWords: PROMPT_WORDS }],
  [OURS, 'peers/onpolicy.mjs', { promptTokens: PROMPT_WORDS, runtime: { contextSize: 512 } }],
];

/** Tokens per second of all. For more than one sequence, transformers.js is timed one after the other, and as one batch. */
export async function run({
  rounds = 3,
  sequences: counts = [1, 8],
  threads = os.availableParallelism(),
  only,
  log = () => {},
} = {}) {
  const rows = [];
  for (const type of ['fp32', 'q8']) {
    const model = await ensureOnnxModel({ type });
    const rates = new Map(); // name and count -> a rate for each round
    for (let round = 0; round < rounds; round++)
      for (const sequences of counts)
        for (const [name, script, settings] of PEERS) {
          if (only && !only.some((start) => name.startsWith(start))) continue;
          await waitUntilQuiet({ log });
          const outputTokens = OUTPUT_TOKENS[sequences] ?? OUTPUT_TOKENS[8];
          const figures = await inProcess(script, { model, sequences, outputTokens, threads, ...settings });
          const key = `${name} ${sequences}`;
          rates.set(key, [...(rates.get(key) ?? []), figures.tokensPerSecond]);
          log(
            `${type}, round ${round + 1}/${rounds}, ${sequences}: ${name}: ${figures.tokensPerSecond.toFixed(1)} tokens/s`,
          );
        }
    for (const sequences of counts) rows.push(...rowsOf(type, sequences, rates));
  }
  return rows;
}

function rowsOf(type, sequences, rates) {
  const label = `${type}, ${sequences} ${sequences === 1 ? 'sequence' : 'sequences'}`;
  const ours = rates.get(`${OURS} ${sequences}`);
  const ratios = {};
  const compare = (name, peer) => {
    if (ours && peer) ratios[name] = median(ours.map((rate, round) => rate / peer[round]));
  };
  compare('bare session runs', rates.get(`bare session runs ${sequences}`));
  compare(
    sequences === 1 ? 'transformers.js' : 'transformers.js, one batch',
    rates.get(`transformers.js ${sequences}`),
  );
  if (sequences > 1) compare('transformers.js, one after the other', rates.get('transformers.js 1'));
  return PEERS.flatMap(([name]) => {
    const samples = rates.get(`${name} ${sequences}`);
    return samples
      ? [result(`${label}: ${name}`, 'tokens/s', samples, name === OURS ? ratios : undefined)]
      : [];
  });
}
