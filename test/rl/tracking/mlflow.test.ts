/** Runs -> requests to an MLflow server. */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { mlflowTracker } from '../../../src/rl/tracking/mlflow-tracker.ts';
import { closeAll, newHome, open } from '../store/homes.ts';

type Body = Record<string, unknown>;
type Field = { readonly type: string; readonly isRequired?: boolean };
const TEXT: Field = { type: 'string' };
const NAME: Field = { type: 'string', isRequired: true };

/** The published REST API 2.0: fields of the requests that are used here. */
const CONTRACT: Record<string, Record<string, Field>> = {
  'POST experiments/create': { name: NAME, artifact_location: TEXT, tags: { type: 'array' } },
  'POST runs/create': {
    experiment_id: NAME,
    user_id: TEXT,
    run_name: TEXT,
    start_time: { type: 'number' },
    tags: { type: 'array' },
  },
  'POST runs/log-batch': {
    run_id: NAME,
    metrics: { type: 'array' },
    params: { type: 'array' },
    tags: { type: 'array' },
  },
  'POST runs/delete': { run_id: NAME },
};
const METRIC = { key: 'string', value: 'number', timestamp: 'number', step: 'number' };
const TAG = { key: 'string', value: 'string' };
const NAMES = /^[\w\-. /]{1,250}$/;

type Run = { experiment: string; metrics: Body[]; tags: Map<string, unknown>; isDeleted: boolean };

/** Stands in for MLflow: refuses what the published contract does not have. */
class StandIn {
  readonly runs = new Map<string, Run>();
  readonly experiments = new Map<string, string>();
  readonly faults: string[] = [];
  readonly authorizations = new Set<unknown>();
  isDown = false;
  /** A name that it takes for no metric, whatever it is. */
  refused: string | null = null;
  readonly server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.authorizations.add(request.headers.authorization);
    const url = new URL(request.url ?? '', 'http://stand-in');
    const [status, answer] = this.isDown
      ? [503, 'down for maintenance']
      : this.answer(
          request.method ?? '',
          url,
          Buffer.concat(chunks).toString(),
          request.headers['content-type'],
        );
    response.writeHead(status).end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });

  answer(method: string, url: URL, text: string, contentType?: string): [number, Body | string] {
    const name = url.pathname.replace('/api/2.0/mlflow/', '');
    if (method === 'GET' && name === 'experiments/get-by-name') {
      const experiment_id = this.experiments.get(url.searchParams.get('experiment_name') ?? '');
      if (experiment_id === undefined) return missing('experiment');
      return [200, { experiment: { experiment_id, lifecycle_stage: 'active' } }];
    }
    const fields = CONTRACT[`${method} ${name}`];
    if (!fields || contentType !== 'application/json')
      return this.refuse(`no ${method} ${name} as ${contentType}`);
    const body = JSON.parse(text) as Body;
    for (const [field, value] of Object.entries(body)) {
      const kind = Array.isArray(value) ? 'array' : typeof value;
      if (fields[field]?.type !== kind) return this.refuse(`${name}: ${field} is ${kind}`);
    }
    for (const [field, { isRequired }] of Object.entries(fields))
      if (isRequired && !(field in body)) return this.refuse(`${name}: ${field} is missing`);
    if (Buffer.byteLength(text) > 1e6) return this.refuse(`${name}: larger than 1 MB`);
    return this.act(name, body);
  }

  act(name: string, body: Body): [number, Body | string] {
    if (name === 'experiments/create') {
      this.experiments.set(body['name'] as string, String(this.experiments.size + 1));
      return [200, { experiment_id: this.experiments.get(body['name'] as string) }];
    }
    if (name === 'runs/create') {
      const run_id = `run-${this.runs.size + 1}`;
      const experiment = body['experiment_id'] as string;
      const tags = this.pairs(body['tags']);
      this.runs.set(run_id, { experiment, metrics: [], tags, isDeleted: false });
      return [200, { run: { info: { run_id, status: 'RUNNING' }, data: {} } }];
    }
    const run = this.runs.get(body['run_id'] as string);
    if (!run || run.isDeleted) return missing('run');
    if (name === 'runs/delete') run.isDeleted = true;
    else {
      const metrics = (body['metrics'] ?? []) as Body[];
      if (metrics.length > 1000) return this.refuse('more than 1000 metrics');
      if (metrics.some(({ key }) => key === this.refused))
        return [400, { error_code: 'INVALID_PARAMETER_VALUE', message: `no metric ${this.refused}` }];
      for (const metric of metrics) {
        this.check(metric, METRIC);
        // MLflow's `path_not_unique`
        const key = metric['key'] as string;
        if (path.posix.normalize(key) !== key || /^(\.|\/)/.test(key) || key.endsWith('/')) this.refuse(key);
      }
      run.metrics.push(...metrics);
      for (const [key, value] of this.pairs(body['tags'])) run.tags.set(key, value);
    }
    return [200, {}];
  }

  pairs(tags: unknown): Map<string, unknown> {
    for (const tag of (tags ?? []) as Body[]) this.check(tag, TAG);
    return new Map(((tags ?? []) as Body[]).map(({ key, value }) => [key as string, value]));
  }

  check(item: Body, fields: Record<string, string>): void {
    const isRight = Object.entries(fields).every(([field, type]) => typeof item[field] === type);
    if (
      !isRight ||
      Object.keys(item).length !== Object.keys(fields).length ||
      !NAMES.test(item['key'] as string)
    )
      this.refuse(JSON.stringify(item));
  }

  refuse(message: string): [number, Body] {
    this.faults.push(message);
    return [400, { error_code: 'INVALID_PARAMETER_VALUE', message }];
  }
}

