/** A training job on a fake trainer: its tools, its events, and groups of attempts to train on. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';
import { rowLoss } from '../../src/rl/loss.ts';
import type { LossPool } from '../../src/rl/loss-pool.ts';
import type { JobEvent } from '../../src/rl/steps.ts';
import type { ChatTokenizer } from '../../src/rl/tokens.ts';
import type { TrajectoryGroup, TrajectoryMessage } from '../../src/rl/trajectory.ts';
import { type FakeTrainer, fakeTrainer } from './fake-trainer.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-train-'));
afterAll(() => fs.rmSync(root, { recursive: true }));
let folders = 0;

const lossPool: LossPool = {
  compute: async (inputs, settings, totals) => rowLoss(inputs, settings, totals),
  async close() {},
  async [Symbol.asyncDispose]() {},
};
const letters = (text: unknown) => [...String(text)].map((letter) => letter.charCodeAt(0));
const write = ({ role, content }: TrajectoryMessage) => [
  ...(role === 'assistant' ? [1] : []),
  ...letters(content),
  0,
];
/** Writes letters as tokens; 1 begins an answer, 0 ends each message. */
export const tokenizer: ChatTokenizer = {
  prompt: async (messages) => [...messages.flatMap(write), 1],
  conversation: async (messages) => messages.flatMap(write),
  isEnd: (token) => token === 0,
};

/** A fake trainer in an empty folder of checkpoints, with the events of its job. */
export function setUp(trainer: FakeTrainer = fakeTrainer(), signal?: AbortSignal) {
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

/** A group whose attempts answered one prompt with these many tokens and rewards. */
export function group(...attempts: [tokens: number, reward: number][]): TrajectoryGroup {
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
