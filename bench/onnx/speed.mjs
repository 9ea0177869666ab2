// Kinds of weights and sequence counts -> tokens per second on ONNX graphs, beside transformers.js, bare session runs, and what
// the machine's memory allows. All engines of a round take turns.
import { inProcess, median, result, waitUntilQuiet } from '../lib/measure.mjs';
import { inTurns } from '../lib/turns.mjs';
import { ensureOnnxModel, ensureTinyFolder, weightBytesPerToken } from '../model/onnx.mjs';

const PROMPT_WORDS = 32;
/** Number of tokens of the prompt's words. */
const PROMPT_TOKENS = 110;
/** Tokens that the peer's template adds. */
const TEMPLATE_TOKENS = 8;
/** Steps of a measurement, some seconds long. */
const OUTPUT_TOKENS = { 1: 112, 8: 44 };
/** Warm-up of engines written in JavaScript, so that their code is compiled. */
const WARM_UP = { answers: 3, tokens: 150 };

const OURS = 'onpolicy';
const BARE = 'bare session runs';
const TRANSFORMERS = 'transformers.js';
const ALONE = `${TRANSFORMERS}, one after the other`;

/** The engines compared at each number of sequences; an `alone` one always runs one sequence. */
function enginesOf(sequences) {
  const transformers = { script: 'peers/transformers.mjs', settings: { promptWords: PROMPT_WORDS } };
  const ours = { promptTokens: PROMPT_WORDS + TEMPLATE_TOKENS, runtime: { contextSize: 512 } };
  return [
    { name: BARE, script: 'peers/onnx-bare.mjs', settings: { promptTokens: PROMPT_TOKENS } },
    ...(sequences === 1
      ? [{ name: TRANSFORMERS, ...transformers }]
      : [
          { name: `${TRANSFORMERS}, one batch`, ...transformers },
          { name: ALONE, ...transformers, alone: true },
        ]),
    { name: OURS, script: 'peers/onpolicy.mjs', settings: ours },
  ];
}

/** Tokens per second of all. For more than one sequence, transformers.js is timed one after the other, and as one batch. */
export async function measureSpeed({ rounds, sequences: counts = [1, 8], threads, log }) {
  const warmUp = { model: ensureTinyFolder(), ...WARM_UP };
  const rows = [];
  for (const type of ['fp32', 'q8']) {
    const model = await ensureOnnxModel({ type });
    for (const sequences of counts) {
      const outputTokens = OUTPUT_TOKENS[sequences] ?? OUTPUT_TOKENS[8];
      const engines = enginesOf(sequences);
      const contenders = engines.map(({ script, settings, alone }) => ({
        script,
        settings: { model, warmUp, sequences: alone ? 1 : sequences, outputTokens, threads, ...settings },
      }));
      const rates = new Map(engines.map(({ name }) => [name, []])); // a rate for each round
      const bounds = []; // for each round, how often a second all weights can be read
      for (let round = 0; round < rounds; round++) {
        await waitUntilQuiet({ log });
        if (sequences === 1) {
          const { bytesPerSecond } = await inProcess('onnx/bandwidth.mjs', { threads });
          bounds.push(bytesPerSecond / weightBytesPerToken({ type }));
        }
        const measured = await inTurns(contenders);
        for (const [i, { name }] of engines.entries()) {
          rates.get(name).push(measured[i]);
          log(
            `${type}, round ${round + 1}/${rounds}, ${sequences}: ${name}: ${measured[i].toFixed(1)} tokens/s`,
          );
        }
      }
      rows.push(...rowsOf(`${type}, ${sequences} ${sequences === 1 ? 'sequence' : 'sequences'}`, rates));
      if (bounds.length > 0) rows.push(result(`${type}, 1 sequence: bound of memory`, 'tokens/s', bounds));
    }
  }
  return rows;
}

/** One row for each engine, ours with its ratios. */
function rowsOf(label, rates) {
  const ours = rates.get(OURS);
  const ratios = {};
  for (const [name, peer] of rates)
    if (name !== OURS) ratios[name] = median(ours.map((rate, round) => rate / peer[round]));
  return [...rates].map(([name, samples]) =>
    result(`${label}: ${name}`, 'tokens/s', samples, name === OURS ? ratios : undefined),
  );
}