function missing(what: string): [number, Body] {
  return [404, { error_code: 'RESOURCE_DOES_NOT_EXIST', message: `no such ${what}` }];
}

const standIns: StandIn[] = [];
afterEach(() => {
  for (const { server, faults } of standIns.splice(0)) {
    server.close();
    expect(faults).toEqual([]);
  }
});

async function setUp() {
  const standIn = new StandIn();
  standIns.push(standIn);
  await new Promise<void>((resolve) => standIn.server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(standIn.server.address() as AddressInfo).port}/`;
  const tracker = mlflowTracker({ url, token: 'secret' });
  return { standIn, tracker, ...(await open(newHome(), { tracker })) };
}

const log = {
  split: 'val: x',
  trajectory_groups: [{ trajectories: [{ messages_and_choices: [], reward: 1 }] }],
};

describe('the MLflow tracker', () => {
  it('has what the run has', async () => {
    const { runtime, store, standIn } = await setUp();
    const { id } = await runtime.models.create({ base_model: 'base', name: 'adder' });
    expect(standIn.runs.size).toBe(0);
    await runtime.models.log(id, log);
    const job = await store.createJob(id, { config: { learning_rate: 0.001, ppo: true, epsilon: null } });
    await job.finish({ status: 'completed', step: 7, metrics: { 'train/reward': 0.25 } });
    await store.runs.idle();
    expect([...standIn.experiments.keys()]).toEqual(['onpolicy']);
    expect([...standIn.authorizations]).toEqual(['Bearer secret']);
    const run = standIn.runs.get('run-1')!;
    expect(Object.fromEntries(run.tags)).toMatchObject({
      model_id: id,
      base_model: 'base',
      learning_rate: '0.001',
      ppo: 'true',
    });
    expect(run.metrics.map(({ key, value, step }) => [key, value, step])).toEqual([
      ['val_ x/reward_std_dev', 0, 0],
      ['val_ x/reward', 1, 0],
      ['val_ x/exception_rate', 0, 0],
      ['train/reward', 0.25, 7],
    ]);
    expect(run.metrics[0]!['timestamp']).toBeGreaterThan(1e12);
    expect(await runtime.models.delete(id)).toMatchObject({ deleted_run: true });
    expect(run.isDeleted).toBe(true);
  });

  it.each(['/x', 'a//b', '.', '..', '../../a', 'a/./b', 'a/../b', 'a/', `${'long/'.repeat(60)}x`, 'é/ü'])(
    'takes the metrics of the split %j',
    async (split) => {
      const { runtime, store, standIn, problems } = await setUp();
      const { id } = await runtime.models.create({ base_model: 'base' });
      await runtime.models.log(id, { ...log, split });
      await store.runs.idle();
      expect(problems).toEqual([]);
      expect(standIn.runs.get('run-1')!.metrics.length).toBeGreaterThan(0);
    },
  );

  it('gets everything but a metric that it refuses, which is reported once', async () => {
    const { runtime, store, standIn, problems } = await setUp();
    const { id } = await runtime.models.create({ base_model: 'base' });
    standIn.refused = 'val/odd';
    const odd = (reward: number) => ({
      trajectory_groups: [
        { trajectories: [{ messages_and_choices: [], reward, metrics: { odd: 1, even: 2 } }] },
      ],
    });
    for (let i = 0; i < 3; i++) {
      await runtime.models.log(id, odd(i));
      await store.runs.idle();
    }
    expect(problems).toEqual([expect.stringContaining('"val/odd"')]);
    const names = standIn.runs.get('run-1')!.metrics.map(({ key }) => key as string);
    expect(names.filter((name) => name === 'val/even')).toHaveLength(3);
    expect(names.filter((name) => name === 'val/reward')).toHaveLength(3);
    expect(names).not.toContain('val/odd');
  });

  it('gets the mean of rewards whose sum is beyond a float', async () => {
    const { runtime, store, standIn } = await setUp();
    const { id } = await runtime.models.create({ base_model: 'base' });
    const trajectories = [1e308, 1e308, 1.2e308].map((reward) => ({ messages_and_choices: [], reward }));
    await runtime.models.log(id, { trajectory_groups: [{ trajectories }] });
    await store.runs.idle();
    const found = standIn.runs.get('run-1')!.metrics.find(({ key }) => key === 'val/reward')!;
    expect((found['value'] as number) / 1e308).toBeCloseTo(3.2 / 3, 9);
  });

  it('gets later what it could not take, and logging goes on meanwhile', async () => {
    const { runtime, store, standIn, problems } = await setUp();
    const { id } = await runtime.models.create({ base_model: 'base' });
    standIn.isDown = true;
    for (let i = 0; i < 3; i++) await runtime.models.log(id, log);
    await store.runs.idle();
    expect(problems).toEqual([expect.stringContaining('503')]);
    standIn.isDown = false;
    await runtime.models.log(id, log);
    await store.runs.idle();
    expect(standIn.runs.get('run-1')!.metrics).toHaveLength(12);
    await runtime.models.log(id, log);
    await store.runs.idle();
    expect(standIn.runs.get('run-1')!.metrics).toHaveLength(15);
  });

  it('loses the run of a deleted model, if only when the home is next opened', async () => {
    const { runtime, store, standIn, tracker, home } = await setUp();
    const { id } = await runtime.models.create({ base_model: 'base' });
    await runtime.models.log(id, log);
    await store.runs.idle();
    standIn.isDown = true;
    expect(await runtime.models.delete(id)).toMatchObject({ deleted_run: false });
    expect((await runtime.models.list()).data).toEqual([]);
    await closeAll();
    standIn.isDown = false;
    const again = await open(home, { tracker });
    await again.runtime.models.create({ base_model: 'base' });
    expect(standIn.runs.get('run-1')!.isDeleted).toBe(true);
    expect(fs.readdirSync(path.join(home, 'trash'))).toEqual([]);
  });
});
