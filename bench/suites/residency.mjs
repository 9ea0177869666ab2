// Twenty models under a memory budget for three: 2,000 requests in random order -> right answers, loads, memory.
import { inProcess, result } from '../lib/measure.mjs';

/** Runs the part. */
export async function run({ requests = 2000, log = () => {} } = {}) {
  log(`residency: ${requests} requests for 20 models, room for 3`);
  const found = await inProcess('residency/many.mjs', { requests });
  const of = (name, unit, value) => result(name, unit, [value]);
  return [
    of(`right answers of ${requests}`, 'requests', found.right),
    of('loads', 'loads', found.loads),
    of('requests that came while their model was not there', 'requests', found.absent),
    of('times that a model was there twice', 'times', found.doubled),
    of('most memory of the models, as a share of the budget', '', found.share),
    of('time', 's', found.seconds),
  ];
}
