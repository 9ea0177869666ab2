// Kinds of weights and sequence counts -> tokens per second on ONNX graphs, beside transformers.js, bare session runs, and what
// the machine's memory allows.
import { inProcess, median, result, waitUntilQuiet } from '../measure.mjs';
import { ensureOnnxModel, weightBytesPerToken } from '../model/onnx.mjs';

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
export async function measureSpeed({ rounds, sequences: counts = [1, 8], threads, log }) {
  const rows = [];
  for (const type of ['fp32', 'q8']) {
    const model = await ensureOnnxModel({ type });
    const rates = new Map(); // name and count -> a rate for each round
    const bounds = []; // for each round, how often a second all weights can be read
    for (let round = 0; round < rounds; round++) {
      const { bytesPerSecond } = await inProcess('onnx/bandwidth.mjs', { threads });
      bounds.push(bytesPerSecond / weightBytesPerToken({ type }));
      for (const sequences of counts)
        for (const [name, script, settings] of PEERS) {
          await waitUntilQuiet({ log });
          const outputTokens = OUTPUT_TOKENS[sequences] ?? OUTPUT_TOKENS[8];
          const figures = await inProcess(script, { model, sequences, outputTokens, threads, ...settings });
          const key = `${name} ${sequences}`;
          rates.set(key, [...(rates.get(key) ?? []), figures.tokensPerSecond]);
          log(
            `${type}, round ${round + 1}/${rounds}, ${sequences}: ${name}: ${figures.tokensPerSecond.toFixed(1)} tokens/s`,
          );
        }
    }
    for (const sequences of counts) rows.push(...rowsOf(type, sequences, rates, bounds));
  }
  return rows;
}

function rowsOf(type, sequences, rates, bounds) {
  const label = `${type}, ${sequences} ${sequences === 1 ? 'sequence' : 'sequences'}`;
  const ours = rates.get(`${OURS} ${sequences}`);
  const ratios = {};
  const compare = (name, peer) => {
    if (peer) ratios[name] = median(ours.map((rate, round) => rate / peer[round]));
  };
  compare('bare session runs', rates.get(`bare session runs ${sequences}`));
  compare(
    sequences === 1 ? 'transformers.js' : 'transformers.js, one batch',
    rates.get(`transformers.js ${sequences}`),
  );
  if (sequences > 1) compare('transformers.js, one after the other', rates.get('transformers.js 1'));
  if (sequences === 1) compare('bound of memory', bounds);
  return [
    ...PEERS.map(([name]) =>
      result(
        `${label}: ${name}`,
        'tokens/s',
        rates.get(`${name} ${sequences}`),
        name === OURS ? ratios : undefined,
      ),
    ),
    ...(sequences === 1 ? [result(`${label}: bound of memory`, 'tokens/s', bounds)] : []),
  ];
}
