// Texts -> vectors per second here and in llama.cpp, on the same model, and the least cosine between them.
import os from 'node:os';
import path from 'node:path';
import { inProcess, median, result } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

/** 64 texts in one request, in turns within a round. */
export async function run({
  rounds = 3,
  threads = os.availableParallelism(),
  model = ensureModel({ shape: 'qwen3-embedding-0.6b' }),
  llamaServer,
  log = () => {},
} = {}) {
  const program = llamaServer === undefined ? null : path.resolve(llamaServer);
  const { rates, cosines } = await inProcess('embeddings/throughput.mjs', {
    model,
    threads,
    rounds,
    program,
  });
  for (const [name, least] of Object.entries(cosines)) log(`least cosine with ${name}: ${least.toFixed(6)}`);
  return Object.entries(rates).map(([name, samples]) => {
    const peers = Object.keys(cosines).filter((peer) => peer !== name && !(name in cosines));
    const ratios = peers.map((peer) => [
      peer,
      median(samples.map((rate, round) => rate / rates[peer][round])),
    ]);
    return result(name, 'texts/s', samples, peers.length > 0 ? Object.fromEntries(ratios) : undefined);
  });
}
