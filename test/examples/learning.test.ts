/** Learning of the Electron template on a runtime that only records: when it trains, on what, when it stops, and the way back. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
// @ts-expect-error the template is JavaScript
import { Learning as TemplateLearning } from '../../examples/electron/src/learning.mjs';

type Rating = { id: string; messages: object[]; answer: string; rating: number };
type State = {
  isTraining: boolean;
  waiting: number;
  ratings: number;
  steps: object[];
  problem: string | null;
};
type Learning = {
  state(): State;
  rate(rating: Rating): void;
  tick(): void;
  stop(): void;
  step(): Promise<void>;
  undo(): Promise<void>;
};

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-learning-'));
afterAll(() => fs.rmSync(home, { recursive: true }));

/** A runtime whose jobs end when `finish` is called, or fail when they are aborted. */
function fake() {
  const trained: string[][] = [];
  const deleted: number[] = [];
  let step = 0;
  let finish = () => {};
  const runtime = {
    createCompletion: async () => ({ choices: [{ message: { content: `answer of step ${step}` } }] }),
    checkpoints: { delete: async (_: string, { steps }: { steps: number[] }) => void deleted.push(...steps) },
    train: async (request: never, { signal }: { signal: AbortSignal }) => {
      type Group = {
        trajectories: { messages_and_choices: { message?: { content: string } }[]; reward: number }[];
      };
      const groups = (request as { trajectory_groups: Group[] }).trajectory_groups;
      const done = new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        finish = () => {
          trained.push(
            groups.map(
              ({ trajectories: [one] }) =>
                `${one!.messages_and_choices.at(-1)!.message!.content} ${one!.reward}`,
            ),
          );
          step += 1;
          resolve({ step });
        };
      });
      return { done };
    },
  };
  return { runtime, trained, deleted, finish: () => finish() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
let made = 0;

function open(isIdle: () => boolean, name = `model-${made++}`) {
  const host = fake();
  const options = { isIdle, changed: () => {} };
  const learning: Learning = new TemplateLearning(host.runtime, { id: 'id', name }, home, options);
  return { ...host, learning, name };
}

const rating = (i: number): Rating => ({
  id: `r${i}`,
  messages: [{ role: 'user', content: 'a question' }],
  answer: `a${i}`,
  rating: i % 2 ? 1 : -1,
});

describe('learning from ratings', () => {
  it('trains when ten ratings wait and nobody is here, once on each, and on older good ones again', async () => {
    let isIdle = false;
    const { learning, trained, finish } = open(() => isIdle);
    for (let i = 0; i < 10; i++) learning.rate(rating(i));
    learning.tick();
    expect(learning.state()).toMatchObject({ isTraining: false, waiting: 10 });
    isIdle = true;
    learning.tick();
    expect(learning.state().isTraining).toBe(true);
    await settled();
    finish();
    await settled();
    expect(learning.state()).toMatchObject({ isTraining: false, waiting: 0, ratings: 10 });
    expect(learning.state().steps).toEqual([
      expect.objectContaining({ step: 1, liked: 0.5, before: 'answer of step 0', after: 'answer of step 1' }),
    ]);
    for (let i = 10; i < 20; i++) learning.rate(rating(i));
    learning.tick();
    await settled();
    finish();
    await settled();
    expect(trained[0]).toEqual(Array.from({ length: 10 }, (_, i) => `a${i} ${i % 2 ? 1 : -1}`));
    expect(trained[1]!.slice(0, 10)).toEqual(
      Array.from({ length: 10 }, (_, i) => `a${10 + i} ${i % 2 ? 1 : -1}`),
    );
    expect(trained[1]!.slice(10).sort()).toEqual(['a1 1', 'a3 1', 'a5 1', 'a7 1', 'a9 1']);
  });

  it('stops when somebody comes back, and keeps the ratings for later', async () => {
    let isIdle = true;
    const { learning, trained } = open(() => isIdle);
    for (let i = 0; i < 10; i++) learning.rate(rating(i));
    learning.tick();
    await settled();
    isIdle = false;
    learning.tick();
    await settled();
    expect(learning.state()).toMatchObject({ isTraining: false, waiting: 10, steps: [], problem: null });
    expect(trained).toEqual([]);
  });

  it('does not stop a step that was asked for because somebody is here', async () => {
    const { learning, finish } = open(() => false);
    learning.rate(rating(1));
    const step = learning.step();
    await settled();
    learning.tick();
    finish();
    await step;
    expect(learning.state()).toMatchObject({ waiting: 0, problem: null });
    expect(learning.state().steps.length).toBe(1);
  });

  it('takes the last step back, and does not learn from its ratings again', async () => {
    const { learning, deleted, finish, name } = open(() => false);
    learning.rate(rating(1));
    const step = learning.step();
    await settled();
    finish();
    await step;
    await learning.undo();
    expect(deleted).toEqual([1]);
    expect(learning.state()).toMatchObject({ waiting: 0, ratings: 1, steps: [] });
    expect(open(() => false, name).learning.state()).toEqual(learning.state());
  });

  it('takes ratings back until a step has used them', async () => {
    const { learning, finish } = open(() => false);
    learning.rate(rating(1));
    learning.rate({ ...rating(1), rating: 0 });
    expect(learning.state()).toMatchObject({ waiting: 0, ratings: 0 });
    learning.rate(rating(1));
    const step = learning.step();
    await settled();
    finish();
    await step;
    learning.rate({ ...rating(1), rating: -1 });
    expect(learning.state()).toMatchObject({ waiting: 0, ratings: 1 });
  });
});
