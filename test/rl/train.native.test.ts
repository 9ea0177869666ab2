import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listSteps, stepFolder } from '../../src/rl/checkpoint-step.ts';
import { rowLoss } from '../../src/rl/loss.ts';
import type { LossPool } from '../../src/rl/loss-pool.ts';
import type { JobEvent } from '../../src/rl/steps.ts';
import type { ChatTokenizer } from '../../src/rl/tokens.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import type { TrajectoryGroup } from '../../src/rl/trajectory.ts';
import { writeTinyModel } from './tiny-model.ts';
import { sft, train } from './training.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-train-native-'));
const model = path.join(root, 'model.gguf');
beforeAll(() => writeTinyModel(model, { architecture: 'qwen3', type: 'q8_0', isTied: true }));
afterAll(() => fs.rmSync(root, { recursive: true }));

const lossPool: LossPool = {
  compute: async (inputs, settings, totals) => rowLoss(inputs, settings, totals),
  async close() {},
  async [Symbol.asyncDispose]() {},
};
const tokenizer: ChatTokenizer = {
  prompt: async (messages) => [
    ...messages.flatMap(({ content }) => [...Buffer.from(String(content)), 300]),
    301,
  ],
  conversation: async (messages) => [
    ...messages.flatMap(({ role, content }) => [
      ...(role === 'assistant' ? [301] : []),
      ...Buffer.from(String(content)),
      300,
    ]),
  ],
  isEnd: (token) => token === 300,
};
const open = () => openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1 });
const tools = (trainer: Trainer, name: string, events: JobEvent[] = []) => ({
  trainer,
  tokenizer,
  lossPool,
  checkpoints: path.join(root, name),
  emit: (event: JobEvent) => void events.push(event),
  now: () => performance.now(),
});

/** Log-probability of each answer to the prompt, one array of token log-probabilities an answer. */
async function score(trainer: Trainer, answers: readonly number[][]): Promise<number[][]> {
  const prompt = await tokenizer.prompt([{ role: 'user', content: 'go' }], null);
  const scores: number[][] = [];
  for (const answer of answers) {
    const tokens = Int32Array.from([...prompt, ...answer]);
    const { logprobs } = await trainer.forward(
      {
        tokens,
        positions: Int32Array.from(tokens.keys()),
        groupIds: new Int32Array(tokens.length),
        parentIds: new Int32Array(tokens.length),
        logitRows: Int32Array.from(answer, (_, i) => prompt.length + i - 1),
        targetTokens: Int32Array.from(answer),
      },
      { gradients: false },
    );
    scores.push([...logprobs]);
  }
  return scores;
}

const answers = [
  [65, 66, 300],
  [67, 68, 69, 300],
  [70, 300],
  [71, 72, 300],
];

/** A group in which the first answer is the good one, as the trainer's own weights would have sampled it. */
async function sampleGroup(trainer: Trainer): Promise<TrajectoryGroup> {
  const scores = await score(trainer, answers);
  return {
    trajectories: answers.map((token_ids, i) => ({
      reward: i === 0 ? 1 : 0,
      messages_and_choices: [
        { role: 'user', content: 'go' },
        {
          index: 0,
          finish_reason: 'stop',
          message: { role: 'assistant', content: '' },
          token_ids,
          logprobs: { content: scores[i]!.map((logprob) => ({ token: 'x', logprob })) },
        },
      ],
    })),
  };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

describe('train, with a real trainer', () => {
  it('makes a rewarded answer likelier and the others less likely, on policy', async () => {
    await using trainer = await open();
    const before = (await score(trainer, answers)).map(sum);
    const events: JobEvent[] = [];
    for (let round = 0; round < 3; round++) {
      const trajectory_groups = [await sampleGroup(trainer)];
      const result = await train(
        { trajectory_groups, experimental_config: { learning_rate: 2e-3 } },
        tools(trainer, 'rl', events),
      );
      expect(result.metrics['train/probs_corr']).toBeGreaterThan(0.99);
      expect(result.metrics['train/skipped_steps']).toBe(0);
    }
    const after = (await score(trainer, answers)).map(sum);
    expect(after[0]! - before[0]!).toBeGreaterThan(1);
    for (const i of [1, 2, 3]) expect(after[i]! - before[i]!).toBeLessThan(0.5);
    expect(await listSteps(path.join(root, 'rl'))).toEqual([1, 2, 3]);
    expect(events.filter(({ type }) => type === 'gradient_step')).toHaveLength(3);

    await using again = await open();
    await again.load(stepFolder(path.join(root, 'rl'), 3));
    expect((await score(again, answers)).map(sum)).toEqual(after);
  });

  it('is cut short by an abort signal, in the middle of a pass', async () => {
    await using trainer = await open();
    const controller = new AbortController();
    const trajectory_groups = await Promise.all(Array.from({ length: 50 }, () => sampleGroup(trainer)));
    const events: JobEvent[] = [];
    const emit = (event: JobEvent) => {
      events.push(event);
      if (event.type === 'gradient_step') setTimeout(() => controller.abort(), 20);
    };
    const config = { packed_sequence_length: 32 };
    const work = train(
      { trajectory_groups, experimental_config: config },
      {
        ...tools(trainer, 'aborted'),
        emit,
        signal: controller.signal,
      },
    );
    await expect(work).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await listSteps(path.join(root, 'aborted'))).toEqual([]);
    const [first] = await score(trainer, answers); // the trainer lives on, as it was
    expect(first!.every(Number.isFinite)).toBe(true);
  });
});

describe('sft, with a real trainer', () => {
  it('learns an answer', async () => {
    await using trainer = await open();
    const data = Array.from({ length: 4 }, () => ({
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: 'AB' },
      ],
    }));
    const before = sum((await score(trainer, [answers[0]!]))[0]!);
    const config = { epochs: 10, batch_size: 4, learning_rate: 3e-3 };
    const { metrics } = await sft({ data, config }, tools(trainer, 'sft'));
    const after = sum((await score(trainer, [answers[0]!]))[0]!);
    expect(after - before).toBeGreaterThan(5);
    expect(metrics['data/step_trainable_tokens']).toBe(120);
  });
});
