// Single fields of a request -> their cost: log-probabilities of a prompt, a logits processor in JavaScript, and fields that watch or time
// tokens. Validation is measured by the suite `protocol`. Each part runs in a separate process.
import os from 'node:os';
import { inProcess, median, result, runParts } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

/** Parts in order: each gives rows from what its process reports. */
const PARTS = {
  'prompt-logprobs': async ({ model, threads, rounds }) => {
    const settings = { model: model ?? ensureModel(), threads, rounds };
    const { plainMs, scoredMs, promptTokens } = await inProcess('request/prompt-logprobs.mjs', settings);
    const ratio = median(scoredMs.map((ms, i) => ms / plainMs[i]));
    const label = `prompt of ${promptTokens} tokens`;
    return [
      result(`${label}: plain`, 'ms', plainMs),
      result(`${label}: prompt_logprobs 1`, 'ms', scoredMs, { plain: ratio }),
    ];
  },
  fields: async ({ model, threads, rounds }) => {
    const settings = { model, threads, rounds: 8 * rounds };
    const { streamed, computed, sequences, tokens } = await inProcess('request/fields.mjs', settings);
    const perSecond = (ms) => (1000 * sequences * tokens) / ms;
    return Object.keys(streamed).flatMap((name) => {
      const { on, off } = streamed[name];
      const ratioOf = (unit) => median(off.map((one, i) => one[unit] / on[i][unit]));
      const { on: withField, off: without } = computed[name];
      const label = `${sequences} streams, ${name}`;
      return [
        result(
          label,
          'tokens/s',
          on.map(({ ms }) => perSecond(ms)),
          { 'without it': ratioOf('ms'), 'without it, processor time': ratioOf('cpuMs') },
        ),
        result(`JavaScript a step, ${label}`, 'ms', withField, {
          'without it, both at their fastest': Math.min(...withField) / Math.min(...without),
        }),
      ];
    });
  },
  processor: async ({ rounds }) => {
    const { plainMs, hookedMs, vocabSize } = await inProcess('request/processor.mjs', { rounds: 8 * rounds });
    const label = `a token, ${vocabSize} logits`;
    return [
      result(`${label}: plain`, 'ms', plainMs),
      result(`${label}: processor that does nothing`, 'ms', hookedMs),
      result(
        'what that processor adds to a token',
        'ms',
        hookedMs.map((ms, i) => ms - plainMs[i]),
      ),
    ];
  },
};

/** Rows of every part; `only` names some of them. */
export function run({ rounds = 3, threads = os.availableParallelism(), model, only, log }) {
  return runParts('request', PARTS, { model, threads, rounds, only, log });
}
