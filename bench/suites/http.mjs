// The service over HTTP -> the cost of the wire against in-process calls, many streams at once, memory over many requests.
// Each part runs in a separate process.
import os from 'node:os';
import path from 'node:path';
import { inProcess, median, result, runParts } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

/** Parts in order: each turns its process's report into rows. */
const PARTS = {
  overhead: async ({ model = ensureModel(), threads, rounds }) => {
    const { first, rates } = await inProcess('http/overhead.mjs', { model, threads, rounds });
    const ratio = median(rates.remote.map((rate, i) => rate / rates.direct[i]));
    return [
      result('first token: in process', 'ms', first.directMs),
      result('first token: client and server', 'ms', first.remoteMs),
      result('first token, added by client and server', 'ms', first.addedMs),
      result("first token, added by a bare pair of Node's own", 'ms', first.bareMs),
      result('first token, difference of whole requests', 'ms', first.wholeMs),
      result('32 streams: in process', 'tokens/s', rates.direct),
      result('32 streams: client and server', 'tokens/s', rates.remote, { 'in process': ratio }),
    ];
  },
  load: async ({ streams = 1000 }) => {
    const { complete, correct, seconds, tokens, firstMs } = await inProcess('http/load.mjs', { streams });
    const label = `${streams} streams at once from another process`;
    return [
      result(`${label}: complete`, 'streams', [complete]),
      result(`${label}: correct`, 'streams', [correct]),
      result(`${label}: rate`, 'tokens/s', [tokens / seconds]),
      result(`${label}: first token`, 'ms', firstMs),
    ];
  },
  memory: async ({ requests: last = 5000 }) => {
    const requests = [last / 5, last / 2, last].map(Math.floor);
    // A small nursery of fixed size: its growth would hide the differences measured here.
    const nodeFlags = ['--expose-gc', '--min-semi-space-size=2', '--max-semi-space-size=2'];
    const { residentMb, heapMb } = await inProcess(
      'http/memory.mjs',
      { requests },
      { nodeFlags, timeoutMs: 3_600_000 },
    );
    const slope = (values) => (1024 * 1000 * (values[2] - values[1])) / (requests[2] - requests[1]);
    return [
      ...requests.map((count, i) =>
        result(`resident memory: after ${count} requests`, 'MB', [residentMb[i]]),
      ),
      result('resident memory, growth', 'KB per 1,000 requests', [slope(residentMb)]),
      result('JavaScript heap, growth', 'KB per 1,000 requests', [slope(heapMb)]),
    ];
  },
  pool: async ({ model = ensureModel(), rounds }) => {
    const { one, two, rollouts, promptTokens, answerTokens } = await inProcess('http/pool.mjs', {
      model,
      rounds,
    });
    const label = `${rollouts} rollouts of ${answerTokens} tokens to prompts of ${promptTokens}`;
    const ratio = median(two.map((rate, i) => rate / one[i]));
    return [
      result(`${label}: a pool of one server on one core`, 'rollouts/s', one),
      result(`${label}: of two, each on its core`, 'rollouts/s', two, { one: ratio }),
    ];
  },
  'llama-server': async ({ llamaServer }) => {
    if (llamaServer === undefined) return []; // asked for by the flag --llama-server
    const program = path.resolve(llamaServer);
    const { answered, freed, refused } = await inProcess('http/llama-server.mjs', { program });
    const label = "client against llama.cpp's own server";
    const count = (outcomes) => [outcomes.filter(Boolean).length];
    return [
      result(`${label}: answers as in process, of ${answered.length}`, 'answers', count(answered)),
      result(`${label}: slots freed by leaving, of ${freed.length}`, 'slots', count(freed)),
      result(`${label}: training refused by name`, 'times', [Number(refused)]),
    ];
  },
};

/** Rows of every part; `only` names some of them, `requests` how many the part `memory` makes. */
export function run({
  rounds = 3,
  threads = os.availableParallelism(),
  model,
  only,
  requests,
  llamaServer,
  log,
}) {
  return runParts('http', PARTS, { model, threads, rounds, requests, llamaServer, only, log });
}
