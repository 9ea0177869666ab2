/** Extreme columns under every algorithm and option: losses and gradients are finite wherever the formula is. */
import { describe, expect, it } from 'vitest';
import type { ExperimentalConfig, PolicyLossInputs } from '../../src/protocol/index.ts';
import { computeAdvantages } from '../../src/rl/advantages.ts';
import { algorithms } from '../../src/rl/algorithms.ts';
import { policyLoss, preferenceLoss } from '../../src/rl/caller-losses.ts';
import { resolveSettings } from '../../src/rl/settings.ts';

type Inputs = { readonly [Name in keyof PolicyLossInputs]-?: number[] };

/** Two answers of three tokens, as any row has them. */
const ordinary = (): Inputs => ({
  new_logprobs: [-1, -2, -0.5, -3, -0.1, -1.5],
  old_logprobs: [-1.1, -1.8, -0.6, -3, -0.2, -1.4],
  ref_logprobs: [-1.3, -2.1, -0.4, -2.9, -0.3, -1.6],
  original_logprobs: [-1.1, -1.9, -0.6, -3.1, -0.2, -1.4],
  advantages: [1, 1, 1, -1, -1, -1],
  weights: [0.9, 0.9, 0.9, 1.1, 1.1, 1.1],
  mask: [1, 1, 1, 1, 1, 1],
  sequence_ids: [0, 0, 0, 1, 1, 1],
  entropies: [0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
});

/** Changes entries of columns: `{ old_logprobs: { 1: -720 } }`. */
function row(changes: Partial<Record<keyof Inputs, Readonly<Record<number, number>>>>): Inputs {
  const inputs = ordinary();
  for (const [name, entries] of Object.entries(changes))
    for (const [i, value] of Object.entries(entries)) inputs[name as keyof Inputs][Number(i)] = value;
  return inputs;
}

const every = (value: number) => Object.fromEntries([0, 1, 2, 3, 4, 5].map((i) => [i, value]));
const masked = { new_logprobs: 9, old_logprobs: 9, ref_logprobs: 9, original_logprobs: 9, advantages: 9 };
const unknownAt = (at: readonly number[], value: number) =>
  Object.fromEntries(
    [...Object.keys(masked), 'weights', 'entropies'].map((name) => [
      name,
      Object.fromEntries(at.map((i) => [i, value])),
    ]),
  );
const first = (inputs: Inputs): Inputs =>
  Object.fromEntries(Object.entries(inputs).map(([name, column]) => [name, column.slice(0, 1)])) as Inputs;

const ROWS: Record<string, Inputs> = {
  'one good token sampled at -720': row({ old_logprobs: { 1: -720 } }),
  'one bad token sampled at -720': row({ old_logprobs: { 4: -720 } }),
  'tokens sampled at -9999': row({ old_logprobs: { 1: -9999, 4: -9999 }, original_logprobs: { 1: -9999 } }),
  'tokens that became impossible': row({
    new_logprobs: { 1: -9999, 4: -720 },
    ref_logprobs: { 1: -9999, 4: -721 },
  }),
  'one answer sampled at -9999': row({ old_logprobs: { 0: -9999, 1: -9999, 2: -9999 } }),
  'ratios of both kinds in one answer': row({
    old_logprobs: { 0: -9999, 4: -9999 },
    new_logprobs: { 1: -2000 },
    ref_logprobs: { 1: -2000 },
  }),
  'huge finite ratios': row({ old_logprobs: every(-650) }),
  'equal rewards': row({ advantages: every(0), old_logprobs: { 1: -9999, 4: -720 } }),
  'weights of 0': row({ weights: every(0), old_logprobs: { 1: -9999, 4: -720 }, ref_logprobs: { 2: 900 } }),
  'nothing sampled by the sampler': row({ original_logprobs: every(-9999) }),
  'one token': first(row({ old_logprobs: { 0: -9999 } })),
  'NaN in masked positions': row({ mask: { 1: 0, 3: 0 }, ...unknownAt([1, 3], Number.NaN) }),
  'infinity in masked positions': row({
    mask: { 1: 0, 3: 0 },
    ...unknownAt([1, 3], Number.NEGATIVE_INFINITY),
  }),
  'everything masked': row({ mask: every(0), old_logprobs: every(-9999) }),
  'everything masked and unknown': row({ mask: every(0), ...unknownAt([0, 1, 2, 3, 4, 5], Number.NaN) }),
};

/** Every combination of the values of these options. */
function combinations(options: Record<string, readonly unknown[]>): ExperimentalConfig[] {
  return Object.entries(options).reduce<Record<string, unknown>[]>(
    (configs, [name, values]) =>
      configs.flatMap((config) => values.map((value) => ({ ...config, [name]: value }))),
    [{}],
  );
}

const CONFIGS: readonly ExperimentalConfig[] = [
  ...Object.values(algorithms),
  ...combinations({
    ppo: [false, true],
    importance_sampling_level: ['token', 'sequence', 'average', 'geometric_average'],
    mask_prob_ratio: [false, true],
    max_negative_advantage_importance_sampling_weight: [null, 1.5],
    normalize_by_length: [true, false],
    loss_length: [null, 16],
    kl_penalty_coef: [0, 0.1],
    kl_loss_coef: [0, 0.04],
    variant_k2_tau: [0, 0.2],
    truncated_importance_sampling: [null, 2],
    epsilon: [null, 0.3],
  }),
];

/** Returns true if the clipped objective of PPO uses an unclipped ratio of a bad token that exceeds the range of 64-bit floats. */
function isUnbounded(inputs: Inputs, config: ExperimentalConfig): boolean {
  const settings = resolveSettings(config);
  const cap = settings.max_negative_advantage_importance_sampling_weight;
  if (!settings.ppo || cap !== null || settings.mask_prob_ratio) return false;
  const trained = [...inputs.mask.keys()].filter((i) => inputs.mask[i]);
  const difference = (i: number) => inputs.new_logprobs[i]! - inputs.old_logprobs[i]!;
  const mean = (i: number) => {
    const members = trained.filter((j) => inputs.sequence_ids[j] === inputs.sequence_ids[i]);
    return members.reduce((sum, j) => sum + difference(j), 0) / members.length;
  };
  const gap = (i: number) => inputs.new_logprobs[i]! - inputs.ref_logprobs[i]!;
  const meanGap = trained.reduce((sum, i) => sum + gap(i), 0) / trained.length;
  return trained.some((i) => {
    const log = {
      token: difference(i),
      sequence: mean(i),
      average: Math.max(difference(i), mean(i)),
      geometric_average: (difference(i) + mean(i)) / 2,
    }[settings.importance_sampling_level];
    const advantage =
      inputs.advantages[i]! -
      settings.variant_k2_tau * difference(i) +
      settings.kl_penalty_coef * (meanGap - gap(i));
    const lift = Math.exp(inputs.old_logprobs[i]! - inputs.original_logprobs[i]!);
    const {
      truncated_importance_sampling: most,
      sampler_correction_min: low,
      sampler_correction_max: high,
    } = settings;
    const isSeen = settings.sampler_correction ? lift >= low && lift <= high : most === null || lift > 0;
    const weight = isSeen ? (settings.normalize_by_length ? inputs.weights[i]! : 1) : 0;
    return log > 700 && advantage < 0 && weight > 0;
  });
}

describe('policyLoss', () => {
  it.each(Object.entries(ROWS))('%s', (_, inputs) => {
    for (const config of CONFIGS) {
      const name = JSON.stringify(config);
      if (config.kl_loss_coef && inputs.ref_logprobs[2] === 900 && !config.normalize_by_length) continue; // e^900
      const { loss, grad_new_logprobs } = policyLoss(inputs, config);
      if (isUnbounded(inputs, config)) expect(loss, name).toBe(Number.POSITIVE_INFINITY);
      else {
        expect(loss, name).toSatisfy(Number.isFinite);
        expect([...grad_new_logprobs], name).toSatisfy((all: number[]) => all.every(Number.isFinite));
      }
      inputs.mask.forEach((flag, i) => {
        if (!flag) expect(grad_new_logprobs[i], name).toBe(0);
      });
    }
  });

  it('does not see what masked tokens have', () => {
    const hidden = row({ mask: { 1: 0, 3: 0 } });
    const unknown = ROWS['NaN in masked positions']!;
    for (const config of CONFIGS) {
      const { probs_corr: _, ...expected } = policyLoss(hidden, config);
      expect(policyLoss(unknown, config), JSON.stringify(config)).toMatchObject(expected);
    }
  });

  it('takes the mean of two ratios that are too far apart for a float', () => {
    // log-ratios -1000, 2000 and 2000 of one answer: their mean is 1000, and e^-500 e^500 = 1
    const inputs = { ...ordinary(), new_logprobs: [-1001, -1, -1], old_logprobs: [-1, -2001, -2001] };
    const three = Object.fromEntries(
      Object.entries(inputs).map(([name, column]) => [name, column.slice(0, 3)]),
    ) as Inputs;
    const { loss } = policyLoss(three, { importance_sampling_level: 'geometric_average' });
    expect(loss).toBeCloseTo((0.9 * 1001 + 2 * 0.9 * 5) / (3 + 1e-6), 9); // the others have the bound 5
  });
});

describe('preferenceLoss', () => {
  it.each(Object.entries(ROWS))('%s', (_, inputs) => {
    for (const preference_loss of ['dpo', 'kto'] as const)
      for (const preference_beta of [0.1, 20]) {
        const sequence_ids = preference_loss === 'dpo' ? inputs.mask.map(() => 0) : inputs.sequence_ids;
        const advantages = inputs.advantages.map((value, i) => value || (i < 3 ? 1 : -1));
        const isPair = new Set(advantages.filter((__, i) => inputs.mask[i]).map(Math.sign)).size !== 1;
        if (preference_loss === 'dpo' && !isPair) continue;
        const given = { ...inputs, ref_logprobs: inputs.old_logprobs, advantages, sequence_ids };
        const { loss, grad_new_logprobs } = preferenceLoss(given, { preference_loss, preference_beta });
        expect(loss).toSatisfy(Number.isFinite);
        expect([...grad_new_logprobs]).toSatisfy((all: number[]) => all.every(Number.isFinite));
      }
  });
});

describe('computeAdvantages', () => {
  const group = (...rewards: number[]) => rewards.map((reward) => ({ reward, trainable_tokens: 3 }));
  const options = combinations({
    estimator: ['group', 'leave_one_out', 'batch'],
    scaleRewards: [true, false],
    normalize: [true, false],
    advantageBalance: [0, 1, -1],
  });

  it.each([
    [
      [0, 0.1, 0.2],
      [0, 1, 2],
    ],
    [
      [0.1, 0.2, 0.3, 0.4, 0.5],
      [1, 2, 3, 4, 5],
    ],
    [
      [1e-3, 7e-3, 4e-3],
      [1, 7, 4],
    ],
    [
      [0, 1e200, 2e200],
      [0, 1, 2],
    ],
    [
      [-1e308, 1e308],
      [-1, 1],
    ],
    [
      [1e200, 3e200, 1e200, 7e200],
      [1, 3, 1, 7],
    ],
  ])('%j trains like %j', (rewards, plain) => {
    for (const estimator of ['group', 'leave_one_out', 'batch'] as const) {
      const given = computeAdvantages([group(...rewards)], { estimator });
      const expected = computeAdvantages([group(...plain)], { estimator });
      expect(given.map(({ index }) => index)).toEqual(expected.map(({ index }) => index));
      given.forEach(({ advantage }, i) => {
        expect(advantage).toBeCloseTo(expected[i]!.advantage, 3); // 1e-6 is added to the spread
      });
    }
  });

  it.each([
    ['equal', [0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]],
    ['equal but for rounding', [0.1 + 0.2, 0.3]],
    ['one', [5]],
    ['none', []],
  ])('%s rewards train nothing', (_, rewards) => {
    for (const option of options)
      expect(computeAdvantages([group(...rewards)], option as object)).toEqual([]);
  });

  it.each([
    [[1e200, 0, 1e200]],
    [[1e-200, 0, 3e-200]],
    [[5e-324, 0]],
    [[1e300, -1e300, 1]],
    [[Number.MAX_VALUE / 4, -Number.MAX_VALUE / 4, 0]],
  ])('%j gives finite advantages, and the same sign', (rewards) => {
    for (const option of options)
      for (const { index, advantage, weight } of computeAdvantages([group(...rewards)], option as object)) {
        expect(advantage).toSatisfy(Number.isFinite);
        expect(weight).toSatisfy(Number.isFinite);
        const mean = rewards.reduce((sum, reward) => sum + reward / rewards.length, 0);
        if (advantage !== 0) expect(Math.sign(advantage)).toBe(Math.sign(rewards[index]! - mean));
      }
  });
});
