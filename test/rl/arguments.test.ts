/** Wrong arguments of the public functions of `onpolicy/rl` -> one `INVALID_REQUEST` that names the argument. */
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import { definitions } from '../../src/protocol/schemas/index.ts';
import * as rl from '../../src/rl/public.ts';
import { resolveSettings } from '../../src/rl/settings.ts';
import { checkOptions } from '../../src/runtime/options.ts';

/** Calls with any arguments, as JavaScript does. */
const call = rl as unknown as Record<string, (...given: unknown[]) => unknown>;
const rewards = rl.rewards as unknown as typeof call;

const columns = {
  new_logprobs: [-1, -2],
  old_logprobs: [-1, -2],
  ref_logprobs: [-1, -2],
  advantages: [1, -1],
  weights: [1, 1],
  mask: [1, 1],
  sequence_ids: [0, 0],
};
const { advantages: _, ...withoutAdvantages } = columns;
const { ref_logprobs: __, ...withoutReference } = columns;
const groups = [[{ reward: 1, trainable_tokens: 3 }]];
const sequence = {
  tokens: Int32Array.of(1, 2),
  isTrained: Uint8Array.of(0, 1),
  logprobs: Float64Array.of(Number.NaN, -1),
  group: 0,
  advantage: 1,
  weight: 1,
};
const service = { createCompletion: async () => {} };
const runtime = { ...service, train: async () => {} };
const rollout = () => {};
const loop = { service: runtime, model: 'm', tasks: [1], rollout, until: { steps: 1 } };
const model = 'model.gguf';

type Row = [call: () => unknown, message: string];

