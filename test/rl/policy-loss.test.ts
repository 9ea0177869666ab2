import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { PolicyLossInputs } from '../../src/protocol/index.ts';
import { computeAdvantages } from '../../src/rl/advantages.ts';
import { policyLoss } from '../../src/rl/caller-losses.ts';
import type { ExperimentalConfig } from '../../src/rl/settings.ts';

type Golden = {
  loss: {
    name: string;
    config: ExperimentalConfig;
    inputs: PolicyLossInputs;
    expected: Record<string, number | null> & { grad_new_logprobs: number[] };
  }[];
  advantages: {
    name: string;
    config: { scale_rewards: boolean; advantage_balance: number };
    groups: { reward: number; trainable_tokens: number }[][];
    expected: { trajectories: { group: number; index: number; advantage: number; weight: number }[] };
  }[];
};
const golden: Golden = JSON.parse(
  fs.readFileSync(new URL('../golden/rl/policy-loss.json', import.meta.url), 'utf8'),
);

function expectClose(got: number | null, expected: number | null): void {
  if (expected === null) expect(got).toBeNull();
  else expect(Math.abs(got! - expected)).toBeLessThanOrEqual(1e-9 * Math.max(Math.abs(expected), 1e-3));
}

describe('policyLoss', () => {
  it.each(golden.loss)('$name', ({ config, inputs, expected }) => {
    const { grad_new_logprobs, ...metrics } = policyLoss(inputs, config);
    const { grad_new_logprobs: expectedGradient, ...expectedMetrics } = expected;
    for (const [name, value] of Object.entries(expectedMetrics))
      expectClose(metrics[name as keyof typeof metrics], value as number | null);
    expect(grad_new_logprobs.length).toBe(expectedGradient.length);
    expectedGradient.forEach((value, i) => {
      expectClose(grad_new_logprobs[i]!, value);
    });
  });

  const base: PolicyLossInputs = {
    new_logprobs: [-1, -2, -0.5, -3],
    old_logprobs: [-1.2, -1.7, null, -3],
    advantages: [1, 1, -1, -1],
    weights: [2, 2, 0.5, 0.5],
    mask: [1, 1, 1, 1],
    sequence_ids: [0, 0, 1, 1],
  };

  it.each<ExperimentalConfig>([
    { ppo: true, importance_sampling_level: 'sequence' },
    { ppo: true, importance_sampling_level: 'average' },
    { ppo: true, importance_sampling_level: 'geometric_average' },
    { ppo: true, normalize_by_length: false },
  ])('the gradient of %j is the derivative of the loss', (config) => {
    const known = { ...base, old_logprobs: [-1.02, -2.05, -0.45, -3.1] };
    const { grad_new_logprobs } = policyLoss(known, config);
    for (let i = 0; i < 4; i++) {
      const at = (step: number) =>
        policyLoss(
          { ...known, new_logprobs: [-1, -2, -0.5, -3].map((value, j) => (i === j ? value + step : value)) },
          config,
        ).loss;
      expect((at(1e-6) - at(-1e-6)) / 2e-6).toBeCloseTo(grad_new_logprobs[i]!, 6);
    }
  });

  it('truncates the weight of tokens that the trainer finds likelier than the sampler did', () => {
    const config = { truncated_importance_sampling: 2 };
    const plain = policyLoss({ ...base, mask: [1, 0, 0, 0] }, config);
    const same = policyLoss({ ...base, mask: [1, 0, 0, 0], original_logprobs: [-1.2, 0, 0, 0] }, config);
    const far = policyLoss({ ...base, mask: [1, 0, 0, 0], original_logprobs: [-9, 0, 0, 0] }, config);
    expect(same.loss).toBeCloseTo(plain.loss, 12);
    expect(far.loss).toBeCloseTo(2 * plain.loss, 12);
    expect(far.grad_new_logprobs[0]).toBeCloseTo(2 * plain.grad_new_logprobs[0]!, 12);
  });

  it('weighs every token alike without length normalisation', () => {
    const { grad_new_logprobs } = policyLoss(
      { ...base, old_logprobs: [null, null, null, null] },
      { normalize_by_length: false },
    );
    expect([...grad_new_logprobs].map((value) => Math.abs(value).toFixed(6))).toEqual(
      Array(4).fill('0.250000'),
    );
  });

  it('gives zeros for a row without trained tokens', () => {
    const result = policyLoss({ ...base, mask: [0, 0, 0, 0] }, { importance_sampling_level: 'sequence' });
    expect(result.loss).toBeCloseTo(0, 12);
    expect([...result.grad_new_logprobs]).toEqual([0, 0, 0, 0]);
  });

  it.each([
    [{ epsilon: -1 }, /epsilon: expected a number >= 0 or null, got -1/],
    [
      { importance_sampling_level: 'word' },
      /importance_sampling_level: expected "token", "sequence", .* got "word"/,
    ],
    [{ learning_speed: 1 }, /learning_speed: not a field of experimental_config/],
  ])('rejects %j', (config, message) => {
    expect(() => policyLoss(base, config as ExperimentalConfig)).toThrow(message);
  });

  it('rejects columns of different lengths', () => {
    expect(() => policyLoss({ ...base, weights: [1] })).toThrow(/weights: expected 4 entries, got 1/);
  });
});

describe('computeAdvantages', () => {
  it.each(golden.advantages)('$name', ({ config, groups, expected }) => {
    const result = computeAdvantages(groups, {
      scaleRewards: config.scale_rewards,
      advantageBalance: config.advantage_balance,
    });
    expect(result.map(({ group, index }) => [group, index])).toEqual(
      expected.trajectories.map(({ group, index }) => [group, index]),
    );
    expected.trajectories.forEach((trajectory, i) => {
      expectClose(result[i]!.advantage, trajectory.advantage);
      expectClose(result[i]!.weight, trajectory.weight);
    });
  });

  it('drops a group whose rewards are equal, also when their mean is not representable', () => {
    const group = [0.1, 0.1, 0.1].map((reward) => ({ reward, trainable_tokens: 3 }));
    expect(computeAdvantages([group])).toEqual([]);
  });
});
