/** The name of a model in a request -> its record, without a look at the folder of all models. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { findRegistered } from '../../../src/rl/jobs/index.ts';
import { openStore } from '../../../src/rl/store/index.ts';
import { addSteps, newHome } from './homes.ts';

const named = (name: string) => ({ base_model: 'base', name, return_existing: false });

it('an unchanged folder is not read again, and a changed one is, whoever changed it', async () => {
  const home = newHome();
  const [mine, other] = [openStore(home), openStore(home)];
  onTestFinished(async () => {
    await mine.close();
    await other.close();
  });
  await mine.store.createModel(named('one'));
  const folder = path.join(home, 'models');
  const age = async (seconds: number) => {
    const time = Date.now() / 1000 - seconds;
    await fs.utimes(folder, time, time);
  };
  const reads = vi.spyOn(fs, 'readdir');
  onTestFinished(() => reads.mockRestore());
  const find = async (name: string) => (await other.store.findModel(name))?.name ?? null;
  const count = async (work: () => Promise<unknown>): Promise<number> => {
    const before = reads.mock.calls.filter(([at]) => at === folder).length;
    await work();
    return reads.mock.calls.filter(([at]) => at === folder).length - before;
  };

  await age(60);
  expect(await find('one')).toBe('one');
  expect(await count(async () => [await find('one'), await find('alias'), await find('one')])).toBe(0);

  await mine.store.createModel(named('two'));
  expect(await find('two')).toBe('two');
  // A change within the time that a file system keeps may not show: what is read so soon is read again.
  expect(await count(async () => [await find('two'), await find('three')])).toBe(2);

  await age(50);
  const { id } = (await other.store.findModel('two'))!;
  await mine.store.deleteModel(id);
  expect(await find('two')).toBe(null);
});

it('a request with the name of a trained model reads no folder, and sees each new and deleted step', async () => {
  const home = newHome();
  const [mine, other] = [openStore(home), openStore(home)];
  onTestFinished(async () => {
    await mine.close();
    await other.close();
  });
  const { id } = await mine.store.createModel(named('tuned'));
  await addSteps(mine.store, id, [1, 2]);
  const checkpoints = mine.store.checkpointsFolder(id);
  const age = async (seconds: number) => {
    const time = Date.now() / 1000 - seconds;
    for (const folder of [checkpoints, path.join(home, 'models')]) await fs.utimes(folder, time, time);
  };
  const find = findRegistered(() => other.store);
  const stepOf = async (reference: string) => {
    using found = await find(reference);
    return found?.adapter && path.basename(path.dirname(found.adapter.path));
  };
  const reads = vi.spyOn(fs, 'readdir');
  onTestFinished(() => reads.mockRestore());

  await age(60);
  expect(await stepOf('tuned')).toBe('000002');
  reads.mockClear();
  expect([await stepOf('tuned'), await stepOf('tuned@1'), await stepOf(id)]).toEqual([
    '000002',
    '000001',
    '000002',
  ]);
  expect(reads).not.toHaveBeenCalled();

  await addSteps(mine.store, id, [3]);
  expect(await stepOf('tuned')).toBe('000003');
  await age(50);
  expect(await stepOf('tuned')).toBe('000003');
  await mine.store.deleteCheckpoints(id, [3]);
  expect(await stepOf('tuned')).toBe('000002');
});
