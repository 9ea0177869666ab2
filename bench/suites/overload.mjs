// Ten times as many requests as may run and wait, repeatedly -> time until a refusal, answered requests, and the time of a request afterwards.
import { createRuntime, serve } from '../../dist/index.js';
import { inProcess, result } from '../lib/measure.mjs';

const REQUEST = {
  messages: [{ role: 'user', content: 'Tell me a story.' }],
  ignore_eos: true,
  max_tokens: 60,
};
const RUNNING = 16;
const WAITING = 32;
/** Requests of another process while the service is full. */
const TRIES = 40;

/** Runs the parts. `rounds`: seconds of each. */
export async function run({ rounds = 10, threads, log = () => {} } = {}) {
  const limits = { contextSize: 512, maxSequences: RUNNING, threads, gpu: false };
  const runtime = await createRuntime({ ...limits, maxWaiting: WAITING });
  await runtime.createCompletion(REQUEST);
  log('overload: at capacity');
  const best = await load(runtime, RUNNING, rounds);
  log('overload: ten times of it');
  const over = await load(runtime, 10 * (RUNNING + WAITING), rounds);
  const startMs = performance.now();
  await runtime.createCompletion({ ...REQUEST, max_tokens: 1 });
  const recoveryMs = performance.now() - startMs;
  log('overload: from another process');
  const server = await serve(runtime, { port: 0 });
  const capacity = RUNNING + WAITING;
  const settings = { url: server.url, request: REQUEST, capacity, burst: 10 * capacity, tries: TRIES };
  const { oneMs, firstMs } = await inProcess('overload/client.mjs', settings);
  await server.close();
  await runtime.close();
  return [
    result('answers at capacity', 'tokens/s', [best.tokensPerSecond]),
    result('answers under overload', 'tokens/s', [over.tokensPerSecond]),
    result('share of the best', '', [over.tokensPerSecond / best.tokensPerSecond]),
    result('refused', 'requests', [over.refused]),
    result('first refusal of a burst of all', 'ms', [over.firstRefusalMs]),
    result('refusal of one request while they wait', 'ms', over.refusalMs),
    result('refusal of one request of another process', 'ms', oneMs),
    result('first refusal of a burst of another process', 'ms', [firstMs]),
    result('most that waited', 'requests', [over.mostWaiting]),
    result('first token after it', 'ms', [recoveryMs]),
  ];
}

/** Keeps so many requests under way for a while; one that is refused comes again after a while. */
async function load(runtime, atOnce, seconds) {
  const found = { tokens: 0, refused: 0, firstRefusalMs: 0, mostWaiting: 0, refusalMs: [] };
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  const before = runtime.stats().generatedTokens;
  const work = async () => {
    while (performance.now() < endMs) {
      const askedMs = performance.now();
      try {
        await runtime.createCompletion(REQUEST);
      } catch (error) {
        if (error.code !== 'OVERLOADED') throw error;
        found.refused += 1;
        found.firstRefusalMs ||= performance.now() - askedMs;
        await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs));
      }
      found.mostWaiting = Math.max(found.mostWaiting, runtime.stats().waiting);
    }
  };
  const all = Promise.all(Array.from({ length: atOnce }, work));
  while (performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 137));
    const askedMs = performance.now();
    const isRefused = await runtime.createCompletion({ ...REQUEST, max_tokens: 1 }).then(
      () => false,
      ({ code }) => code === 'OVERLOADED',
    );
    if (isRefused) found.refusalMs.push(performance.now() - askedMs);
  }
  const tokens = runtime.stats().generatedTokens - before;
  await all;
  return { ...found, tokensPerSecond: tokens / seconds };
}
