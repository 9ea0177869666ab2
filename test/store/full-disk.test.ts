/** A full disk -> errors, without damage to the store. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeStep } from '../../src/rl/checkpoint-step.ts';
import { fakeTrainer } from '../rl/fake-trainer.ts';
import { closeAll, newHome, open } from './homes.ts';

/** A disk of one megabyte. */
const disk = newHome();
fs.mkdirSync(disk);
const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'onpolicy-test', disk]).status === 0;
if (!isMounted) process.stderr.write('full disk tests skipped: a small disk cannot be mounted here\n');

describe.skipIf(!isMounted)('a full disk', () => {
  beforeAll(() => {
    process.once('exit', unmount); // also when the run is cut short
  });
  afterAll(() => unmount());

  it('is a clear error, and what was there stays', async () => {
    const home = path.join(disk, 'home');
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
    expect(() => fs.writeFileSync(path.join(disk, 'filler'), 'x'.repeat(2_000_000))).toThrow('ENOSPC');
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
    fs.rmSync(path.join(disk, 'filler'));
    expect(await again.runtime.models.delete(id)).toMatchObject({ model_id: id });
    await closeAll();
  });
});

function unmount(): void {
  spawnSync('umount', [disk]);
}
