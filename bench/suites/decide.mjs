// Decisions -> the time of many yes/no questions about a long state, against node-llama-cpp's own decisions and against the same questions
// as chat completions. All take turns; the processor time of a process does not depend on what else runs.
// --requests N: questions. --lengths 200,2000: tokens of the state. Without --model: a model in the shape of Qwen3 0.6B.
// --only onpolicy: without the peer.
import { inProcess, median, result, waitUntilQuiet } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

/** Questions at once that the peer is measured with; the best one counts. 4 is its default. */
const PARALLEL = [1, 4, 16];
const TIMEOUT_MS = 3_600_000;

export async function run(options) {
  const { model = ensureModel(), threads, rounds = 3, requests: questions = 100, lengths = [2000] } = options;
  const { only = ['onpolicy', 'node-llama-cpp'], log } = options;
  const rows = [];
  for (const stateTokens of lengths) {
    await waitUntilQuiet({ log });
    const own = [];
    const peers = PARALLEL.map(() => []);
    for (let seed = 1; seed <= rounds; seed++) {
      const settings = { model, threads, questions, stateTokens, seed };
      own.push(await inProcess('decide/run.mjs', settings, { timeoutMs: TIMEOUT_MS }));
      for (const [i, parallelQuestions] of PARALLEL.entries())
        if (only.includes('node-llama-cpp'))
          peers[i].push(
            await inProcess(
              'decide/node-llama-cpp.mjs',
              { ...settings, parallelQuestions },
              { timeoutMs: TIMEOUT_MS },
            ),
          );
      log(`decide: round ${seed} of ${rounds}`);
    }
    for (const unit of ['ms', 'cpuMs']) rows.push(...rowsOf({ own, peers, questions, stateTokens, unit }));
    const label = labelOf(questions, stateTokens);
    rows.push(
      result(
        `${label}: tokens of the prompts`,
        'tokens',
        own.map(({ inputTokens }) => inputTokens),
      ),
      ...['tokens', 'steps'].map((count) =>
        result(
          `${label}: ${count === 'tokens' ? 'tokens computed' : 'steps of the engine'}`,
          count,
          own.map((one) => one.new[count]),
          { 'chat completions': median(own.map((one) => one.new[count] / one.chats[count])) },
        ),
      ),
    );
  }
  return rows;
}

function labelOf(questions, stateTokens) {
  return `${questions} yes/no questions about ${stateTokens} tokens`;
}

/** Rows of one measure: `ms` by the clock, or `cpuMs` of processors. Ratios are medians over the rounds. */
function rowsOf({ own, peers, questions, stateTokens, unit }) {
  const label = labelOf(questions, stateTokens);
  const shown = unit === 'ms' ? 'ms' : 'ms of processors';
  const of = (name) => own.map((one) => one[name][unit]);
  const ratio = (values, base) => median(values.map((value, i) => value / base[i]));
  const singles = own.flatMap((one) => one.singles);
  const ones = singles.map(({ one }) => one[unit]);
  const completions = singles.map(({ completion }) => completion[unit]);
  const measured = peers
    .filter((samples) => samples.length > 0)
    .map((samples) => samples.map((one) => one[unit]));
  const best = measured.map((samples) => ratio(samples, of('new'))).sort((a, b) => a - b)[0];
  const faster = {
    'chat completions, times faster': ratio(of('chats'), of('new')),
    ...(best === undefined ? {} : { 'node-llama-cpp at its best, times faster': best }),
  };
  return [
    result(`${label}: new state`, shown, of('new'), faster),
    result(`${label}: cached state`, shown, of('cached'), { 'a new state': ratio(of('cached'), of('new')) }),
    result(`${label}: as chat completions`, shown, of('chats')),
    ...measured.map((samples, i) =>
      result(`${label}: node-llama-cpp, ${PARALLEL[i]} at once`, shown, samples),
    ),
    result('one question about a short state', shown, ones, {
      'one completion of a token': ratio(ones, completions),
    }),
  ];
}
