// A home folder of 10,000 checkpoints and 1,000,000 trajectories -> times of opening, listing and logging, and memory.
// It is generated in a temporary folder, which takes minutes and 1 GB; ONPOLICY_STORE_SCALE=0.01 makes it smaller.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { inProcess, result } from '../lib/measure.mjs';

const SCALE = Number(process.env.ONPOLICY_STORE_SCALE ?? 1);

/** Runs the parts. `rounds`: processes that open the home. */
export async function run({ rounds = 5, log = () => {} } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bench-store-'));
  const settings = {
    home: path.join(folder, 'home'),
    checkpoints: Math.round(10_000 * SCALE),
    trajectories: Math.round(1_000_000 * SCALE),
  };
  const { checkpoints, trajectories } = settings;
  try {
    log(`store: making ${checkpoints} checkpoints and ${trajectories} trajectories`);
    const made = await inProcess('store/fill.mjs', settings, {
      timeoutMs: 1_200_000,
      nodeFlags: ['--expose-gc'],
    });
    const opened = [];
    for (let round = 0; round < rounds; round++) opened.push(await inProcess('store/open.mjs', settings));
    const of = (field) => opened.map((one) => one[field]);
    return [
      result(`log calls of 100 trajectories, ${trajectories} in all`, 'trajectories/s', made.perSecond),
      result('the same: heap in use, first to last tenth', 'MB', made.heapMb),
      result('the same: memory of the process, first to last tenth', 'MB', made.residentMb),
      result(`opening a home of ${checkpoints} checkpoints, with the first read`, 'ms', of('openMs')),
      result('the same: becoming the writer', 'ms', of('writeMs')),
      result('first page of 20 checkpoints', 'ms', of('firstPageMs')),
      result('a page of 100 from the middle', 'ms', of('middlePageMs')),
      result('first page of models', 'ms', of('modelsMs')),
      result('the last trajectories of a million', 'ms', of('lastTrajectoryMs')),
    ];
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}
