// ONNX graphs -> tokens per second beside their peers, and memory over many requests and after closing. Parts: --only speed,memory
import { inProcess, result, waitUntilQuiet } from '../lib/measure.mjs';
import { ensureOnnxModel, ensureTinyFolder } from '../model/onnx.mjs';
import { measureSpeed } from '../onnx/speed.mjs';

/** A small nursery of fixed size: its growth would hide the differences measured here. */
const NODE_FLAGS = ['--expose-gc', '--min-semi-space-size=2', '--max-semi-space-size=2'];

/** Parts in order: each gives rows. */
const PARTS = {
  speed: measureSpeed,
  memory: async ({ requests: counted = 2000, log }) => {
    const model = ensureTinyFolder();
    const requests = [0, 0.25, 0.5, 0.75, 1].map((share) => 500 + Math.round(share * counted));
    const { residentMb, heapMb } = await inProcess(
      'engine/memory.mjs',
      { model, requests },
      { nodeFlags: NODE_FLAGS },
    );
    log(`memory: ${counted} requests are answered`);
    const large = await ensureOnnxModel({ type: 'fp32' });
    const settings = { model: large, small: model };
    const closing = await inProcess('onnx/closing.mjs', settings, { nodeFlags: NODE_FLAGS });
    return [
      ...requests.map((count, i) =>
        result(`resident memory: after ${count} requests`, 'MB', [residentMb[i]]),
      ),
      result(`resident memory: growth over ${counted} requests`, 'MB', [residentMb[4] - residentMb[0]]),
      ...[0, 4].map((i) =>
        result(`JavaScript heap in use: after ${requests[i]} requests`, 'MB', [heapMb[i]]),
      ),
      result('a model with 540 MB of weights: memory while it is open', 'MB', closing.openMb),
      result('a model with 540 MB of weights: what is left when it is closed', 'MB', closing.leftMb),
    ];
  },
};

/** Runs the parts. `rounds`: repetitions of each timing; `requests`: how many `memory` makes. */
export async function run({ rounds = 3, only, log = () => {}, ...settings } = {}) {
  const rows = [];
  for (const [name, part] of Object.entries(PARTS)) {
    if (only && !only.includes(name)) continue;
    await waitUntilQuiet({ log });
    log(`onnx: ${name}`);
    rows.push(...(await part({ rounds, log, ...settings })));
  }
  return rows;
}
