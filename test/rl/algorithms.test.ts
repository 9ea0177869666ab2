/** Published algorithms as settings -> advantages, losses and gradients as automatic differentiation of their formulas gives them. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { computeAdvantages } from '../../src/rl/advantages.ts';
import { algorithms } from '../../src/rl/algorithms.ts';
import { policyLoss, preferenceLoss } from '../../src/rl/caller-losses.ts';
import { distillationAdvantages } from '../../src/rl/distillation.ts';
import { type ExperimentalConfig, resolveSettings } from '../../src/rl/settings.ts';

type Result = { readonly loss: number; readonly gradient: readonly number[] };
type Golden = {
  readonly lengths: readonly (readonly number[])[];
  readonly rewards: readonly (readonly number[])[];
  readonly new_logprobs: readonly number[];
  readonly old_logprobs: readonly number[];
  readonly ref_logprobs: readonly number[];
  readonly teacher_logprobs: readonly number[];
  readonly policy: readonly (Result & {
    readonly algorithm: keyof typeof algorithms;
    readonly config: ExperimentalConfig;
    readonly advantages: readonly number[];
  })[];
  readonly preference: readonly (Result & { readonly config: ExperimentalConfig })[];
  readonly distillation: Result;
};
const golden = JSON.parse(
  fs.readFileSync(new URL('../golden/rl/algorithms.json', import.meta.url), 'utf8'),
) as Golden;
const { lengths, rewards, new_logprobs, old_logprobs, ref_logprobs, teacher_logprobs } = golden;
const answers = lengths.flat();
const sequence_ids = answers.flatMap((length, answer) => Array<number>(length).fill(answer));
const mask = sequence_ids.map(() => 1);
const perToken = (values: readonly number[]) => sequence_ids.map((answer) => values[answer]!);

/** Within 1e-9, relative to numbers above 1e-3. */
function expectClose(got: ArrayLike<number>, expected: readonly number[]): void {
  expect(got.length).toBe(expected.length);
  expected.forEach((value, i) => {
    expect(Math.abs(got[i]! - value)).toBeLessThanOrEqual(1e-9 * Math.max(Math.abs(value), 1e-3));
  });
}

describe('an algorithm', () => {
  it.each(golden.policy)('$algorithm $config', ({ algorithm, config, advantages, loss, gradient }) => {
    const settings = resolveSettings({ ...algorithms[algorithm], ...config });
    const { overlong_length: length, overlong_buffer: buffer } = settings;
    const lost = (tokens: number) =>
      length === null ? 0 : Math.min(1, Math.max(0, (tokens - length + buffer!) / buffer!));
    const kept = computeAdvantages(
      rewards.map((group, g) =>
        group.map((reward, i) => {
          const trainable_tokens = lengths[g]![i]!;
          return { reward: reward - lost(trainable_tokens), trainable_tokens };
        }),
      ),
      {
        estimator: settings.advantage_estimator,
        scaleRewards: settings.scale_rewards,
        normalize: settings.normalize_advantages,
      },
    );
    expectClose(
      kept.map(({ advantage }) => advantage),
      advantages,
    );
    const got = policyLoss(
      {
        new_logprobs,
        old_logprobs,
        ref_logprobs,
        advantages: perToken(kept.map(({ advantage }) => advantage)),
        weights: perToken(kept.map(({ weight }) => weight)),
        mask,
        sequence_ids,
      },
      { ...algorithms[algorithm], ...config },
    );
    expectClose([got.loss], [loss]);
    expectClose(got.grad_new_logprobs, gradient);
  });
});

describe('a preference loss', () => {
  const signs = perToken(answers.map((_, answer) => (answer % 2 === 0 ? 1 : -1)));
  it.each(golden.preference)('$config', ({ config, loss, gradient }) => {
    const isPair = config.preference_loss === 'dpo';
    const units = isPair ? sequence_ids.map((answer) => answer >> 1) : sequence_ids;
    const inputs = { new_logprobs, ref_logprobs, advantages: signs, mask, sequence_ids: units };
    const got = preferenceLoss(inputs, config);
    expectClose([got.loss], [loss]);
    expectClose(got.grad_new_logprobs, gradient);
    expect(got.preference_accuracy).toBeGreaterThanOrEqual(0);
  });

  it('leaves out what is masked, and refuses half a pair', () => {
    const inputs = {
      new_logprobs: [-1, -2, -9],
      ref_logprobs: [-1, -2, -1],
      advantages: [1, -1, 1],
      mask: [1, 1, 0],
      sequence_ids: [0, 0, 0],
    };
    const { loss, grad_new_logprobs } = preferenceLoss(inputs, { preference_loss: 'dpo' });
    expect(loss).toBeCloseTo(Math.log(2), 12);
    expect(grad_new_logprobs[2]).toBe(0);
    expect(() => preferenceLoss({ ...inputs, mask: [1, 0, 0] }, { preference_loss: 'dpo' })).toThrow(
      'expected tokens of a preferred and of a rejected answer',
    );
  });
});

describe('distillation', () => {
  it('descends the reverse KL divergence per token', () => {
    const advantages = distillationAdvantages(old_logprobs, teacher_logprobs);
    const got = policyLoss(
      { new_logprobs, old_logprobs, advantages, weights: mask, mask, sequence_ids },
      { normalize_by_length: false },
    );
    expectClose([got.loss], [golden.distillation.loss]);
    expectClose(got.grad_new_logprobs, golden.distillation.gradient);
  });

  it('needs the same tokens', () => {
    expect(() => distillationAdvantages([-1, -2], [-1])).toThrow('teacher: expected 2 entries, got 1');
  });
});

it('docs/agents.md has a curve of each', () => {
  const page = fs.readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8');
  const named = [...page.matchAll(/^\| `(\w+)` \|.*\(curves\/.*\.svg\) \|$/gm)].map(([, name]) => name);
  expect(named).toEqual(Object.keys(algorithms));
});
