// Changes a home folder without end, for a test that kills this process: <home> <seed>. Each line on standard output says what is
// tried, or that it is done, so that the test knows what has to be there.
import fs from 'node:fs';
import path from 'node:path';
import { listSteps, writeStep } from '../../../dist/rl/checkpoint-step.js';
import { openStore } from '../../../dist/rl/store/open-store.js';
import { createRuntime } from '../../../dist/runtime/runtime.js';

const [home, seed] = process.argv.slice(2);
const runtime = await createRuntime({ home, models: { a: 'onpolicy-tiny' } });
const { store } = openStore(home);
let state = Number(seed) * 2654435761;
const random = (count) => {
  state = (state * 1664525 + 1013904223) % 4294967296;
  return Math.floor((state / 4294967296) * count);
};
const say = (kind, act) => fs.writeSync(1, `${JSON.stringify({ kind, ...act })}\n`);
const trainer = {
  save: async (folder) => {
    await fs.promises.mkdir(folder, { recursive: true });
    await fs.promises.writeFile(path.join(folder, 'weights'), 'x'.repeat(100_000));
  },
};
const attempt = (reward) => ({
  messages_and_choices: [{ role: 'user', content: 'x'.repeat(2_000) }],
  reward,
});
const group = { trajectories: [attempt(0), attempt(1), attempt(2)] };

const acts = {
  create: async () => {
    say('try', { act: 'create' });
    const { id } = await runtime.models.create({
      base_model: 'a',
      name: `model-${process.pid}-${random(1e9)}`,
    });
    say('done', { act: 'create', id });
  },
  log: async (id) => {
    say('try', { act: 'log', id });
    await runtime.models.log(id, { trajectory_groups: Array.from({ length: 100 }, () => group) });
    say('done', { act: 'log', id });
  },
  train: async (id) => {
    const job = await store.createJob(id);
    await job.start();
    const folder = store.checkpointsFolder(id);
    const step = ((await listSteps(folder)).at(-1) ?? 0) + 1;
    say('try', { act: 'train', id, step, job: job.id });
    const metrics = { 'train/reward': random(100) };
    const facts = { id: store.newCheckpointId(id, step), step, metrics, trajectory_hash: '' };
    await writeStep(folder, trainer, facts);
    await job.append({ type: 'training_ended', step, metrics });
    await job.finish({ status: 'completed', step, metrics });
    say('done', { act: 'train', id, step, job: job.id });
  },
  prune: async (id) => {
    say('try', { act: 'prune', id });
    await runtime.checkpoints.prune(id, { keep: 2 });
    say('done', { act: 'prune', id });
  },
  drop: async (id) => {
    const step = (await listSteps(store.checkpointsFolder(id)))[0] ?? 1;
    say('try', { act: 'drop', id, step });
    await runtime.checkpoints.delete(id, { steps: [step] });
    say('done', { act: 'drop', id, step });
  },
  delete: async (id) => {
    say('try', { act: 'delete', id });
    await runtime.models.delete(id);
    say('done', { act: 'delete', id });
  },
};

say('ready', {});
for (;;) {
  const { data } = await runtime.models.list({ limit: 100 });
  const id = data[random(data.length)]?.id;
  const names =
    data.length < 3
      ? ['create']
      : ['create', 'log', 'log', 'train', 'train', 'train', 'prune', 'drop', 'delete'];
  await acts[names[random(names.length)]](id);
}
