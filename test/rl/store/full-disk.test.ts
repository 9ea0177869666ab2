/** A full disk -> errors, without damage to the store. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeStep } from '../../../src/rl/checkpoint-step.ts';
import { RunningJob } from '../../../src/rl/jobs/running-job.ts';
import { smallDisk } from '../../fakes/small-disk.ts';
import { fakeTrainer } from '../fake-trainer.ts';
import { closeAll, open } from './homes.ts';

const disk = smallDisk(1024);
afterAll(() => disk.unmount());

describe.skipIf(disk.folder === null)('a full disk', () => {
  it('is a clear error, and what was there stays', async () => {
    const home = path.join(disk.folder!, 'home');
    const { runtime, store } = await open(home);
    const { id } = await runtime.models.create({ base_model: 'a', name: 'kept' });
    const attempt = (size: number) => ({
      messages_and_choices: [{ role: 'user', content: 'x'.repeat(size) }],
      reward: 1,
    });
    const log = (size: number) =>
      runtime.models.log(id, { trajectory_groups: [{ trajectories: [attempt(size), attempt(size)] }] });
    await log(1_000);
    const full = { code: 'STORE_FAILED', message: expect.stringContaining('the disk is full') };
    await expect(log(2_000_000)).rejects.toMatchObject(full);
    await log(1_000); // what fits is taken again
    const [begun, queued] = [await store.createJob(id), await store.createJob(id)];
    await begun.start();
    disk.fill();
    const job = new RunningJob(queued, new AbortController());
    await job.run(async () => Promise.reject(new Error('it began')));
    await expect(job.done).rejects.toMatchObject(full);
    await expect(begun.append({ type: 'training_ended', step: 1, metrics: {} })).rejects.toMatchObject(full);
    await expect(begun.finish({ status: 'cancelled' })).rejects.toMatchObject(full);
    await expect(log(20_000)).rejects.toMatchObject(full);
    await expect(runtime.models.create({ base_model: 'b' })).rejects.toMatchObject(full);
    await expect(store.createJob(id)).rejects.toMatchObject(full);
    const facts = { id: store.newCheckpointId(id, 1), step: 1, metrics: {}, trajectory_hash: '' };
    await expect(writeStep(store.checkpointsFolder(id), fakeTrainer(), facts)).rejects.toMatchObject(full);
    await closeAll();

    const again = await open(home); // reads, although nothing can be written
    expect((await again.runtime.models.list()).data).toMatchObject([{ id, name: 'kept', step: 0 }]);
    expect(await again.runtime.runs.splits(id)).toEqual({ val: 4 });
    expect((await again.runtime.checkpoints.list(id)).data).toEqual([]);
    expect(again.problems).toEqual([]);
    fs.rmSync(path.join(disk.folder!, 'filler'));
    expect(await again.runtime.models.delete(id)).toMatchObject({ model_id: id });
    await closeAll();
  });
});
