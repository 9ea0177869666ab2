// The engine with drafts -> its speed beside the same engine without, in turns within a round; and what drafting costs.
import os from 'node:os';
import { inProcess, median, result } from './measure.mjs';
import { ensureModel } from './model/make.mjs';

/** Tokens of a stream, some seconds long. */
const OUTPUT_TOKENS = { 1: 128, 8: 48 };
const NONE = 'no drafts';
/** Of a sequence whose drafts are timed. */
const CONTEXT_TOKENS = 8000;
const DRAFTED_STEPS = 2000;

/** Speed of streams by how many of their drafts are right, and microseconds of drafting. */
export async function run({
  rounds = 3,
  sequences: counts = [1, 8],
  threads = os.availableParallelism(),
  model = ensureModel(),
  log = () => {},
} = {}) {
  const settings = { rounds, contextTokens: CONTEXT_TOKENS, steps: DRAFTED_STEPS, limit: 15 };
  const { microseconds } = await inProcess('speculation/drafting.mjs', settings);
  const rows = Object.entries(microseconds).map(([name, samples]) =>
    result(`drafting, ${CONTEXT_TOKENS} tokens of context: ${name}`, 'us a step', samples),
  );
  for (const sequences of counts) {
    const outputTokens = OUTPUT_TOKENS[sequences] ?? 32;
    const settings = { model, threads, rounds, sequences, outputTokens };
    const { rates, drafts, different } = await inProcess('speculation/streams.mjs', settings);
    const label = `${sequences} ${sequences === 1 ? 'stream' : 'streams'}`;
    for (const [name, samples] of Object.entries(rates)) {
      const ratios = { [NONE]: median(samples.map((rate, round) => rate / rates[NONE][round])) };
      rows.push(result(`${label}: ${name}`, 'tokens/s', samples, name === NONE ? undefined : ratios));
      const { drafted, accepted } = drafts[name];
      log(`${label}: ${name}: ${accepted} of ${drafted} drafts accepted`);
    }
    log(`${label}: ${different} answers with another token`);
  }
  return rows;
}
