// Adapters on one model -> tokens per second of streams with an adapter each in company, one after the other, all with one adapter, and
// with none; and whether company changes their tokens.
import os from 'node:os';
import { inProcess, median, result } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

const NONE = 'none, in one batch';

/** Four streams, in turns within a round. */
export async function run({
  rounds = 3,
  threads = os.availableParallelism(),
  model = ensureModel(),
  log = () => {},
} = {}) {
  const { rates, different, firstMs } = await inProcess('adapters/streams.mjs', { model, threads, rounds });
  log(`${different} streams with another token in company`);
  log(`a first answer with an adapter from a file: ${firstMs.toFixed(0)} ms more than without`);
  return Object.entries(rates).map(([name, samples]) => {
    const ratios = { [NONE]: median(samples.map((rate, round) => rate / rates[NONE][round])) };
    return result(name, 'tokens/s', samples, name === NONE ? undefined : ratios);
  });
}