describe('wrong arguments are named', () => {
  it.each<Row>([
    [() => call['openTrainer']!(), 'options: expected an object, got nothing'],
    [() => call['openTrainer']!(null), 'options: expected an object, got null'],
    [() => call['openTrainer']!({}), 'model: this field is required, got nothing'],
    [() => call['openTrainer']!({ model: 5 }), 'model: expected a non-empty string, got 5'],
    [() => call['openTrainer']!({ model, ranks: 4 }), 'ranks: not a field of options; did you mean rank?'],
    [() => call['openTrainer']!({ model, rank: 0 }), 'rank: expected an integer from 1 to 1024, got 0'],
    [() => call['openTrainer']!({ model, rank: 1.5 }), 'rank: expected an integer from 1 to 1024, got 1.5'],
    [() => call['openTrainer']!({ model, alpha: -1 }), 'alpha: expected a number > 0'],
    [() => call['openTrainer']!({ model, alpha: Number.NaN }), 'alpha: expected a number > 0'],
    [() => call['openTrainer']!({ model, rslora: 1 }), 'rslora: expected true or false, got 1'],
    [
      () => call['openTrainer']!({ model, modules: 'attn_q' }),
      'modules: expected a non-empty list, got "attn_q"',
    ],
    [() => call['openTrainer']!({ model, modules: [1] }), 'modules.0: expected a non-empty string, got 1'],
    [() => call['openTrainer']!({ model, threads: 0 }), 'threads: expected an integer from 1 to 512, got 0'],
    [() => call['openTrainer']!({ model, memoryBudget: -1 }), 'memoryBudget: expected an integer from 1 to'],
    [() => call['openTrainer']!({ model, seed: Number.NaN }), 'seed: expected an integer, got NaN'],
    [
      () => call['openTrainer']!({ model, gpu: 'tpu' }),
      'gpu: expected "auto", "cuda", "vulkan", "metal" or false',
    ],
    [() => call['openTrainer']!({ model, arithmetic: 'fast' }), 'arithmetic: expected "engine" or "exact"'],
    [() => call['openFullTrainer']!({}), 'model: this field is required'],
    [() => call['openFullTrainer']!({ model, rank: 8 }), 'rank: not a field of options'],
    [() => call['openFullTrainer']!({ model, threads: 'x' }), 'threads: expected an integer from 1 to 512'],
    [
      () => call['openFullTrainer']!({ model, arithmetic: 'engine' }),
      'arithmetic: expected "exact" or "fast"',
    ],
    [() => call['gatherTrajectoryGroups']!(5, rollout), 'tasks: expected a list of tasks, got 5'],
    [() => call['gatherTrajectoryGroups']!([1]), 'rollout: expected a function, got nothing'],
    [() => call['gatherTrajectoryGroups']!([1], rollout, null), 'options: expected an object, got null'],
    [() => call['gatherTrajectoryGroups']!([1], rollout, { groupsize: 2 }), 'did you mean groupSize?'],
    [() => call['gatherTrajectoryGroups']!([1], rollout, { signal: {} }), 'signal: expected an AbortSignal'],
    [
      () => call['gatherTrajectoryGroups']!([1], rollout, { onProgress: 1 }),
      'onProgress: expected a function',
    ],
    [
      () => call['gatherTrajectoryGroups']!([1], rollout, { seed: {} }),
      'seed: expected an integer or a string',
    ],
    [() => call['trainLoop']!(), 'options: expected an object, got nothing'],
    [() => call['trainLoop']!({ ...loop, refil: 1 }), 'refil: not a field of options; did you mean refill?'],
    [() => call['trainLoop']!({ ...loop, config: { ppo: 1 } }), 'config.ppo: expected true or false or null'],
    [() => call['trainLoop']!({ ...loop, evaluate: { tasks: [1], evry: 1 } }), 'evaluate.evry: not a field'],
    [
      () => call['trainLoop']!({ ...loop, samplerModel: 'x' }),
      'samplerModel: expected no value without `sampler`',
    ],
    [() => call['trainLoop']!({ ...loop, onEvent: 1 }), 'onEvent: expected a function, got 1'],
    [
      () => call['trajectoryTokens']!({ messages_and_choices: 5 }, {}, {}),
      'trajectory.messages_and_choices: expected a list, got 5 (and 4 more faults)',
    ],
  ])('%s rejects', async (make, message) => {
    const error = await Promise.resolve()
      .then(make)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OnpolicyError);
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', message: expect.stringContaining(message) });
  });

  it.each<Row>([
    [() => call['policyLoss']!(), 'inputs: expected an object, got nothing'],
    [() => call['policyLoss']!(withoutAdvantages), 'advantages: this field is required, got nothing'],
    [() => call['policyLoss']!({ ...columns, advantage: [1] }), 'did you mean advantages?'],
    [() => call['policyLoss']!({ ...columns, weights: 1 }), 'weights: expected a list of numbers, got 1'],
    [() => call['policyLoss']!({ ...columns, mask: '11' }), 'mask: expected a list of numbers, got "11"'],
    [() => call['policyLoss']!({ ...columns, mask: [1] }), 'mask: expected 2 entries, got 1'],
    [
      () => call['policyLoss']!({ ...columns, new_logprobs: [-1, 'x'] }),
      'new_logprobs.1: expected a number or null',
    ],
    [
      () => call['policyLoss']!({ ...columns, advantages: [1, null] }),
      'advantages.1: expected a finite number for a trained token, got NaN',
    ],
    [
      () => call['policyLoss']!({ ...columns, weights: [1, Number.POSITIVE_INFINITY] }),
      'weights.1: expected a finite',
    ],
    [
      () => call['policyLoss']!(withoutReference, { kl_loss_coef: 0.1 }),
      'ref_logprobs: expected a list of numbers, got nothing',
    ],
    [() => call['policyLoss']!(columns, 5), 'experimental_config: expected an object or null, got 5'],
    [
      () => call['policyLoss']!(columns, { truncated_importance_sampling: 0 }),
      'expected a number > 0 or null, got 0',
    ],
    [
      () => call['policyLoss']!(columns, { max_negative_advantage_importance_sampling_weight: 0 }),
      'expected a number > 0 or null, got 0',
    ],
    [() => call['preferenceLoss']!(), 'inputs: expected an object, got nothing'],
    [
      () => call['preferenceLoss']!(withoutReference, { preference_loss: 'dpo' }),
      'ref_logprobs: this field is required',
    ],
    [() => call['preferenceLoss']!(columns), 'preference_loss: expected "dpo" or "kto", got nothing'],
    [
      () => call['preferenceLoss']!({ ...columns, ref_logprobs: [-1, null] }, { preference_loss: 'dpo' }),
      'ref_logprobs.1: expected a finite number for a trained token, got NaN',
    ],
    [() => call['computeAdvantages']!(), 'groups: this field is required, got nothing'],
    [() => call['computeAdvantages']!([1]), 'groups.0: expected a list, got 1'],
    [() => call['computeAdvantages']!([[{}]]), 'groups.0.0.reward: this field is required'],
    [
      () => call['computeAdvantages']!([[{ reward: Number.NaN, trainable_tokens: 1 }]]),
      'groups.0.0.reward: expected a number, got NaN',
    ],
    [
      () => call['computeAdvantages']!([[{ reward: 1, trainable_tokens: -1 }]]),
      'groups.0.0.trainable_tokens: expected an integer >= 0, got -1',
    ],
    [
      () => call['computeAdvantages']!(groups, { normalise: true }),
      'options.normalise: not a field of options',
    ],
    [() => call['computeAdvantages']!(groups, { estimator: 'mean' }), 'options.estimator: expected "group"'],
    [
      () => call['computeAdvantages']!(groups, { advantageBalance: 2 }),
      'options.advantageBalance: expected a number from -1 to 1',
    ],
    [() => call['distillationAdvantages']!(), 'student: expected a list of numbers, got nothing'],
    [() => call['distillationAdvantages']!([1], ['x']), 'teacher.0: expected a number or null, got "x"'],
    [
      () => call['packRows']!([{ ...sequence, tokens: [1, 2] }], 8),
      'sequences.0.tokens: expected an Int32Array, got a list of 2',
    ],
    [() => call['packRows']!([sequence], 1), 'rowLength: expected an integer >= 2, got 1'],
    [() => call['defaultRowLength']!([sequence]), 'contextSize: this field is required'],
    [() => call['judge']!(), 'options: expected an object, got nothing'],
    [() => call['judge']!({ service: {} }), 'service.createCompletion: this field is required'],
    [() => call['judge']!({ service, rubrik: 'x' }), 'rubrik: not a field of options; did you mean rubric?'],
    [() => call['progressBar']!(5), 'label: expected a string, got 5'],
    [() => rewards['exact']!(5), 'expected: expected a string, got 5'],
    [() => rewards['numeric']!(5, { tolerance: -1 }), 'options.tolerance: expected a number >= 0, got -1'],
    [() => rewards['matches']!('a'), 'expression: expected a RegExp, got "a"'],
    [() => rewards['jsonFields']!(null), 'expected: expected an object, got null'],
    [() => rewards['passesTests']!('x'), 'tests: expected a non-empty list, got "x"'],
    [() => rewards['weighted']!(5), 'parts: expected lists of a reward and its weight'],
    [() => rewards['weighted']!([5, 1]), 'rewards.0: expected a function, got 5'],
    [() => rewards['allOf']!(1), 'rewards.0: expected a function, got 1'],
    [() => rewards['anyOf']!(1), 'rewards.0: expected a function, got 1'],
  ])('%s throws', (make, message) => {
    expect(make).toThrow(OnpolicyError);
    expect(make).toThrow(message);
  });

  it('arguments that cannot be read are faults, too', () => {
    const inputs = Object.defineProperty({ ...columns }, 'mask', {
      enumerable: true,
      get: () => {
        throw new Error('gone');
      },
    });
    expect(() => rl.policyLoss(inputs)).toThrow('mask: expected a value that can be read, got gone');
  });
});

