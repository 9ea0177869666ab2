import fs from 'node:fs';
import promises from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { listSteps, readFacts, stepFolder } from '../../src/rl/checkpoint-step.ts';
import { diverged, type TrainTools } from '../../src/rl/train.ts';
import type { TrajectoryChoice, TrajectoryGroup } from '../../src/rl/trajectory.ts';
import { group, setUp } from './fake-job.ts';
import { fakeTrainer } from './fake-trainer.ts';
import { normals } from './tiny-model.ts';
import { sft, train } from './training.ts';

/** Returns Node's error for a folder that cannot be listed. */
function systemError(code: string): Error {
  return Object.assign(new Error(code), { code, errno: -1, syscall: 'scandir', path: '/somewhere' });
}

describe('train', () => {
  it('takes a step, says so, and leaves the next checkpoint', async () => {
    const { trainer, events, checkpoints, tools } = setUp();
    const result = await train(
      {
        trajectory_groups: [group([2, 1], [4, 0]), group([3, 1], [3, 1])],
        experimental_config: { learning_rate: 0.1 },
      },
      tools,
    );
    expect(events.map(({ type }) => type)).toEqual(['training_started', 'gradient_step', 'training_ended']);
    expect(result).toMatchObject({ step: 1, trajectory_hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(result.metrics).toMatchObject({
      'train/reward': 0.75,
      'train/reward_std_dev': 0.25,
      'train/length': 3,
      'train/skipped_steps': 0,
      'train/clip_fraction': 0,
      'data/step_num_trajectories': 4,
      'data/step_num_groups_submitted': 2,
      'data/step_num_groups_trainable': 1,
      'data/step_num_truncated': 0,
      'data/step_trainable_tokens': 6,
      'data/step_packed_tokens': 13, // the prompt of 7 once
      'loss/learning_rate': 0.1,
      'time/step_trainer_s': 0.5,
      'throughput/train_tok_per_s': 26,
    });
    expect(result.metrics['loss/entropy']).toBeCloseTo(0.5, 5);
    // Every answer weighs the same: gradients of the good one add up to -1/2, those of the bad one to +1/2.
    const seen = trainer.gradients_seen[0]!;
    expect(seen.slice(0, 2).reduce((sum, value) => sum + value, 0)).toBeCloseTo(-0.5, 3);
    expect(seen.slice(2).reduce((sum, value) => sum + value, 0)).toBeCloseTo(0.5, 3);
    // Metrics of the trajectories belong to the weights that sampled them, not to this checkpoint.
    const sampled = ['train/reward', 'train/reward_std_dev', 'train/length'];
    const made = Object.entries(result.metrics).filter(([name]) => !sampled.includes(name));
    const facts = await readFacts(checkpoints, 1);
    expect(facts).toMatchObject({ id: result.id, step: 1 });
    expect(facts.metrics).toEqual(Object.fromEntries(made));
  });

  it('leaves no step without a gradient', async () => {
    const { events, checkpoints, tools } = setUp();
    const result = await train({ trajectory_groups: [group([3, 1], [3, 1])] }, tools);
    expect(result).toMatchObject({ step: 0, id: null });
    expect(events.map(({ type }) => type)).toEqual(['training_started', 'training_ended']);
    const { id } = await train({ trajectory_groups: [group([2, 1], [4, 0])] }, tools);
    expect(await train({ trajectory_groups: [] }, tools)).toMatchObject({ step: 1, id });
    const silent = [{ messages: [{ role: 'user', content: 'a' }] }];
    expect(await sft({ data: silent }, tools)).toMatchObject({ step: 1, id });
    expect(await listSteps(checkpoints)).toEqual([1]);
  });

  it('never uses the number of a step twice', async () => {
    const { checkpoints, tools } = setUp();
    const request = { trajectory_groups: [group([2, 1], [4, 0])] };
    await train(request, tools);
    await train(request, tools);
    fs.rmSync(stepFolder(checkpoints, 2), { recursive: true });
    expect(await train(request, tools)).toMatchObject({ step: 3 });
    fs.rmSync(stepFolder(checkpoints, 3), { recursive: true });
    fs.rmSync(stepFolder(checkpoints, 1), { recursive: true });
    expect(await train(request, tools)).toMatchObject({ step: 4 });
  });

  it.each<[string, (checkpoints: string) => void]>([
    [
      'the folder of the steps cannot be listed',
      () => void vi.spyOn(promises, 'readdir').mockRejectedValueOnce(systemError('EMFILE')),
    ],
    [
      'it can be listed once',
      () => {
        const list = vi.spyOn(promises, 'readdir');
        list.mockResolvedValueOnce([]).mockRejectedValueOnce(systemError('EIO'));
      },
    ],
    [
      'the highest step cannot be read',
      (checkpoints) => {
        fs.rmSync(path.join(checkpoints, 'newest-step'));
        fs.mkdirSync(path.join(checkpoints, 'newest-step'));
      },
    ],
    [
      'the highest step is damaged',
      (checkpoints) => fs.writeFileSync(path.join(checkpoints, 'newest-step'), ''),
    ],
  ])('fails when %s, and publishes nothing', async (_, breakIt) => {
    const { checkpoints, tools } = setUp();
    const request = { trajectory_groups: [group([2, 1], [4, 0])] };
    for (let step = 1; step < 4; step++) await train(request, tools);
    fs.rmSync(stepFolder(checkpoints, 3), { recursive: true });
    breakIt(checkpoints);
    await expect(train(request, tools)).rejects.toMatchObject({ code: 'STORE_FAILED' });
    vi.restoreAllMocks();
    expect(await listSteps(checkpoints)).toEqual([1, 2]);
  });

  it.each<[string, (trainer: ReturnType<typeof fakeTrainer>) => Partial<TrainTools>]>([
    [
      'a weight is not finite',
      (trainer) => ({
        trainer: {
          ...trainer,
          adapter: () => ({ m: { a: Float32Array.of(1), b: Float32Array.of(Number.NaN) } }),
        },
      }),
    ],
    [
      'it scores with no finite numbers',
      (trainer) => ({
        trainer: {
          ...trainer,
          forward: async (row, options) =>
            options?.gradients === false
              ? { logprobs: Float32Array.of(-Infinity), entropies: Float32Array.of(0) }
              : await trainer.forward(row, options),
        },
      }),
    ],
    ['its probe fails', () => ({ probe: () => Promise.reject(diverged('a reason')) })],
  ])('publishes no checkpoint when %s', async (_, changed) => {
    const { checkpoints, events, tools, trainer } = setUp();
    const request = { trajectory_groups: [group([2, 1], [4, 0])] };
    await train(request, tools);
    const refused = { code: 'TRAINING_DIVERGED' };
    await expect(train(request, { ...tools, ...changed(trainer) })).rejects.toMatchObject(refused);
    expect(events.at(-1)).toMatchObject({ type: 'training_failed', ...refused });
    expect(await listSteps(checkpoints)).toEqual([1]);
    expect(fs.readdirSync(checkpoints).filter((name) => name.startsWith('.'))).toEqual([]);
    expect(await train(request, tools)).toMatchObject({ step: 2 });
  });

  it('goes on from the last checkpoint, whatever the trainer held', async () => {
    const first = setUp();
    const config = { learning_rate: 0.1, advantage_balance: 1 };
    await train({ trajectory_groups: [group([2, 1], [4, 0])], experimental_config: config }, first.tools);
    const after = first.trainer.shift;
    expect(after).toBeGreaterThan(0);
    const trainer = fakeTrainer();
    trainer.shift = 77;
    await train({ trajectory_groups: [] }, { ...first.tools, trainer });
    expect(trainer.shift).toBeCloseTo(after, 9);
  });

  it('skips a step that is not finite, and counts it', async () => {
    const { trainer, events, tools } = setUp();
    trainer.next = [Number.NaN];
    const groups = [group([2, 1], [2, 0]), group([2, 1], [2, 0])];
    const result = await train(
      { trajectory_groups: groups, experimental_config: { packed_sequence_length: 11 } },
      tools,
    );
    expect(result.metrics['train/skipped_steps']).toBe(1);
    expect(trainer.gradients_seen).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'gradient_step')).toHaveLength(2);
  });

  it('fails after three such steps in a row, and leaves everything as it was', async () => {
    const { trainer, events, checkpoints, tools } = setUp();
    trainer.fresh = 0.5;
    trainer.next = [Number.NaN, Number.NaN, Number.NaN];
    const groups = Array.from({ length: 4 }, () => group([2, 1], [2, 0]));
    const work = train(
      { trajectory_groups: groups, experimental_config: { packed_sequence_length: 11 } },
      tools,
    );
    await expect(work).rejects.toMatchObject({
      code: 'TRAINING_DIVERGED',
      message: expect.stringContaining('3 gradient steps'),
    });
    expect(events.at(-1)).toMatchObject({ type: 'training_failed', code: 'TRAINING_DIVERGED' });
    expect(await listSteps(checkpoints)).toEqual([]);
    expect(trainer.shift).toBe(0.5);
  });

  it('stops when it is aborted, and removes what a killed job left', async () => {
    const controller = new AbortController();
    const { trainer, events, checkpoints, tools } = setUp(fakeTrainer(), controller.signal);
    fs.mkdirSync(path.join(checkpoints, '.incomplete-1'), { recursive: true });
    const forward = trainer.forward;
    trainer.forward = (...given) => {
      controller.abort();
      return forward(...given);
    };
    const work = train({ trajectory_groups: [group([2, 1], [2, 0])] }, tools);
    await expect(work).rejects.toMatchObject({ code: 'ABORTED' });
    expect(events.at(-1)).toMatchObject({ type: 'training_failed', code: 'ABORTED' });
    expect(fs.readdirSync(checkpoints)).toEqual([]);
  });

  it.each([-720, -9999])('a token that was sampled at %d does not fail it', async (logprob) => {
    const { trainer, tools } = setUp();
    const request = { trajectory_groups: [group([2, 1], [2, 0])] };
    const choice = request.trajectory_groups[0]!.trajectories[0]!.messages_and_choices[1] as TrajectoryChoice;
    Object.assign(choice.logprobs!.content![1]!, { logprob });
    const { step, metrics } = await train(request, tools);
    expect([step, metrics['train/skipped_steps']]).toEqual([1, 0]);
    expect(trainer.gradients_seen[0]!.every(Number.isFinite)).toBe(true);
  });

  it.each([
    [1e200, 0],
    [-1e308, 1e308],
  ])('rewards %d and %d train', async (...rewards) => {
    const { trainer, tools } = setUp();
    await train({ trajectory_groups: [group([2, rewards[0]], [2, rewards[1]])] }, tools);
    expect(trainer.gradients_seen).toHaveLength(1);
  });

  it('compares the sampler with the trainer, also when old log-probabilities are recomputed', async () => {
    const random = normals(4);
    for (const precalculate_logprobs of [false, true]) {
      const { trainer, tools } = setUp();
      const sampled = [0, 1].map((reward) => {
        const one = group([30, reward]).trajectories[0]!;
        const choice = one.messages_and_choices[1] as TrajectoryChoice;
        const content = choice.token_ids!.map(() => ({ token: 'x', logprob: -Math.abs(random()) }));
        return {
          ...one,
          messages_and_choices: [one.messages_and_choices[0]!, { ...choice, logprobs: { content } }],
        };
      });
      const forward = trainer.forward;
      trainer.forward = async (row, options) => {
        const { logprobs, entropies } = await forward(row, options);
        return { logprobs: logprobs.map((_, i) => -0.1 - ((i * 7) % 13) / 10), entropies };
      };
      const { metrics } = await train(
        { trajectory_groups: [{ trajectories: sampled }], experimental_config: { precalculate_logprobs } },
        tools,
      );
      expect(Math.abs(metrics['train/probs_corr']!)).toBeLessThan(0.5);
    }
  });

  it('keeps the metrics of a caller, whatever training has under their names', async () => {
    const { tools } = setUp();
    const given = group([2, 1], [4, 0]);
    const metrics = { probs_corr: 5, clip_fraction: 6, skipped_steps: 7 };
    const trajectories = given.trajectories.map((one) => ({ ...one, metrics }));
    const result = await train({ trajectory_groups: [{ trajectories }] }, tools);
    expect(result.metrics).toMatchObject({
      'train/probs_corr': 5,
      'train/clip_fraction': 6,
      'train/skipped_steps': 7,
    });
  });

  it('has finite means of rewards whose sum is beyond a float', async () => {
    const { tools } = setUp();
    const result = await train({ trajectory_groups: [group([2, 1e308], [2, 1.5e308], [2, -1e308])] }, tools);
    expect(result.metrics['train/reward']! / 1e308).toBeCloseTo(0.5, 9);
    expect(result.metrics['train/reward_std_dev']! / 1e308).toBeCloseTo(Math.sqrt((0.25 + 1 + 2.25) / 3), 9);
  });

  it('counts no group of which nothing is trained', async () => {
    const { tools } = setUp();
    const { trajectories } = group([2, 1], [4, 0]);
    const cut = trajectories.map((one) => ({
      ...one,
      messages_and_choices: one.messages_and_choices.map((entry) =>
        'message' in entry ? { ...entry, finish_reason: 'length' } : entry,
      ),
    })) as TrajectoryGroup['trajectories'];
    const config = { mask_truncated: true };
    const result = await train(
      { trajectory_groups: [{ trajectories: cut }], experimental_config: config },
      tools,
    );
    expect(result.metrics['data/step_num_groups_trainable']).toBe(0);
  });
});
