// Decisions -> the time of many yes/no questions about a long state, against the same questions as chat completions, in turns.
// --requests N: questions. --lengths 200,2000: tokens of the state. Without --model: a model in the shape of Qwen3 0.6B.
import { inProcess, median, result, waitUntilQuiet } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

export async function run({ model = ensureModel(), threads, rounds, requests = 100, lengths = [2000], log }) {
  const rows = [];
  for (const stateTokens of lengths) {
    await waitUntilQuiet({ log });
    const settings = { model, threads, rounds, questions: requests, stateTokens };
    const report = await inProcess('decide/run.mjs', settings);
    const label = `${requests} yes/no questions about ${stateTokens} tokens`;
    const chats = median(report.chatsMs.map((value, i) => value / report.newMs[i]));
    const cached = median(report.cachedMs.map((value, i) => value / report.newMs[i]));
    const one = median(report.oneMs.map((value, i) => value / report.completionMs[i]));
    rows.push(
      result(`${label}: new state`, 'ms', report.newMs, { 'chat completions, times faster': chats }),
      result(`${label}: cached state`, 'ms', report.cachedMs, { 'a new state': cached }),
      result(`${label}: as chat completions`, 'ms', report.chatsMs),
      result(`${label}: tokens of the prompts`, 'tokens', [report.inputTokens]),
      result(`${label}: tokens computed`, 'tokens', [report.computedTokens]),
      result('one question about a short state', 'ms', report.oneMs, { 'one completion of a token': one }),
    );
  }
  return rows;
}
