/** README's block "Train it", as it stands there, with three seeds -> the mean reward rises. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { type ChatCompletionRequest, createRuntime, type Runtime } from '../../src/index.ts';
import { newHome } from './store/homes.ts';

const README = fs.readFileSync(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
const block = /## Train it\n```js\n([\s\S]*?)```/.exec(README)![1]!;
const AsyncFunction = (async () => {}).constructor as new (
  ...words: string[]
) => (...values: unknown[]) => Promise<void>;
const pasted = new AsyncFunction('runtime', 'console', block);

/** A runtime whose requests without a seed get one, the next in turn. */
function seeded(runtime: Runtime, seed: number): object {
  let next = 1000 * seed;
  return {
    models: runtime.models,
    createCompletion: (request: ChatCompletionRequest) =>
      runtime.createCompletion({ ...request, seed: next++ }),
    train: runtime.train.bind(runtime),
    close: () => runtime.close(),
  };
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, one) => sum + one, 0) / values.length;

it.each([1, 2, 3])('learns with seed %i', { timeout: 300_000 }, async (seed) => {
  const runtime = await createRuntime({ home: newHome() });
  const rewards: number[] = [];
  const log = (line: string) => rewards.push(Number(/mean reward (-?\d+)$/.exec(line)![1]));
  await pasted(seeded(runtime, seed), { log });
  expect(rewards).toHaveLength(30);
  const [first, last] = [meanOf(rewards.slice(0, 5)), meanOf(rewards.slice(-5))];
  expect(first).toBeLessThan(-120);
  expect(last).toBeGreaterThan(first / 3); // a third as long, at most
});
