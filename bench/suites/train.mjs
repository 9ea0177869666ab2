// The trainer on the 0.6B shape -> tokens per second against this machine's matrix product, shared prompts, memory.
// Each part runs in its own process; most train real rows, which takes minutes. Parts: --only speed,shared,memory,job,round,wire,losses
import { inProcess, median, result, waitUntilQuiet } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

const GIB = 2 ** 30;

/** Parts in order: each turns its process's report into rows. */
const PARTS = {
  speed: async (settings) => {
    const { tokensPerSecond, gflops, peakGflops, forwardPeakShare } = await inProcess(
      'train/speed.mjs',
      settings,
    );
    const shares = gflops.map((value, i) => value / peakGflops[i]);
    return [
      result('LoRA forward + backward, 512-token row', 'tokens/s', tokensPerSecond),
      result('LoRA forward + backward, 512-token row', 'GFLOP/s', gflops, {
        'Q8_0 mul_mat peak': median(shares),
      }),
      result('LoRA forward, 512-token row: share of the Q8_0 mul_mat peak', '', forwardPeakShare),
      result('Q8_0 mul_mat peak (1024 x 3072 x 512)', 'GFLOP/s', peakGflops),
    ];
  },
  shared: async (settings) => {
    const { sharedMs, oneMs, answers, promptTokens, answerTokens } = await inProcess(
      'train/shared.mjs',
      settings,
    );
    const label = `${answers} answers of ${answerTokens} tokens to one ${promptTokens}-token prompt`;
    const apartMs = oneMs.map((value) => value * answers);
    return [
      result(`${label}: as separate rows (one measured, times ${answers})`, 'ms', apartMs),
      result(`${label}: one row with a shared prompt`, 'ms', sharedMs, {
        'separate rows, times faster': median(apartMs) / median(sharedMs),
      }),
    ];
  },
  memory: async (settings) => {
    const rows = [];
    for (const [name, memoryBudget] of [
      ['kept activations', undefined],
      ['a budget of 2.5 GiB', 2.5 * GIB],
    ]) {
      const { growthBytes, keptLayers, tokensPerSecond } = await inProcess('train/memory.mjs', {
        ...settings,
        memoryBudget,
      });
      const label = `2,048-token row with ${name} (${keptLayers} layers kept)`;
      rows.push(result(`${label}: memory over the bare model`, 'GiB', [growthBytes / GIB]));
      rows.push(result(`${label}: speed`, 'tokens/s', [tokensPerSecond]));
    }
    return rows;
  },
  job: async (settings) => {
    const { swapMs, p99Ms, maxMs } = await inProcess('train/job.mjs', settings);
    return [
      result('first token after a job with its new adapter, over a plain one', 'ms', swapMs),
      result('event loop delay while a job trains, 99th percentile', 'ms', p99Ms),
      result('event loop delay while a job trains, longest', 'ms', maxMs),
    ];
  },
  round: async (settings) => {
    const { roundMs, outsideShare, groups, answers, promptTokens, answerTokens } = await inProcess(
      'train/round.mjs',
      settings,
    );
    const label = `${groups} groups of ${answers} answers of ${answerTokens} tokens to ${promptTokens}-token prompts`;
    return [
      result(`${label}: sampled and trained on`, 'ms', roundMs),
      result(`${label}: share of the time outside engine and trainer`, '', outsideShare),
    ];
  },
  wire: async (settings) => {
    const { directMs, remoteMs, isSame, answers, tokens } = await inProcess('train/wire.mjs', settings);
    if (!isSame) throw new Error('a training run over HTTP computed other bits than one in process');
    const label = `a step on ${answers} answers of ${tokens} tokens`;
    const ratio = median(remoteMs.map((value, i) => value / directMs[i]));
    return [
      result(`${label}: in process`, 'ms', directMs),
      result(`${label}: over HTTP`, 'ms', remoteMs, { 'in process, median of pairs': ratio }),
    ];
  },
  losses: async (settings) => {
    const { inPlace, oneThread, allCores, count, tokens, cores } = await inProcess(
      'train/losses.mjs',
      settings,
    );
    const label = `losses of ${count} rows of ${tokens} tokens`;
    return [
      result(`${label}: in place`, 'rows/s', inPlace),
      result(`${label}: one worker thread`, 'rows/s', oneThread),
      result(`${label}: policyLosses, ${cores} cores`, 'rows/s', allCores, {
        'one worker thread': median(allCores) / median(oneThread),
      }),
    ];
  },
};

/** Runs the parts. `rounds`: repetitions of each timing. */
export async function run({ rounds = 3, threads, model, only, log = () => {} } = {}) {
  const settings = { rounds, threads, model: model ?? ensureModel() };
  const rows = [];
  for (const [name, part] of Object.entries(PARTS)) {
    if (only && !only.includes(name)) continue;
    await waitUntilQuiet({ log });
    log(`train: ${name}`);
    rows.push(...(await part(settings)));
  }
  return rows;
}
