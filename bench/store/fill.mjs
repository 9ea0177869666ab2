// Fills a home folder: checkpoints as folders, trajectories through `models.log`; reports its pace and memory.
import fs from 'node:fs';
import path from 'node:path';
import { createRuntime } from '../../dist/index.js';
import { openStore } from '../../dist/rl/store/open-store.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const PER_CALL = 100;
const { home, checkpoints, trajectories } = settingsOfProcess();
const runtime = await createRuntime({ home });
const { store } = openStore(home);
const { id } = await runtime.models.create({ base_model: 'made-up', name: 'large' });

for (let step = 1; step <= checkpoints; step++) {
  const folder = path.join(store.checkpointsFolder(id), String(step).padStart(6, '0'));
  const metrics = {
    'train/reward': Math.random(),
    'loss/train': Math.random(),
    'loss/entropy': Math.random(),
  };
  const facts = {
    format: 1,
    id: store.newCheckpointId(id, step),
    step,
    metrics,
    trajectory_hash: '',
    files: {},
  };
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'checkpoint.json'), JSON.stringify(facts));
}

const attempt = (n) => ({
  messages_and_choices: [
    { role: 'user', content: `What is ${n} + ${n}?` },
    {
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: String(2 * n) },
      token_ids: [1, 2, 3, 4],
      logprobs: { content: [1, 2, 3, 4].map((token) => ({ token: `token_id:${token}`, logprob: -0.5 })) },
    },
  ],
  reward: n % 2,
  metrics: { length: 4 },
});
const calls = trajectories / PER_CALL;
const tenth = Math.ceil(calls / 10);
const perSecond = [];
const heapMb = [];
const residentMb = [];
let startMs = performance.now();
for (let call = 1; call <= calls; call++) {
  const groups = Array.from({ length: 10 }, (_, g) => ({
    trajectories: Array.from({ length: PER_CALL / 10 }, (_, t) => attempt(call * PER_CALL + g * 10 + t)),
  }));
  await runtime.models.log(id, { trajectory_groups: groups });
  if (call % tenth !== 0) continue;
  perSecond.push((tenth * PER_CALL * 1000) / (performance.now() - startMs));
  gc();
  const { heapUsed, rss } = process.memoryUsage();
  heapMb.push(heapUsed / 1e6);
  residentMb.push(rss / 1e6);
  startMs = performance.now();
}
await runtime.close();
report({ perSecond, heapMb, residentMb });
