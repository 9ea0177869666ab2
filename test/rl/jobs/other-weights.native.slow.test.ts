/** Models of one base with different adapters, trained in turns -> each is what it is when it is trained alone, or its job is refused. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import type { RuntimeOptions, Trajectory, TrajectoryGroup } from '../../../src/protocol/index.ts';
import { type AdapterWeights, openTrainer, type Trainer } from '../../../src/rl/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { randomAdapter } from '../random-adapter.ts';
import { normals } from '../tiny-model.ts';

/** ONPOLICY_INTERLEAVINGS=50 runs as many as the acceptance test. */
const INTERLEAVINGS = Number(process.env['ONPOLICY_INTERLEAVINGS'] ?? 2);
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-turns-'));
afterAll(() => fs.rmSync(root, { recursive: true }));
const MODEL = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');
const open = (home: string, training: RuntimeOptions['training'] = {}) =>
  createRuntime({ home, gpu: false, threads: 1, training });

type Shape = NonNullable<RuntimeOptions['training']>;
const SHAPES: readonly Shape[] = [
  {},
  { modules: ['attn_q'] },
  { modules: ['attn_q', 'ffn_down'], rank: 4 },
  { modules: ['blk.0.attn_k', 'ffn_up'], alpha: 4 },
  { rank: 2, rslora: true },
];

/** One job: settings and what it learns. `reference`: how many steps before the newest one the reference is; 0: the base. */
type Job = { readonly reference: number | null; readonly rate: number; readonly seed: number };
type Turn = { readonly model: 0 | 1; readonly job: Job };

function generator(seed: number): (below: number) => number {
  const normal = normals(seed);
  return (below) => Math.floor(Math.abs(normal() * 1e4)) % below;
}

function groupOf(seed: number): TrajectoryGroup {
  const draw = generator(seed);
  const trajectories = [0, 1, 2].map((i): Trajectory => {
    const token_ids = Array.from({ length: 2 + draw(5) }, () => 5 + draw(200));
    const content = token_ids.map(() => ({ token: 'x', logprob: -1 - draw(100) / 50 }));
    const choice = {
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'x' },
      token_ids,
    };
    return {
      messages_and_choices: [
        { role: 'user', content: 'Hi' },
        { ...choice, logprobs: { content } },
      ] as never,
      reward: i === draw(3) ? 2 : i,
    };
  });
  return { trajectories };
}

/** Trains models in turns, each begun under its own settings, and returns the last checkpoint of each. */
async function train(home: string, shapes: readonly (Shape | null)[], turns: readonly Turn[]) {
  const ids: (string | null)[] = [];
  const run = async (
    runtime: Awaited<ReturnType<typeof open>>,
    id: string,
    { reference, rate, seed }: Job,
  ) => {
    const { step } = await runtime.models.retrieve(id);
    const back = reference === null ? null : Math.max(0, step - reference);
    const job = await runtime.train({
      model_id: id,
      trajectory_groups: [groupOf(seed)],
      experimental_config: {
        learning_rate: rate,
        ...(back === null ? {} : { kl_penalty_coef: 0.1, kl_penalty_reference_step: back }),
      },
    });
    await job.done;
  };
  for (const [i, shape] of shapes.entries()) {
    if (!shape) {
      ids.push(null);
      continue;
    }
    await using runtime = await open(home, shape);
    const { id } = await runtime.models.create({ base_model: EMBEDDED_MODEL });
    ids.push(id);
    await run(runtime, id, { reference: null, rate: 1e-3, seed: i });
  }
  await using runtime = await open(home);
  for (const { model, job } of turns) await run(runtime, ids[model]!, job);
  const files: (Record<string, string> | null)[] = [];
  for (const id of ids) {
    if (id === null) files.push(null);
    else {
      const { step } = await runtime.models.retrieve(id);
      const folder = await runtime.checkpoints.folder(id, step);
      const names = [
        'adapter.gguf',
        'adapter_model.safetensors',
        'adapter_config.json',
        'optimizer.safetensors',
      ];
      files.push(
        Object.fromEntries(names.map((name) => [name, fs.readFileSync(path.join(folder, name), 'base64')])),
      );
    }
  }
  return files;
}

describe('two models of one base, trained in turns', () => {
  for (let n = 0; n < INTERLEAVINGS; n++)
    it(`are what they are alone (${n})`, { timeout: 300_000 }, async () => {
      const draw = generator(n + 1);
      const shapes = [SHAPES[draw(SHAPES.length)]!, SHAPES[draw(SHAPES.length)]!];
      const turns = Array.from({ length: 4 }, (_, i): Turn => {
        const reference = [null, 0, 1, 9][draw(4)]!;
        const job = {
          reference: reference === 9 ? 0 : reference,
          rate: [1e-3, 1e-9][draw(2)]!,
          seed: 10 * n + i,
        };
        return { model: draw(2) as 0 | 1, job };
      });
      const home = (name: string) => path.join(root, `${n}-${name}`);
      const both = await train(home('both'), shapes, turns);
      for (const model of [0, 1] as const) {
        const alone = await train(
          home(`alone-${model}`),
          shapes.map((shape, i) => (i === model ? shape : null)),
          turns.filter((turn) => turn.model === model),
        );
        expect(both[model]).toEqual(alone[model]);
      }
    });
});