it.each([
  [{ rank: 2000 }, 'training.rank: expected an integer from 1 to 1024, got 2000'],
  [{ modules: [] }, 'training.modules: expected a non-empty list, got an empty list'],
  [{ memory: 1 }, 'training.memory: not a field of training'],
  [{ trajectoryBytes: -1 }, 'training.trajectoryBytes: expected an integer >= 0, got -1'],
])("a runtime's option training %j has the bounds of openTrainer", (training, message) => {
  expect(() => checkOptions({ training } as object)).toThrow(message);
});

describe('settings', () => {
  const { properties } = definitions['ExperimentalConfig']!;

  it('have the defaults of the schema', () => {
    const settings: Readonly<Record<string, unknown>> = resolveSettings();
    expect(Object.keys(settings).sort()).toEqual(Object.keys(properties!).sort());
    for (const [name, { default: value }] of Object.entries(properties!))
      if (value !== undefined) expect(settings[name], name).toBe(value);
    expect(resolveSettings({ learning_rate: null, ppo: undefined })).toEqual(settings);
  });

  it.each([
    [{}, [1, 4]],
    [{ epsilon: 0.5 }, [0.5, 4]],
    [{ ppo: true }, [0.2, 0.2]],
    [{ ppo: true, epsilon: 0.1 }, [0.1, 0.1]],
    [{ ppo: true, epsilon_high: 0.28 }, [0.2, 0.28]],
  ])('%j have the clip bounds %j', (config, bounds) => {
    const { epsilon, epsilon_high } = resolveSettings(config);
    expect([epsilon, epsilon_high]).toEqual(bounds);
  });
});
