/** Steps of a training run that are refused -> errors by the caller's paths, and the run as it was before. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TrainingRun } from '../../../src/protocol/service/training-run.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { adam, adapterOf, inputs, lesson, target } from './run-data.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-refused-steps-'));
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ home: folder, gpu: false, threads: 1 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

it.each<[string, (run: TrainingRun) => Promise<unknown>, RegExp]>([
  ['no data', (run) => run.forward([]), /^data: expected a non-empty list/],
  [
    'a loss without its columns',
    (run) => run.forwardBackward([lesson()], { loss_fn: 'ppo' }),
    /^data\.0\.loss_fn_inputs\.logprobs: expected numbers, which this loss needs, got nothing/,
  ],
  [
    'columns of another length',
    (run) => run.forwardBackward([lesson([1])]),
    /^data\.0\.loss_fn_inputs\.weights: expected 6 entries, one per token, got 1/,
  ],
  [
    'a shape that is not that of the numbers',
    (run) => {
      const { model_input, loss_fn_inputs } = lesson();
      const weights = { data: inputs.map(() => 1), dtype: 'float32' as const, shape: [2, 2] };
      return run.forwardBackward([{ model_input, loss_fn_inputs: { ...loss_fn_inputs, weights } }]);
    },
    /^data\.0\.loss_fn_inputs\.weights\.shape: expected sizes whose product is 6, the number of entries of data, got a list of 2/,
  ],
  [
    'a log-probability above 0',
    (run) => {
      const { model_input, loss_fn_inputs } = lesson();
      const advantages = inputs.map(() => 1);
      const logprobs = inputs.map((_, i) => (i === 3 ? 0.5 : -1));
      return run.forwardBackward(
        [
          {
            model_input,
            loss_fn_inputs: { target_tokens: loss_fn_inputs.target_tokens, logprobs, advantages },
          },
        ],
        { loss_fn: 'ppo' },
      );
    },
    /^data\.0\.loss_fn_inputs\.logprobs\.3: expected a log-probability, at most 0, got 0\.5/,
  ],
  [
    'tokens outside the vocabulary',
    (run) =>
      run.forward([{ model_input: { chunks: [{ tokens: [1e6] }] }, loss_fn_inputs: { target_tokens: [1] } }]),
    /^data\.0\.model_input\.tokens\.0: expected .*got 1000000/,
  ],
  [
    'another setting',
    (run) => run.forward([lesson()], { loss_fn: 'dro', loss_fn_config: { betta: 1 } }),
    /^loss_fn_config\.betta: not a setting of dro/,
  ],
  ['an unknown state', (run) => run.loadState('never'), /^name: expected one of start, got "never"/],
  ['a wrong name', (run) => run.saveState('../x'), /^name: expected a name of letters/],
])('refuses %s, and is as before', async (_, call, message) => {
  await using run = await runtime.openTraining(target);
  await run.saveState('start');
  await run.forwardBackward([lesson(), lesson([0, 0, 0, 1, 1, 0.5])]);
  await expect(call(run)).rejects.toThrow(message);
  await run.optimStep(adam);
  await run.saveState('end');
  await using other = await runtime.openTraining(target);
  await other.forwardBackward([lesson(), lesson([0, 0, 0, 1, 1, 0.5])]);
  await other.optimStep(adam);
  await other.saveState('end');
  expect(adapterOf(run, 'end', folder).equals(adapterOf(other, 'end', folder))).toBe(true);
});