describe('a job whose model was begun otherwise than the runtime asks for', () => {
  const home = path.join(root, 'asked');
  const request = async (training: Shape, config = {}) => {
    await using runtime = await open(home, training);
    const [model] = (await runtime.models.list()).data;
    const id = model?.id ?? (await runtime.models.create({ base_model: EMBEDDED_MODEL })).id;
    const job = await runtime.train({
      model_id: id,
      trajectory_groups: [groupOf(1)],
      experimental_config: config,
    });
    return (await job.done).step;
  };
  const refusal = (training: Shape) =>
    request(training).then(
      () => 'taken',
      ({ code, param, message }) => `${code} ${param} ${message}`,
    );

  it('is refused before it starts, with the name of the setting', { timeout: 300_000 }, async () => {
    expect(await request({ modules: ['attn_q', 'attn_k'], rank: 4, alpha: 12 })).toBe(1);
    expect(await refusal({ rank: 8 })).toMatch(/^INVALID_REQUEST training.rank .*expected 4, .* got 8/);
    expect(await refusal({ alpha: 16 })).toMatch(/^INVALID_REQUEST training.alpha .*expected 12/);
    expect(await refusal({ rslora: true })).toMatch(/^INVALID_REQUEST training.rslora .*expected false/);
    expect(await refusal({ modules: ['attn_q'] })).toMatch(
      /^INVALID_REQUEST training.modules .*it also has blk.0.attn_k/,
    );
    expect(await refusal({ modules: ['attn_q', 'attn_k', 'attn_v'] })).toMatch(/lacks blk.0.attn_v/);
    expect(await refusal({ modules: ['attn_k', 'attn_q'], rank: 4 })).toBe('taken');
    expect(await request({})).toBe(3);
    await using runtime = await open(home);
    const [model] = (await runtime.models.list()).data;
    expect((await runtime.trainingJobs.list({ model_id: model!.id })).data).toHaveLength(3);
    const name = model!.id;
    await expect(runtime.openTraining({ model: name, rank: 8 })).rejects.toMatchObject({ param: 'rank' });
    await using run = await runtime.openTraining({ model: name });
    expect((await runtime.trainingRuns.retrieve(run.id)).rank).toBe(4);
  });
});

describe('a trainer', () => {
  const opened: Trainer[] = [];
  afterAll(() => Promise.all(opened.map((trainer) => trainer.close())));
  const openOne = async (options: Shape) => {
    const { trajectoryBytes: _, ...given } = options;
    const trainer = await openTrainer({ model: MODEL, gpu: false, threads: 1, ...given });
    opened.push(trainer);
    return trainer;
  };
  const disturb = async (trainer: Trainer) => {
    await trainer.loadAdapter(randomAdapter(trainer, normals(5), 0.1));
    return trainer.adapter();
  };

  it('loads a folder whole: modules that it lacks are at their start', async () => {
    const folder = path.join(root, 'narrow');
    const narrow = await openOne({ modules: ['attn_q'] });
    const saved = await disturb(narrow);
    await narrow.save(folder);
    const wide = await openOne({});
    const start = wide.adapter();
    for (const load of [() => wide.load(folder), () => wide.loadAdapter(folder)]) {
      await disturb(wide);
      await load();
      expect(wide.adapter()).toEqual({ ...start, ...saved } satisfies AdapterWeights);
    }
    const { firstMoment, stepCount } = await wide.state();
    expect(stepCount).toBe(0);
    for (const { a, b } of Object.values(firstMoment))
      expect([...a, ...b].every((one) => one === 0)).toBe(true);
  });

  it('refuses a folder with modules that it lacks, or another rank or scale, and is as before', async () => {
    const folder = path.join(root, 'wide');
    const wide = await openOne({});
    await disturb(wide);
    await wide.save(folder);
    for (const options of [{ modules: ['attn_q'] }, { rank: 4 }, { alpha: 4 }, { rslora: true }]) {
      const other = await openOne(options);
      const before = await disturb(other);
      for (const load of [() => other.load(folder), () => other.loadAdapter(folder)]) {
        await expect(load()).rejects.toThrow(/the trainer was opened with/);
        expect(other.adapter()).toEqual(before);
      }
    }
  });
});
