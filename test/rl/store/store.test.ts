/** Calls of the runtime -> models, checkpoints and jobs in the home folder. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { stepFolder } from '../../../src/rl/checkpoint-step.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { addSteps, closeAll, codeOf, faultOf, newHome, open, type TestHome } from './homes.ts';

it('registers only what can answer, under a name of its own', async () => {
  const { runtime } = await open();
  const refusalOf = (request: { base_model: string; name?: string }) =>
    runtime.models.create(request).then(
      () => 'taken',
      (error) => `${error.code} ${error.param}`,
    );
  expect(await refusalOf({ base_model: './missing.gguf' })).toBe('MODEL_NOT_FOUND base_model');
  expect(await refusalOf({ base_model: 'missing' })).toBe('MODEL_NOT_FOUND base_model');
  for (const name of ['onpolicy-tiny', 'base', 'a'])
    expect(await refusalOf({ base_model: 'a', name })).toBe('INVALID_REQUEST name');
  for (const base_model of ['a', 'onpolicy-tiny', 'hf:owner/name', 'package.json'])
    expect(await refusalOf({ base_model })).toBe('taken');
});

describe('models', () => {
  it('are registered, found by id and by name, listed and deleted', async () => {
    const { runtime, store, home } = await open();
    expect(await runtime.models.list()).toEqual({
      object: 'list',
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    });
    expect(fs.existsSync(home)).toBe(false); // reading makes nothing
    const model = await runtime.models.create({ base_model: './base.gguf', name: 'adder' });
    expect(model).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      object: 'model',
      name: 'adder',
      base_model: './base.gguf',
      created: expect.closeTo(Date.now() / 1000, -1),
      step: 0,
    });
    expect(await runtime.models.retrieve(model.id)).toEqual(model);
    expect(await runtime.models.retrieve(model.id.toUpperCase())).toEqual(model);
    expect(await store.findModel('adder')).toEqual(model);
    expect(await store.findModel(model.id)).toEqual(model);
    expect(await store.findModel('nobody')).toBeNull();
    expect((await runtime.models.list()).data).toEqual([model]);
    await addSteps(store, model.id, [1, 2]);
    expect(await runtime.models.delete(model.id)).toEqual({
      model_id: model.id,
      deleted_checkpoints: 2,
      deleted_run: false, // nothing was logged
    });
    expect(await codeOf(runtime.models.retrieve(model.id))).toBe('MODEL_NOT_FOUND');
    expect(await codeOf(runtime.models.delete(model.id))).toBe('MODEL_NOT_FOUND');
    expect(fs.readdirSync(path.join(home, 'models'))).toEqual([]);
    expect(fs.readdirSync(path.join(home, 'trash'))).toEqual([]);
  });

  it('have unique names', async () => {
    const { runtime } = await open();
    const first = await runtime.models.create({ base_model: 'a', name: 'twin' });
    expect(await codeOf(runtime.models.create({ base_model: 'b', name: 'twin' }))).toBe('CONFLICT');
    expect(await runtime.models.create({ base_model: 'b', name: 'twin', return_existing: true })).toEqual(
      first,
    );
    const nameless = await Promise.all([1, 2, 3].map(() => runtime.models.create({ base_model: 'a' })));
    expect(new Set(nameless.map(({ id }) => id)).size).toBe(3);
    const racing = [1, 2, 3, 4].map(() => codeOf(runtime.models.create({ base_model: 'a', name: 'race' })));
    expect((await Promise.all(racing)).filter((code) => code === 'it worked')).toHaveLength(1);
    expect(await faultOf(runtime.models.create({ base_model: 'a', name: first.id }))).toEqual(['name']);
    expect(await faultOf(runtime.models.create({ base_model: 'a', name: 'x@3' }))).toEqual(['name']);
    expect(await faultOf(runtime.models.create({ base_model: '' }))).toEqual(['base_model']);
  });

  it('are listed newest first, in pages, and unknown ones are an error', async () => {
    const { runtime } = await open();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await runtime.models.create({ base_model: 'a' })).id);
    const page = await runtime.models.list({ limit: 2 });
    expect(page).toMatchObject({ has_more: true, first_id: ids[4], last_id: ids[3] });
    const rest = await runtime.models.list({ limit: 3, after: page.last_id });
    expect(rest.data.map(({ id }) => id)).toEqual([ids[2], ids[1], ids[0]]);
    expect(rest.has_more).toBe(false);
    expect((await runtime.models.list({ order: 'asc' })).data.map(({ id }) => id)).toEqual(ids);
    for (const id of ['../../etc', 'nobody', '', '00000000-0000-4000-8000-000000000000'])
      expect(await codeOf(runtime.models.retrieve(id))).toBe('MODEL_NOT_FOUND');
  });
});

describe('checkpoints', () => {
  async function trained(metrics: number[]) {
    const all = await open();
    const { id } = await all.runtime.models.create({ base_model: 'a' });
    await addSteps(all.store, id, metrics);
    const stepsOf = async (query = {}) =>
      (await all.runtime.checkpoints.list(id, query)).data.map(({ step }) => step);
    return { ...all, id, stepsOf };
  }

  it('are listed in pages, newest first unless asked otherwise', async () => {
    const { runtime, id, stepsOf } = await trained([0.1, 0.2, 0.3, 0.4, 0.5]);
    const first = await runtime.checkpoints.list(id, { limit: 2 });
    expect(first).toEqual({
      object: 'list',
      data: [
        { id: first.first_id, step: 5, metrics: { 'train/reward': 0.5 } },
        { id: first.last_id, step: 4, metrics: { 'train/reward': 0.4 } },
      ],
      has_more: true,
      first_id: expect.any(String),
      last_id: expect.any(String),
    });
    expect(await stepsOf({ limit: 3, after: first.last_id })).toEqual([3, 2, 1]);
    expect(await stepsOf({ order: 'asc', limit: 2 })).toEqual([1, 2]);
    expect(await stepsOf({ order: 'asc', after: first.last_id })).toEqual([5]);
    expect((await runtime.models.retrieve(id)).step).toBe(5);
  });

  it('are paged steadily while some come and go', async () => {
    const all = await trained(Array.from({ length: 10 }, (_, i) => i));
    const { runtime, id, stepsOf } = all;
    const first = await runtime.checkpoints.list(id, { limit: 3 }); // 10, 9, 8
    await runtime.checkpoints.delete(id, { steps: [8, 7, 9] }); // the cursor itself, too
    await addSteps(all.store, id, [11]);
    const second = await runtime.checkpoints.list(id, { limit: 3, after: first.last_id });
    expect(second.data.map(({ step }) => step)).toEqual([6, 5, 4]);
    expect(second.has_more).toBe(true);
    expect(await stepsOf({ after: second.last_id })).toEqual([3, 2, 1]);
  });

  it('refuse faulty questions, naming the field', async () => {
    const { runtime, id } = await trained([1]);
    const other = await runtime.models.create({ base_model: 'a' });
    for (const limit of [0, 101, -1, 1.5, '20' as never])
      expect(await faultOf(runtime.checkpoints.list(id, { limit }))).toEqual(['limit']);
    expect(await faultOf(runtime.checkpoints.list(id, { order: 'up' as never }))).toEqual(['order']);
    const { first_id } = await runtime.checkpoints.list(id);
    for (const after of ['nonsense', '', other.id, '00000000-0000-4000-8000-000000000000'])
      expect(await faultOf(runtime.checkpoints.list(id, { after }))).toEqual(['after']);
    expect(await faultOf(runtime.checkpoints.list(other.id, { after: first_id }))).toEqual(['after']);
    expect(await faultOf(runtime.checkpoints.delete(id, { steps: [1, -1] }))).toEqual(['steps', '1']);
    expect(await faultOf(runtime.checkpoints.delete(id, {} as never))).toEqual(['steps']);
    expect(await codeOf(runtime.checkpoints.list('nobody'))).toBe('MODEL_NOT_FOUND');
  });

  it('are deleted by step; steps without one are named', async () => {
    const { runtime, id, stepsOf, home } = await trained([1, 2, 3]);
    expect(await runtime.checkpoints.delete(id, { steps: [] })).toEqual({
      deleted_count: 0,
      not_found_steps: [],
    });
    expect(await runtime.checkpoints.delete(id, { steps: [2, 9, 2, 0] })).toEqual({
      deleted_count: 1,
      not_found_steps: [9, 0],
    });
    expect(await stepsOf()).toEqual([3, 1]);
    expect(fs.readdirSync(path.join(home, 'trash'))).toEqual([]);
  });

  it('that are in use are waited for', async () => {
    const { runtime, store, id, stepsOf } = await trained([1, 2]);
    const used = await store.useCheckpoint(id);
    expect(used).toMatchObject({ step: 2, folder: stepFolder(store.checkpointsFolder(id), 2) });
    let isDeleted = false;
    const deletion = runtime.checkpoints.delete(id, { steps: [2] }).finally(() => {
      isDeleted = true;
    });
    const use = async () => (await store.useCheckpoint(id, 2))[Symbol.dispose]();
    await expect.poll(() => codeOf(use())).toBe('NOT_FOUND'); // no new users
    expect(isDeleted).toBe(false);
    expect(fs.existsSync(used.folder!)).toBe(true);
    used[Symbol.dispose]();
    used[Symbol.dispose]();
    expect(await deletion).toEqual({ deleted_count: 1, not_found_steps: [] });
    expect(await stepsOf()).toEqual([1]);
    expect(await codeOf(store.useCheckpoint(id, 2))).toBe('NOT_FOUND');
  });

  it('that are in use stay when the deletion is aborted', async () => {
    const { runtime, store, id, stepsOf } = await trained([1]);
    const used = await store.useCheckpoint(id, 1);
    for (const deletion of [
      () => runtime.checkpoints.delete(id, { steps: [1] }, { signal: AbortSignal.timeout(20) }),
      () => runtime.models.delete(id, { signal: AbortSignal.timeout(20) }),
      () => runtime.models.delete(id, { signal: AbortSignal.abort() }),
    ])
      expect(await codeOf(deletion())).toBe('ABORTED');
    expect(await stepsOf()).toEqual([1]);
    (await store.useCheckpoint(id, 1))[Symbol.dispose]();
    used[Symbol.dispose]();
    const base = await store.useCheckpoint(id, 0);
    expect(base).toMatchObject({ step: 0, folder: null, id: null });
    const deletion = runtime.models.delete(id);
    const use = async () => (await store.useCheckpoint(id))[Symbol.dispose]();
    await expect.poll(() => codeOf(use())).toBe('MODEL_NOT_FOUND'); // no new users
    base[Symbol.dispose]();
    expect((await deletion).deleted_checkpoints).toBe(1);
  });

  it('are pruned to the best ones and the newest', async () => {
    const { runtime, id, stepsOf } = await trained([0.5, 0.9, 0.1, 0.9, 0.3]);
    for (const bad of [{}, { keep: 0 }, { keep: 1.5 }, { keep: 1, goal: 'up' }, { keep: 1, best: 2 }])
      expect(await codeOf(runtime.checkpoints.prune(id, bad as never))).toBe('INVALID_REQUEST');
    expect(await runtime.checkpoints.prune(id, { keep: 3 })).toEqual({
      deleted_count: 1,
      not_found_steps: [],
    });
    expect(await stepsOf()).toEqual([5, 4, 2, 1]);
    await runtime.checkpoints.prune(id, { keep: 1, metric: 'train/reward', goal: 'min' });
    expect(await stepsOf()).toEqual([5]);
    await expect(runtime.checkpoints.prune(id, { keep: 1, metric: 'no such' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'metric',
      message: expect.stringContaining('train/reward'),
    });
  });

  it('that are damaged are named and skipped', async () => {
    const { runtime, store, id, stepsOf, problems } = await trained([1, 2, 3, 4]);
    const folder = (step: number) => stepFolder(store.checkpointsFolder(id), step);
    fs.writeFileSync(path.join(folder(2), 'checkpoint.json'), '{ "id"');
    fs.rmSync(path.join(folder(3), 'checkpoint.json'));
    fs.writeFileSync(path.join(folder(4), 'shift'), '7');
    expect(await stepsOf()).toEqual([4, 1]);
    expect(await stepsOf()).toEqual([4, 1]);
    expect(problems).toHaveLength(2);
    expect(problems.join()).toContain(path.join('000002', 'checkpoint.json'));
    await expect(store.useCheckpoint(id)).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringMatching(/shift is damaged.*delete step 4/),
    });
    expect(await runtime.checkpoints.delete(id, { steps: [4, 3, 2] })).toMatchObject({ deleted_count: 3 });
    expect(await store.useCheckpoint(id)).toMatchObject({ step: 1 });
  });
});

describe('training jobs', () => {
  const started = { type: 'training_started', gradient_steps: 2, metrics: {} } as const;
  const gradient = (step: number) =>
    ({ type: 'gradient_step', gradient_step: step, metrics: { loss: step } }) as const;

  it('are kept with their events', async () => {
    const { runtime, store } = await open();
    const { id } = await runtime.models.create({ base_model: 'a' });
    const job = await store.createJob(id);
    expect(await store.jobs.read(job.id)).toMatchObject({
      status: 'queued',
      model_id: id,
      step: null,
      error: null,
    });
    await job.start();
    await Promise.all([job.append(started), job.append(gradient(1)), job.append(gradient(2))]);
    expect(await store.jobs.read(job.id)).toMatchObject({ status: 'running' });
    const ended = await job.append({ type: 'training_ended', step: 1, metrics: { loss: 2 } });
    const info = await job.finish({ status: 'completed', step: 1, metrics: { loss: 2 } });
    expect(info).toEqual({
      id: job.id,
      object: 'training.job',
      model_id: id,
      status: 'completed',
      created: expect.any(Number),
      step: 1,
      metrics: { loss: 2 },
      error: null,
    });
    expect(await store.jobs.read(job.id)).toEqual(info);
    const first = await store.jobs.events(job.id, { after: null, limit: 2 });
    expect(first.data).toMatchObject([started, gradient(1)]);
    expect(first.has_more).toBe(true);
    const rest = await store.jobs.events(job.id, { after: first.last_id, limit: 2 });
    expect(rest.data).toMatchObject([gradient(2), { type: 'training_ended', id: ended.id }]);
    expect(rest.has_more).toBe(false);
    expect((await store.jobs.events(job.id, { after: ended.id, limit: 2 })).data).toEqual([]);
    expect(await faultOf(store.jobs.events(job.id, { after: id, limit: 2 }))).toEqual(['after']);
    expect(await codeOf(store.jobs.read(id))).toBe('NOT_FOUND');
    expect(await codeOf(store.jobs.read('../x'))).toBe('NOT_FOUND');
    await runtime.models.delete(id);
    expect(await codeOf(store.jobs.read(job.id))).toBe('NOT_FOUND');
  });

  it('whose process died are failed', async () => {
    const home = newHome();
    const first = await open(home);
    const { id } = await first.runtime.models.create({ base_model: 'a' });
    const job = await first.store.createJob(id);
    await job.start();
    await job.append(started);
    fs.appendFileSync(path.join(job.folder, 'events.jsonl'), '{"type":"gradi'); // cut off by the crash
    await closeAll();
    const { store } = await open(home);
    expect(await store.jobs.read(job.id)).toMatchObject({ status: 'failed', error: { code: 'ABORTED' } });
    const { data } = await store.jobs.events(job.id, { after: null, limit: 10 });
    expect(data).toMatchObject([started, { type: 'training_failed', code: 'ABORTED' }]);
    expect((await store.jobs.events(job.id, { after: null, limit: 10 })).data).toEqual(data);
    const after = await store.jobs.events(job.id, { after: data[0]!.id, limit: 10 });
    expect(after.data).toEqual([data[1]]);
    expect((await store.jobs.events(job.id, { after: data[1]!.id, limit: 10 })).data).toEqual([]);
  });

  it('are stopped when their model is deleted', async () => {
    const { runtime, store } = await open();
    const { id } = await runtime.models.create({ base_model: 'a' });
    const stop = new AbortController();
    const job = await store.createJob(id, { cancel: () => stop.abort() });
    stop.signal.addEventListener('abort', () => setImmediate(() => job.finish({ status: 'cancelled' })));
    expect(await runtime.models.delete(id)).toMatchObject({ model_id: id });
    expect(stop.signal.aborted).toBe(true);
  });
});

describe('a home folder', () => {
  it('finishes a deletion that a crash cut off', async () => {
    const home = newHome();
    const { runtime } = await open(home);
    const gone = await runtime.models.create({ base_model: 'a', name: 'gone' });
    const kept = await runtime.models.create({ base_model: 'a', name: 'kept' });
    await closeAll();
    fs.renameSync(path.join(home, 'models', gone.id), path.join(home, 'trash', `model-${gone.id}.x`));
    const again: Runtime = (await open(home)).runtime;
    expect((await again.models.list()).data).toEqual([kept]);
    await again.models.create({ base_model: 'a', name: 'gone' });
    expect(fs.readdirSync(path.join(home, 'trash'))).toEqual([]);
  });

  it('with a damaged model shows the others', async () => {
    const { runtime, home, problems } = await open();
    const good = await runtime.models.create({ base_model: 'a' });
    const bad = await runtime.models.create({ base_model: 'a' });
    await closeAll();
    fs.writeFileSync(path.join(home, 'models', bad.id, 'model.json'), '');
    const again = await open(home);
    expect((await again.runtime.models.list()).data).toEqual([good]);
    expect(again.problems).toEqual([expect.stringContaining(path.join(bad.id, 'model.json'))]);
    expect(problems).toEqual([]);
  });

  it.each<[string, (home: TestHome, id: string, job: string) => Promise<unknown>]>([
    ['model.json', ({ runtime }) => runtime.models.list()],
    ['run.json', ({ runtime }, id) => runtime.runs.retrieve(id)],
    [
      'committed.json',
      ({ runtime }, id) => runtime.models.log(id, { trajectory_groups: [{ trajectories: [] }] }),
    ],
    ['jobs/JOB/job.json', ({ runtime }, _, job) => runtime.trainingJobs.retrieve(job)],
    ['checkpoints/000001/checkpoint.json', ({ store }, id) => store.useCheckpoint(id)],
    ['checkpoints/000001/shift', ({ store }, id) => store.useCheckpoint(id)],
  ])('with %s that cannot be read does not take it for absent', async (name, read) => {
    const first = await open();
    const { id } = await first.runtime.models.create({ base_model: 'a' });
    await addSteps(first.store, id, [1]);
    const job = await first.store.createJob(id, { config: {} });
    await job.finish({ status: 'cancelled' });
    await first.runtime.models.log(id, { trajectory_groups: [{ trajectories: [] }] });
    await closeAll();
    const file = path.join(first.home, 'models', id, name.replace('JOB', job.id));
    fs.rmSync(file);
    fs.mkdirSync(file); // root may read any file, but no folder as one
    const again = await open(first.home);
    await expect(read(again, id, job.id)).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('EISDIR'),
    });
    expect(again.problems).toEqual([]);
  });

  it('of a newer format is left alone', async () => {
    const home = newHome();
    fs.mkdirSync(home);
    fs.writeFileSync(path.join(home, 'store.json'), '{ "format": 2 }');
    const { runtime } = await open(home);
    await expect(runtime.models.create({ base_model: 'a' })).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('format 2'),
    });
  });

  it('that cannot be made is a clear error, and nothing is served after close', async () => {
    const file = newHome();
    fs.writeFileSync(file, '');
    const { runtime } = await open(path.join(file, 'home'));
    expect(await codeOf(runtime.models.create({ base_model: 'a' }))).toBe('STORE_FAILED');
    await runtime.close();
    expect(await codeOf(runtime.models.list())).toBe('CLOSED');
    expect(await codeOf(createRuntime({ home: '' }))).toBe('INVALID_REQUEST');
  });
});
