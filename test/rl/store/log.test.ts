/** Logged trajectories -> metrics and files of a run. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LogRequest } from '../../../src/protocol/index.ts';
import { splitFolder } from '../../../src/rl/store/run-log.ts';
import { addSteps, closeAll, codeOf, faultOf, open, type TestHome } from './homes.ts';

type Group = LogRequest['trajectory_groups'][number];
type Trajectory = Group['trajectories'][number];

const attempt = (reward: number, more: Partial<Trajectory> = {}): Trajectory => ({
  messages_and_choices: [
    { role: 'user', content: 'hello' },
    { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hi' }, token_ids: [1, 2, 3] },
  ],
  reward,
  ...more,
});
const group = (...rewards: number[]): Group => ({ trajectories: rewards.map((reward) => attempt(reward)) });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function openModel() {
  const home = await open();
  const { id } = await home.runtime.models.create({ base_model: 'a' });
  const modelFolder = path.join(home.home, 'models', id);
  return { ...home, id, modelFolder };
}

const rewardsOf = async ({ runtime }: TestHome, id: string, split: string) =>
  (await all(runtime.runs.trajectories(id, split))).map(({ trajectory }) => trajectory.reward);

describe('models.log', () => {
  it('counts attempts that failed, and stores the others', async () => {
    const { runtime, id } = await openModel();
    const exceptions = [{ type: 'TIMEOUT', message: 'too slow' }];
    const trajectory_groups = [{ ...group(1, 0, 1), exceptions }];
    const { metrics, logged_trajectories } = await runtime.models.log(id, { trajectory_groups });
    expect([metrics['val/exception_rate'], metrics['val/reward'], logged_trajectories]).toEqual([
      0.25,
      2 / 3,
      3,
    ]);
    const lines = await all(runtime.runs.exceptions(id, 'val'));
    expect(lines).toEqual([
      { group: 0, index: 3, step: 0, created: expect.any(Number), exception: exceptions[0] },
    ]);
    expect(await all(runtime.runs.trajectories(id, 'val'))).toHaveLength(3);
  });

  it('keeps trajectories and says what they were worth', async () => {
    const { runtime, id, modelFolder } = await openModel();
    const trajectory_groups = [
      { trajectories: [attempt(1, { metrics: { steps: 4, won: true, none: null } }), attempt(0)] },
      group(0.5, 0.5),
    ];
    const result = await runtime.models.log(id, { split: 'test', trajectory_groups });
    expect(result).toEqual({
      logged_trajectories: 4,
      metrics: {
        'test/reward': 0.5,
        'test/reward_std_dev': 0.25, // within groups: 0.5 and 0
        'test/steps': 4,
        'test/won': 1,
        'test/exception_rate': 0,
        'test/completion_tokens': 3,
      },
    });
    const file = path.join(modelFolder, 'trajectories', 'test', '1.jsonl');
    const lines = fs.readFileSync(file, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { group: 0, index: 0, step: 0, trajectory: trajectory_groups[0]!.trajectories[0] },
      { group: 0, index: 1 },
      { group: 1, index: 0 },
      { group: 1, index: 1, trajectory: { reward: 0.5 } },
    ]);
    expect(await runtime.runs.splits(id)).toEqual({ test: 4 });
  });

  it('counts exceptions, tokens and durations', async () => {
    const { runtime, id } = await openModel();
    const untold = [{ role: 'user', content: 'hello' }] as const;
    const trajectories = [
      attempt(1, {
        metadata: { exception: 'TimeoutError', end_time: '2026-01-01T00:00:03Z' },
        start_time: '2026-01-01T00:00:00Z',
      }),
      attempt(1, {
        metadata: { exception: null },
        auto_metrics: { duration: 5, tries: 2 },
        metrics: { tries: 4 },
      }),
      attempt(1, { messages_and_choices: untold, metrics: { exception_rate: 5 } }),
      attempt(1, { additional_histories: [{ messages_and_choices: attempt(0).messages_and_choices }] }),
    ];
    const { metrics } = await runtime.models.log(id, { trajectory_groups: [{ trajectories }] });
    expect(metrics).toEqual({
      'val/reward': 1,
      'val/reward_std_dev': 0,
      'val/exception_rate': 1.5, // 1, 0, its own 5, 0
      'val/completion_tokens': 4, // 3, 3, none known, 6
      'val/duration': 4,
      'val/tries': 4,
    });
  });

  it('logs nothing of a faulty request', async () => {
    const { runtime, id, modelFolder } = await openModel();
    const bad = {
      trajectory_groups: [group(1), { trajectories: [attempt(1), { reward: 'high' }] }],
    } as never;
    expect(await faultOf(runtime.models.log(id, bad))).toEqual([
      'trajectory_groups',
      '1',
      'trajectories',
      '1',
      'messages_and_choices',
    ]);
    expect(await faultOf(runtime.models.log(id, { split: '', trajectory_groups: [] }))).toEqual(['split']);
    expect(await codeOf(runtime.models.log('nobody', { trajectory_groups: [] }))).toBe('MODEL_NOT_FOUND');
    expect(fs.readdirSync(modelFolder).sort()).toEqual(['model.json', 'run.json']);
    expect(await runtime.models.log(id, { trajectory_groups: [] })).toEqual({
      logged_trajectories: 0,
      metrics: {},
    });
    expect(await runtime.models.log(id, { trajectory_groups: [group()] })).toEqual({
      logged_trajectories: 0,
      metrics: {},
    });
  });

  it.each<[string, object]>([
    ['metrics.note', { metrics: { note: 'x' } }],
    ['metrics.note', { metrics: { note: [1] } }],
    ['metrics.reward', { metrics: { reward: 99 } }],
    ['auto_metrics.reward_std_dev', { auto_metrics: { reward_std_dev: 99 } }],
    ['auto_metrics.model', { auto_metrics: { model: 'x' } }],
  ])('refuses %s, which it could not average', async (name, fields) => {
    const { runtime, id } = await openModel();
    const trajectory_groups = [{ trajectories: [attempt(1, fields as never)] }];
    const loc = ['trajectory_groups', '0', 'trajectories', '0', ...name.split('.')];
    expect(await faultOf(runtime.models.log(id, { trajectory_groups }))).toEqual(loc);
  });

  it('takes any split', async () => {
    const home = await openModel();
    const splits = [
      'train',
      '../../x',
      'a/b',
      'Val',
      'val',
      '.',
      'con',
      '__proto__',
      'ü 語',
      'x'.repeat(500),
      `${'x'.repeat(499)}y`,
    ];
    for (const [i, split] of splits.entries())
      await home.runtime.models.log(home.id, { split, trajectory_groups: [group(i)] });
    for (const [i, split] of splits.entries()) expect(await rewardsOf(home, home.id, split)).toEqual([i]);
    expect(Object.keys(await home.runtime.runs.splits(home.id))).toEqual(splits);
    const folders = fs.readdirSync(path.join(home.modelFolder, 'trajectories'));
    expect(new Set(folders.map((name) => name.toLowerCase())).size).toBe(splits.length);
    expect(new Set(splits.map(splitFolder)).size).toBe(splits.length);
  });

  it('goes on in the next file when one is full, and reads from any group on', async () => {
    const home = await openModel();
    const { runtime, id, modelFolder } = home;
    const large = 'x'.repeat(3 * 2 ** 20);
    const groups = [1, 2, 3, 4].map((reward) => ({ trajectories: [attempt(reward, { logs: [large] })] }));
    await runtime.models.log(id, { trajectory_groups: groups });
    await runtime.models.log(id, { trajectory_groups: [group(5, 6)] });
    expect(fs.readdirSync(path.join(modelFolder, 'trajectories', 'val')).sort()).toEqual([
      '1.jsonl',
      '2.jsonl',
    ]);
    expect(await rewardsOf(home, id, 'val')).toEqual([1, 2, 3, 4, 5, 6]);
    const late = await all(runtime.runs.trajectories(id, 'val', 3));
    expect(late.map(({ group, trajectory }) => [group, trajectory.reward])).toEqual([
      [3, 4],
      [4, 5],
      [4, 6],
    ]);
  });

  it('shows nothing of a call that a crash cut off, and goes on after it', async () => {
    const home = await openModel();
    const { runtime, id, modelFolder } = home;
    const files = ['metrics.jsonl', path.join('trajectories', 'val', '1.jsonl')].map((name) =>
      path.join(modelFolder, name),
    );
    await runtime.models.log(id, { trajectory_groups: [group(1)] });
    for (const file of files) fs.appendFileSync(file, `${fs.readFileSync(file, 'utf8')}{"cut o`);
    expect(await rewardsOf(home, id, 'val')).toEqual([1]);
    expect(await all(runtime.runs.metrics(id))).toHaveLength(1);
    await runtime.models.log(id, { trajectory_groups: [group(2)] });
    expect(await rewardsOf(home, id, 'val')).toEqual([1, 2]);
    expect(await all(runtime.runs.metrics(id))).toHaveLength(2);
    for (const file of files) expect(fs.readFileSync(file, 'utf8').split('\n')).toHaveLength(3);
    expect(home.problems).toEqual([]);
  });

  it('names a damaged line and skips it', async () => {
    const home = await openModel();
    await home.runtime.models.log(home.id, { trajectory_groups: [group(1, 2, 3)] });
    const file = path.join(home.modelFolder, 'trajectories', 'val', '1.jsonl');
    const bytes = fs.readFileSync(file);
    bytes[bytes.indexOf('\n') + 1] = 0x78;
    fs.writeFileSync(file, bytes);
    expect(await rewardsOf(home, home.id, 'val')).toEqual([1, 3]);
    expect(home.problems).toEqual([expect.stringContaining(path.join('val', '1.jsonl'))]);
  });

  it('overwrites nothing when it is not known how much there is', async () => {
    const { runtime, id, modelFolder } = await openModel();
    await runtime.models.log(id, { trajectory_groups: [group(1)] });
    const [metrics, committed] = ['metrics.jsonl', 'committed.json'].map((name) =>
      path.join(modelFolder, name),
    );
    const before = fs.readFileSync(metrics!, 'utf8');
    fs.writeFileSync(committed!, '{ "format"');
    await expect(runtime.models.log(id, { trajectory_groups: [group(2)] })).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('committed.json is damaged'),
    });
    expect(fs.readFileSync(metrics!, 'utf8')).toBe(before);
  });

  it('may be called many times at once', async () => {
    const home = await openModel();
    const calls = Array.from({ length: 20 }, (_, i) =>
      home.runtime.models.log(home.id, { trajectory_groups: [group(i)] }),
    );
    await Promise.all(calls);
    expect((await rewardsOf(home, home.id, 'val')).sort((a, b) => a - b)).toEqual(calls.map((_, i) => i));
    const groups = (await all(home.runtime.runs.trajectories(home.id, 'val'))).map((line) => line.group);
    expect(groups).toEqual(calls.map((_, i) => i));
  });
});

describe('a run', () => {
  it('has the metrics of logs and of training, as lines and as CSV', async () => {
    const { runtime, store, id } = await openModel();
    await addSteps(store, id, [0.5]);
    const job = await store.createJob(id, { config: { learning_rate: 1e-4 } });
    await job.finish({ status: 'completed', step: 1, metrics: { 'train/reward': 0.5, 'loss/train': 0.1 } });
    await runtime.models.log(id, { split: 'a,"b"', trajectory_groups: [group(1)] });
    expect(await all(runtime.runs.metrics(id))).toMatchObject([
      { step: 1, source: 'training', metrics: { 'train/reward': 0.5 } },
      { step: 1, source: 'a,"b"', metrics: { 'a,"b"/reward': 1 } },
    ]);
    const csv = (await all(runtime.runs.metricsCsv(id))).join('').split('\r\n');
    expect(csv[0]).toBe(
      'step,created,source,"a,""b""/completion_tokens","a,""b""/exception_rate","a,""b""/reward","a,""b""/reward_std_dev",loss/train,train/reward',
    );
    expect(csv[1]).toMatch(/^1,\d+,training,,,,,0\.1,0\.5$/);
    expect(csv[2]).toMatch(/^1,\d+,"a,""b""",3,0,1,0,,$/);
    expect(await runtime.runs.retrieve(id)).toMatchObject({
      config: { learning_rate: 1e-4 },
      system: { node: process.versions.node, onpolicy: expect.any(String) },
    });
  });

  it('is there again when the home is opened again', async () => {
    const first = await openModel();
    await first.runtime.models.log(first.id, { trajectory_groups: [group(1)] });
    await closeAll();
    const again = await open(first.home);
    expect(await rewardsOf(again, first.id, 'val')).toEqual([1]);
    expect(await codeOf(all(again.runtime.runs.metrics('nobody')))).toBe('MODEL_NOT_FOUND');
  });
});

describe('what training learned from', () => {
  const groups = (start: number) => Array.from({ length: 20 }, (_, i) => group(start + i));
  const train = (home: Awaited<ReturnType<typeof openModel>>, step: number, mostBytes: number) =>
    home.store.runs.logTraining(
      home.id,
      step,
      {},
      {
        groups: groups(step * 20),
        policyStep: step - 1,
        mostBytes,
      },
    );

  it('is kept as the split `train`, with the step that sampled it', async () => {
    const home = await openModel();
    await train(home, 1, 1e6);
    await train(home, 2, 1e6);
    const kept = await all(home.runtime.runs.trajectories(home.id, 'train'));
    expect(kept.map(({ trajectory }) => trajectory.reward)).toEqual(
      Array.from({ length: 40 }, (_, i) => 20 + i),
    );
    expect(kept.map(({ step }) => step)).toEqual(Array.from({ length: 40 }, (_, i) => (i < 20 ? 0 : 1)));
  });

  it('gives way to what is newer, and what was logged does not', async () => {
    const home = await openModel();
    await home.runtime.models.log(home.id, { split: 'train', trajectory_groups: [group(-1)] });
    const line = JSON.stringify(attempt(100)).length + 60;
    for (let step = 1; step <= 10; step++) await train(home, step, 40 * line);
    const rewards = await rewardsOf(home, home.id, 'train');
    expect(rewards[0]).toBe(-1);
    expect(rewards.at(-1)).toBe(219);
    expect(rewards.length).toBeGreaterThan(20);
    expect(rewards.length).toBeLessThan(50);
    expect(rewards.slice(1)).toEqual(rewards.slice(1).map((_, i) => 220 - (rewards.length - 1) + i));
    const folder = path.join(home.modelFolder, 'trajectories', 'train');
    const bytes = fs.readdirSync(folder).map((file) => fs.statSync(path.join(folder, file)).size);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60 * line);
    const last = await all(home.runtime.runs.trajectories(home.id, 'train', 200));
    expect(last[0]?.group).toBe(200);
  });

  it('is not kept with 0 bytes', async () => {
    const home = await openModel();
    await train(home, 1, 0);
    expect(await home.runtime.runs.splits(home.id)).toEqual({});
  });
});
