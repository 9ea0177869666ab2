/** Random orders of training, logging and pruning -> each number at the step of the policy that it measures, as a plain model has them. */
import { afterEach, describe, expect, it } from 'vitest';
import type { LogRequest } from '../../../src/protocol/index.ts';
import { writeStep } from '../../../src/rl/checkpoint-step.ts';
import { readReport } from '../../../src/rl/report/report-data.ts';
import { fakeTrainer } from '../fake-trainer.ts';
import { normals } from '../tiny-model.ts';
import { closeAll, open } from './homes.ts';

afterEach(closeAll);

type Groups = LogRequest['trajectory_groups'];

async function openModel() {
  const home = await open();
  const { id } = await home.runtime.models.create({ base_model: 'base', name: null, return_existing: false });
  return { ...home, id };
}
type Home = Awaited<ReturnType<typeof openModel>>;

/** A job as `train` leaves it: a checkpoint with what training measured, and the end of its record. */
async function train({ store, id }: Home, groups: Groups, loss: number): Promise<number> {
  const policyStep = (await store.getModel(id)).step;
  const job = await store.createJob(id, { trained: { groups, policyStep, mostBytes: 1e6 } });
  const step = (await store.newestStep(id)) + 1;
  const metrics = { 'loss/train': loss };
  await writeStep(store.checkpointsFolder(id), fakeTrainer(), {
    id: store.newCheckpointId(id, step),
    step,
    metrics,
    trajectory_hash: '',
  });
  const rewards = groups.flatMap(({ trajectories }) => trajectories.map(({ reward }) => reward));
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  await job.finish({ status: 'completed', step, metrics: { ...metrics, 'train/reward': mean } });
  return step;
}

const attempt = (reward: number, version: number | null = null) => ({
  messages_and_choices: [],
  reward,
  ...(version === null ? {} : { final_policy_version: version }),
});

function add(lists: Record<string, number[]>, name: string, value: number): void {
  lists[name] = [...(lists[name] ?? []), value];
}

/** The means of a model's run by step and name. */
async function curvesOf({ runtime, id }: Home): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for await (const { step, metrics } of runtime.runs.metrics(id))
    for (const [name, value] of Object.entries(metrics)) add(found, `${step} ${name}`, value!);
  return found;
}

describe('what trajectories measured', () => {
  it('stands beside its checkpoint on the report page', async () => {
    const home = await openModel();
    await train(home, [{ trajectories: [attempt(0.9)] }], 1);
    await train(home, [{ trajectories: [attempt(0.1)] }], 2); // by the policy of step 1
    const { checkpoints } = await readReport(home.store, home.id, null);
    expect(
      checkpoints.map(({ step, metrics }) => [step, metrics['loss/train'], metrics['train/reward']]),
    ).toEqual([
      [2, 2, undefined],
      [1, 1, 0.1],
    ]);
  });

  it('belongs to the policy that sampled them: pruning keeps the best, not the step after it', async () => {
    const home = await openModel();
    await train(home, [{ trajectories: [attempt(0.9), attempt(0.7)] }], 1); // the base is good, step 1 is not
    await train(home, [{ trajectories: [attempt(0.1), attempt(0.1)] }], 2);
    await train(home, [{ trajectories: [attempt(0.5), attempt(0.5)] }], 3);
    const curves = await curvesOf(home);
    expect(curves['0 train/reward']![0]).toBeCloseTo(0.8, 12);
    expect(curves).toMatchObject({ '1 train/reward': [0.1], '2 train/reward': [0.5], '1 loss/train': [1] });
    await home.runtime.checkpoints.prune(home.id, { keep: 1, metric: 'train/reward' });
    const { data } = await home.runtime.checkpoints.list(home.id);
    expect(data.map(({ step }) => step)).toEqual([3, 2]); // 3 is the newest
  });

  it('of several policies in one request is filed at each', async () => {
    const home = await openModel();
    for (const reward of [0, 1])
      await train(home, [{ trajectories: [attempt(reward), attempt(1 - reward)] }], 1);
    const { metrics } = await home.runtime.models.log(home.id, {
      split: 'val',
      trajectory_groups: [{ trajectories: [attempt(0, 1), attempt(1, 1)] }, { trajectories: [attempt(4)] }],
    });
    expect(metrics['val/reward']).toBeCloseTo(5 / 3, 12);
    expect(await curvesOf(home)).toMatchObject({ '1 val/reward': [0.5], '2 val/reward': [4] });
    const steps: number[] = [];
    for await (const { step } of home.runtime.runs.trajectories(home.id, 'val')) steps.push(step);
    expect(steps).toEqual([1, 1, 2]);
  });

  it('of a step that the model never had is refused', async () => {
    const home = await openModel();
    await train(home, [{ trajectories: [attempt(0), attempt(1)] }], 1);
    const request = { trajectory_groups: [{ trajectories: [attempt(1), attempt(1, 2)] }] };
    await expect(home.runtime.models.log(home.id, request)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'trajectory_groups.0.trajectories.1.final_policy_version',
    });
  });
});

