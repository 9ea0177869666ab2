// Pictures -> first token against llama.cpp's own server, what an encode costs others, aborts. Each part runs in a separate process.
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { inProcess, median, result, runParts } from '../lib/measure.mjs';
import { ensurePair } from '../media/pair.mjs';

const SEEING = fileURLToPath(new URL('../../models/seeing/onpolicy-seeing.gguf', import.meta.url));

const medianRatio = (values, others) => median(values.map((value, i) => value / others[i]));

/** Parts in order: each turns its process's report into rows. */
const PARTS = {
  'first-token': async ({ threads, rounds, llamaServer }) => {
    const program = llamaServer === undefined ? null : path.resolve(llamaServer); // asked for by the flag --llama-server
    const pair = ensurePair();
    const { ours, theirs, cached, tokens } = await inProcess('media/first-token.mjs', {
      pair,
      program,
      threads,
      rounds,
    });
    const label = `first token, a picture of ${tokens} tokens`;
    return [
      result(
        label,
        'ms',
        ours,
        program === null ? undefined : { 'llama.cpp server': medianRatio(ours, theirs) },
      ),
      ...(program === null ? [] : [result(`${label}: llama.cpp server`, 'ms', theirs)]),
      result(`${label}: second turn over it`, 'ms', cached, { first: medianRatio(cached, ours) }),
    ];
  },
  beside: async ({ threads, rounds }) => {
    const { p99Ms, waits, encodeMs, promptMs, streams } = await inProcess('media/beside.mjs', {
      pair: ensurePair(),
      threads,
      rounds,
    });
    const label = `${streams} streams`;
    return [
      result('event loop delay while encoding: p99', 'ms', p99Ms),
      ...['median', 'p99', 'longest'].flatMap((name, at) => {
        const [alone, beside] = [waits.alone, waits.beside].map((all) => all.map((summary) => summary[at]));
        const delays = beside.map((ms, round) => ms / waits.alone[round][at] - 1);
        return [
          result(`${label}, ${name} wait for a token: nothing is encoded`, 'ms', alone),
          result(`${label}, ${name} wait for a token: while encoding`, 'ms', beside, {
            'of a step longer': median(delays),
          }),
        ];
      }),
      result(`${label}, the picture until it is encoded`, 'ms', encodeMs),
      result(`${label}, longest wait for a token: in the step with the picture's prompt`, 'ms', promptMs),
    ];
  },
  'text-only': async ({ threads, rounds }) => {
    const { withMs, withoutMs } = await inProcess('media/text-only.mjs', {
      pair: ensurePair(),
      threads,
      rounds: 2 * rounds,
    });
    const label = '32 tokens of 4 streams without pictures';
    return [
      result(`${label}: model without its projector`, 'ms', withoutMs),
      result(`${label}: model with its projector`, 'ms', withMs, { without: medianRatio(withMs, withoutMs) }),
    ];
  },
  aborts: async ({ requests = 500 }) => {
    const { aborted, encodes, left } = await inProcess('media/aborts.mjs', { model: SEEING, requests });
    return [
      result(`aborted requests with a picture, of ${requests}`, 'requests', [aborted]),
      result('encodes that they began', 'encodes', [encodes]),
      result('left of them: encodes, bytes of embeddings, sequences and cells in use', 'in all', [left]),
    ];
  },
};

/** Rows of every part; `only` names some of them, `requests` how many the part `aborts` makes. */
export function run({ rounds = 3, threads = os.availableParallelism(), only, requests, llamaServer, log }) {
  return runParts('media', PARTS, { threads, rounds, requests, llamaServer, only, log });
}
