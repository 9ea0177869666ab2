// Opens a filled home folder in a fresh process; reports how long the first answers take.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { home, checkpoints } = settingsOfProcess();
const timed = async (work) => {
  const startMs = performance.now();
  const value = await work();
  return [value, performance.now() - startMs];
};

const [[runtime, page], openMs] = await timed(async () => {
  const opened = await createRuntime({ home });
  return [opened, await opened.models.list()];
});
const { id } = page.data.find(({ name }) => name === 'large');
const [, modelsMs] = await timed(() => runtime.models.list());
const [first, firstPageMs] = await timed(() => runtime.checkpoints.list(id));
let cursor = first;
for (let i = 0; i < Math.min(50, checkpoints / 200); i++)
  cursor = await runtime.checkpoints.list(id, { after: cursor.last_id, limit: 100 });
const [, middlePageMs] = await timed(() =>
  runtime.checkpoints.list(id, { after: cursor.last_id, limit: 100 }),
);
const [, writeMs] = await timed(() => runtime.models.create({ base_model: 'another' }));
const { val } = await runtime.runs.splits(id);
const [, lastTrajectoryMs] = await timed(async () => {
  let count = 0;
  for await (const _ of runtime.runs.trajectories(id, 'val', val / 10 - 5)) count++;
  if (count !== 50) throw new Error(`expected 50 trajectories, got ${count}`);
});
await runtime.close();
report({ openMs, modelsMs, firstPageMs, middlePageMs, writeMs, lastTrajectoryMs });
