import fs from 'node:fs';
import promises from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { listSteps, readFacts, stepFolder } from '../../src/rl/checkpoint-step.ts';
import { rowLoss } from '../../src/rl/loss.ts';
import type { LossPool } from '../../src/rl/loss-pool.ts';
import { rateAt } from '../../src/rl/sft.ts';
import type { JobEvent } from '../../src/rl/steps.ts';
import type { ChatTokenizer } from '../../src/rl/tokens.ts';
import { diverged, type TrainTools } from '../../src/rl/train.ts';
import type { TrajectoryChoice, TrajectoryGroup, TrajectoryMessage } from '../../src/rl/trajectory.ts';
import { type FakeTrainer, fakeTrainer } from './fake-trainer.ts';
import { sft, train } from './training.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-train-'));
afterAll(() => fs.rmSync(root, { recursive: true }));
let folders = 0;

const lossPool: LossPool = {
  compute: async (inputs, settings) => rowLoss(inputs, settings),
  async close() {},
  async [Symbol.asyncDispose]() {},
};
const letters = (text: unknown) => [...String(text)].map((letter) => letter.charCodeAt(0));
const write = ({ role, content }: TrajectoryMessage) => [
  ...(role === 'assistant' ? [1] : []),
  ...letters(content),
  0,
];
const tokenizer: ChatTokenizer = {
  prompt: async (messages) => [...messages.flatMap(write), 1],
  conversation: async (messages) => messages.flatMap(write),
  isEnd: (token) => token === 0,
};

function setUp(trainer: FakeTrainer = fakeTrainer(), signal?: AbortSignal) {
  const events: JobEvent[] = [];
  let milliseconds = 0;
  const checkpoints = path.join(root, String(folders++));
  const now = () => {
    milliseconds += 500;
    return milliseconds;
  };
  const emit = (event: JobEvent) => void events.push(event);
  return {
    trainer,
    events,
    checkpoints,
    tools: { trainer, tokenizer, lossPool, emit, now, checkpoints, signal },
  };
}

/** What Node says of a folder that it cannot list. */
function systemError(code: string): Error {
  return Object.assign(new Error(code), { code, errno: -1, syscall: 'scandir', path: '/somewhere' });
}

/** A group whose attempts answered one prompt with these many tokens and rewards. */
function group(...attempts: [tokens: number, reward: number][]): TrajectoryGroup {
  return {
    trajectories: attempts.map(([count, reward]) => ({
      reward,
      metrics: { length: count },
      messages_and_choices: [
        { role: 'user', content: 'hello' },
        {
          index: 0,
          finish_reason: 'stop',
          message: { role: 'assistant', content: '' },
          token_ids: Array.from({ length: count }, (_, i) => 100 + i),
          logprobs: { content: Array.from({ length: count }, () => ({ token: 'x', logprob: -1 })) },
        },
      ],
    })),
  };
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
    expect(await readFacts(checkpoints, 1)).toMatchObject({
      id: result.id,
      step: 1,
      metrics: result.metrics,
    });
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

  it('accumulates the gradients of several rows into one step', async () => {
    const groups = [group([2, 1], [2, 0]), group([2, 1], [2, 0])];
    const config = { packed_sequence_length: 11 };
    const apart = setUp();
    await train({ trajectory_groups: groups, experimental_config: config }, apart.tools);
    const together = setUp();
    await train(
      { trajectory_groups: groups, experimental_config: { ...config, gradient_accumulation_steps: 2 } },
      together.tools,
    );
    const steps = ({ events }: typeof apart) => events.filter(({ type }) => type === 'gradient_step').length;
    expect([steps(apart), steps(together)]).toEqual([2, 1]);
    expect(together.trainer.gradients_seen[0]![0]).toBeCloseTo(apart.trainer.gradients_seen[0]![0]! / 2, 9);
  });

  it('recomputes old log-probabilities, and penalises the distance from the reference', async () => {
    const { trainer, events, tools } = setUp();
    trainer.fresh = 0.25;
    await train(
      {
        trajectory_groups: [group([2, 1], [2, 0])],
        experimental_config: {
          precalculate_logprobs: true,
          kl_penalty_coef: 0.1,
          truncated_importance_sampling: 2,
        },
      },
      tools,
    );
    expect(trainer.rows).toHaveLength(4); // old, reference, new, and the new checkpoint's
    const step = events.find(({ type }) => type === 'gradient_step');
    expect(step).toMatchObject({ metrics: { 'loss/kl_policy_ref': expect.closeTo(0.25, 5) } });
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

  it('rejects settings of a wrong type', async () => {
    const { tools } = setUp();
    const request = { trajectory_groups: [], experimental_config: { ppo: 'yes' as never } };
    await expect(train(request, tools)).rejects.toThrow(/ppo: expected true or false or null, got "yes"/);
  });
});

describe('sft', () => {
  const example = (answer: string) => ({
    messages: [
      { role: 'user', content: 'ab' },
      { role: 'assistant', content: answer },
    ],
  });

  it('learns the answers with cross-entropy, a batch a step', async () => {
    const { trainer, events, tools } = setUp();
    const result = await sft(
      {
        data: [example('xyz'), example('z'), example('')],
        config: { batch_size: 2, epochs: 2, schedule: 'constant' },
      },
      tools,
    );
    expect(events.filter(({ type }) => type === 'gradient_step')).toHaveLength(4);
    expect(trainer.gradients_seen[0]).toEqual(Array(6).fill(Math.fround(-1 / 6))); // 4 + 2 tokens with their ends
    expect(trainer.shift).toBeGreaterThan(0);
    expect(result.metrics).toMatchObject({ 'data/step_trainable_tokens': 14, 'train/skipped_steps': 0 });
  });

  it('learns all assistant turns, or the last', async () => {
    const messages = [...example('x').messages, ...example('y').messages];
    for (const [assistant_turns, targets] of [
      ['all', 4],
      ['last', 2],
    ] as const) {
      const { trainer, tools } = setUp();
      await sft({ data: [{ messages }], config: { assistant_turns } }, tools);
      const seen = trainer.rows.slice(0, -1); // the last one probes the new checkpoint
      expect(seen.reduce((sum, row) => sum + row.targetTokens.length, 0)).toBe(targets);
    }
  });

  it('rejects unknown settings', async () => {
    const { tools } = setUp();
    await expect(sft({ data: [], config: { epoch: 3 } as never }, tools)).rejects.toThrow(
      /epoch: not a field of config; did you mean epochs/,
    );
  });
});

describe('rateAt', () => {
  it.each([
    ['constant', 0, [0.5, 1, 1, 1]],
    ['linear', 0, [0.5, 1, 1, 0.5]],
    ['cosine', 0, [0.5, 1, 1, 0.5]],
  ] as const)('%s', (schedule, _, expected) => {
    const settings = { learning_rate: 1, schedule, warmup_ratio: 0.5 };
    expect([0, 1, 2, 3].map((step) => rateAt(step, 4, settings))).toEqual(
      expected.map((rate) => expect.closeTo(rate, 9)),
    );
  });
});