describe('random orders of training, logging and pruning', () => {
  it.each([1, 2, 3, 4, 5, 6])('leave what a plain model leaves (%i)', async (seed) => {
    const normal = normals(seed);
    const below = (count: number) => Math.floor(Math.abs(normal() * 1e4)) % count;
    const home = await openModel();
    const expected: Record<string, number[]> = {};
    const file = (step: number, name: string, value: number) => add(expected, `${step} ${name}`, value);
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    let steps: number[] = [];
    let newest = 0; // that the model has
    let highest = 0; // that it ever had
    for (let i = 0; i < 14; i++) {
      const rewards = Array.from({ length: 2 + below(3) }, () => below(1000) / 1000);
      const versions = rewards.map(() => (below(3) === 0 ? below(highest + 1) : null));
      const groups = [{ trajectories: rewards.map((reward, t) => attempt(reward, versions[t]!)) }];
      const fileRewards = (split: string) => {
        const at = versions.map((version) => version ?? newest);
        for (const step of new Set(at))
          file(step, `${split}/reward`, mean(rewards.filter((_, t) => at[t] === step)));
      };
      switch (below(3)) {
        case 0: {
          fileRewards('train');
          newest = await train(home, groups, i);
          highest = newest;
          steps.push(newest);
          file(newest, 'loss/train', i);
          break;
        }
        case 1:
          await home.runtime.models.log(home.id, { split: 'val', trajectory_groups: groups });
          fileRewards('val');
          break;
        default: {
          const metric = ['train/reward', 'val/reward', 'loss/train', 'val/rewards'][below(4)]!;
          const goal = below(2) === 0 ? 'max' : 'min';
          const keep = 1 + below(3);
          const valued = steps.flatMap((step) => {
            const values = expected[`${step} ${metric}`];
            return values ? [{ step, value: mean(values) }] : [];
          });
          const pruned = home.runtime.checkpoints.prune(home.id, { keep, metric, goal });
          if (steps.length > 0 && valued.length === 0) {
            await expect(pruned).rejects.toMatchObject({ param: 'metric' });
            break;
          }
          await pruned;
          const sign = goal === 'max' ? 1 : -1;
          const worst = valued
            .sort((a, b) => sign * (b.value - a.value) || b.step - a.step)
            .slice(keep)
            .map(({ step }) => step);
          steps = steps.filter((step) => step === newest || !worst.includes(step));
        }
      }
      const { data } = await home.runtime.checkpoints.list(home.id, { order: 'asc', limit: 100 });
      expect(data.map(({ step }) => step)).toEqual(steps);
    }
    const found = await curvesOf(home);
    const compared = Object.entries(found).filter(([name]) => /(train|val)\/reward$|loss/.test(name));
    expect(Object.fromEntries(compared)).toEqual(
      Object.fromEntries(
        Object.entries(expected).map(([name, values]) => [name, values.map((v) => expect.closeTo(v, 9))]),
      ),
    );
  });
});
