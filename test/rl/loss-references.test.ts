/** Losses and masks as their papers write them, differentiated automatically -> what `policyLoss` computes, on drawn rows. */
import { describe, expect, it } from 'vitest';
import { computeAdvantages } from '../../src/rl/advantages.ts';
import { algorithms } from '../../src/rl/algorithms.ts';
import { policyLoss } from '../../src/rl/caller-losses.ts';
import type { ExperimentalConfig } from '../../src/rl/settings.ts';
import { sum, Var } from './autodiff.ts';
import { type DrawnRow, drawRow, uniforms } from './drawn-rows.ts';

const DRAWS = 200;

/** A token of a row, with its sequence. */
type Token = {
  readonly fresh: Var;
  readonly old: number;
  readonly sampled: number;
  readonly ref: number;
  readonly advantage: number;
  readonly entropy: number;
  /** The trained tokens of its sequence and of the row. */
  readonly sequence: () => readonly Token[];
  readonly row: () => readonly Token[];
};

/** The loss of one token: what is weighted, summed and divided. */
type Formula = (token: Token, draw: number) => Var;

const ratio = ({ fresh, old }: Token): Var => fresh.minus(old).exp();
const mean = (numbers: readonly number[]): number =>
  numbers.reduce((total, one) => total + one, 0) / numbers.length;
const total = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** min(r A, clip(r) A), to be maximized. */
function clipped(r: Var, advantage: number, low = 0.2, high = 0.2): Var {
  return r.times(advantage).min(r.clamp(1 - low, 1 + high).times(advantage));
}

/** The clipped objective of PPO with a ratio of at most 3 where the advantage is negative. */
function dualClipped(token: Token, advantage = token.advantage): Var {
  const gain = clipped(ratio(token), advantage);
  return advantage < 0 ? gain.max(3 * advantage) : gain;
}

const disagreement = ({ old, sampled }: Token): number => old - sampled;
const pick = <T>(values: readonly T[], draw: number): T => values[draw % values.length]!;

type Case = readonly [name: string, config: (draw: number) => ExperimentalConfig, formula: Formula];

const CASES: readonly Case[] = [
  [
    'the distance of the sampler from the reference (ART)',
    (draw) => ({
      ppo: true,
      dual_clip: 3,
      kl_penalty_coef: pick([0.1, 2], draw),
      kl_penalty_source: 'sample',
    }),
    (token, draw) => {
      const gaps = token.row().map(({ old, ref }) => old - ref);
      const away = total(gaps) / (gaps.length + 1e-6) - (token.old - token.ref);
      return dualClipped(token, token.advantage + pick([0.1, 2], draw) * away).times(-1);
    },
  ],
  [
    'sapo (2511.20347)',
    () => algorithms.sapo,
    (token) => {
      const t = token.advantage > 0 ? 1 : 1.05;
      const gate = ratio(token).minus(1).times(t).sigmoid();
      return gate.times((4 / t) * token.advantage).times(-1);
    },
  ],
  [
    'sapo with ratios of sequences and other temperatures',
    (draw) => ({
      objective: 'sapo',
      importance_sampling_level: 'sequence',
      sapo_temperature_pos: 0.5 + (draw % 3),
      sapo_temperature_neg: 0.7 + (draw % 5),
    }),
    (token, draw) => {
      const t = token.advantage > 0 ? 0.5 + (draw % 3) : 0.7 + (draw % 5);
      const tokens = token.sequence();
      const log = sum(tokens.map(({ fresh, old }) => fresh.minus(old))).times(1 / tokens.length);
      const gate = log.exp().minus(1).times(t).sigmoid();
      return gate.times((4 / t) * token.advantage).times(-1);
    },
  ],
  ['dual_clip (1912.09729)', () => ({ ppo: true, dual_clip: 3 }), (token) => dualClipped(token).times(-1)],
  [
    'off_policy_mask_threshold (DeepSeek-V3.2)',
    (draw) => ({ ppo: true, dual_clip: 3, off_policy_mask_threshold: pick([0, 0.1, 0.3], draw) }),
    (token, draw) => {
      const far = mean(token.sequence().map(({ sampled, fresh }) => sampled - fresh.value));
      if (token.advantage < 0 && far > pick([0, 0.1, 0.3], draw)) return new Var(0);
      return dualClipped(token).times(-1);
    },
  ],
  [
    'kl_loss_unbiased (DeepSeek-V3.2)',
    () => ({ ppo: true, dual_clip: 3, kl_loss_coef: 0.1, kl_loss_unbiased: true }),
    (token) => {
      const loss = dualClipped(token).times(-1);
      const gap = new Var(token.ref).minus(token.fresh).min(20); // bounded as in verl
      const r = token.fresh.minus(token.old).min(20).exp();
      return loss.plus(r.times(gap.exp().minus(gap).minus(1)).times(0.1));
    },
  ],
  [
    'icepop: token_mask',
    () => ({ ...algorithms.icepop, dual_clip: 3 }),
    (token) => {
      const s = Math.exp(disagreement(token));
      if (s < 0.5 || s > 5) return new Var(0);
      return dualClipped(token).times(-s);
    },
  ],
  ...(['sequence_mask', 'sequence_cap', 'sequence_mean_mask', 'sequence_mean_cap'] as const).map(
    (sampler_correction): Case => [
      `sampler_correction: ${sampler_correction}`,
      (draw) => ({
        ppo: true,
        max_negative_advantage_importance_sampling_weight: 1e3,
        sampler_correction,
        sampler_correction_max: pick([1.5, 3], draw),
        ...(sampler_correction === 'sequence_mask' ? { sampler_correction_min: 0.3 } : {}),
      }),
      (token, draw) => {
        const logs = token.sequence().map(disagreement);
        const most = pick([1.5, 3], draw);
        let s = Math.exp(sampler_correction.includes('mean') ? mean(logs) : total(logs));
        if (sampler_correction.endsWith('cap')) s = Math.min(s, most);
        else if (s > most || (sampler_correction === 'sequence_mask' && s < 0.3)) s = 0;
        return s === 0 ? new Var(0) : clipped(ratio(token).min(1e3), token.advantage).times(-s);
      },
    ],
  ),
  [
    'dppo by total variation (2602.04879)',
    () => algorithms.dppo,
    (token) => {
      const moved = Math.exp(token.fresh.value) - Math.exp(token.sampled);
      if (token.advantage > 0 ? moved > 0.2 : moved < -0.2) return new Var(0);
      return token.fresh.minus(token.old).min(20).exp().times(-token.advantage);
    },
  ],
  [
    'ipo by total variation, in both directions (prime-rl)',
    (draw) => ({
      ...algorithms.dppo,
      dppo_mask_low: null,
      dppo_mask_high: null,
      ipo_mask: pick([0.3, 0, 1], draw),
    }),
    (token, draw) => {
      if (Math.abs(Math.exp(token.fresh.value) - Math.exp(token.sampled)) > pick([0.3, 0, 1], draw))
        return new Var(0);
      return token.fresh.minus(token.old).min(20).exp().times(-token.advantage);
    },
  ],
  [
    'importance_sampling',
    () => ({ objective: 'importance_sampling' }),
    (token) => token.fresh.minus(token.old).min(20).exp().times(-token.advantage),
  ],
  [
    'dro',
    (draw) => ({ objective: 'dro', dro_beta: pick([0.05, 0, 1], draw) }),
    (token, draw) => {
      const difference = token.fresh.minus(token.old);
      const pull = difference.times(difference).times(pick([0.05, 0, 1], draw) / 2);
      return pull.minus(token.fresh.times(token.advantage));
    },
  ],
  [
    'top_entropy_quantile (2506.01939)',
    (draw) => ({
      ppo: true,
      max_negative_advantage_importance_sampling_weight: 1e3,
      top_entropy_quantile: pick([0.2, 0.5, 0], draw),
    }),
    (token, draw) => {
      const sorted = token
        .row()
        .map(({ entropy }) => entropy)
        .sort((a, b) => a - b);
      const place = (1 - pick([0.2, 0.5, 0], draw)) * (sorted.length - 1);
      const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
      if (token.entropy < low + (high - low) * (place % 1)) return new Var(0);
      return clipped(ratio(token).min(1e3), token.advantage).times(-1);
    },
  ],
  [
    'entropy_advantage_coef (2506.14758)',
    () => ({ ppo: true, dual_clip: 3, entropy_advantage_coef: 0.4 }),
    (token) => {
      const { advantage, entropy } = token;
      return dualClipped(token, advantage + Math.min(0.4 * entropy, Math.abs(advantage) / 2)).times(-1);
    },
  ],
];

/** The loss of a row by a formula, and its gradient. */
function reference(row: DrawnRow, formula: Formula, draw: number, isWeighted: boolean) {
  const trained = [...row.mask.keys()].filter((i) => row.mask[i]);
  const tokens = new Map<number, Token>();
  for (const i of trained)
    tokens.set(i, {
      fresh: new Var(row.new_logprobs[i]!),
      old: row.old_logprobs[i]!,
      sampled: row.original_logprobs[i]!,
      ref: row.ref_logprobs[i]!,
      advantage: row.advantages[i]!,
      entropy: row.entropies[i]!,
      sequence: () =>
        trained.filter((j) => row.sequence_ids[j] === row.sequence_ids[i]).map((j) => tokens.get(j)!),
      row: () => [...tokens.values()],
    });
  const terms = trained.map((i) => formula(tokens.get(i)!, draw).times(isWeighted ? row.weights[i]! : 1));
  const loss = sum(terms).times(1 / (trained.length + 1e-6));
  loss.backward();
  return { loss: loss.value, gradient: row.mask.map((_, i) => tokens.get(i)?.fresh.gradient ?? 0) };
}

/** Within 1e-9, relative to numbers above 1e-3. */
function expectClose(got: ArrayLike<number>, expected: readonly number[], name: string): void {
  expect(got.length).toBe(expected.length);
  expected.forEach((value, i) => {
    expect(got[i], name).toSatisfy(Number.isFinite);
    expect(Math.abs(got[i]! - value), name).toBeLessThanOrEqual(1e-9 * Math.max(Math.abs(value), 1e-3));
  });
}

describe('a loss or mask', () => {
  it.each(CASES)('%s', (_, configOf, formula) => {
    for (let draw = 0; draw < DRAWS; draw++) {
      const row = drawRow(draw);
      const config = configOf(draw);
      const { loss, grad_new_logprobs } = policyLoss(row, config);
      const expected = reference(row, formula, draw, config.normalize_by_length ?? true);
      const name = `draw ${draw} ${JSON.stringify(config)}`;
      expectClose([loss], [expected.loss], name);
      expectClose(grad_new_logprobs, expected.gradient, name);
    }
  });
});

/** Groups of rewards, some of them equal. */
function drawGroups(draw: number) {
  const next = uniforms(draw);
  return Array.from({ length: 1 + (draw % 3) }, () => {
    const isEqual = next() < 0.2;
    return Array.from({ length: 1 + Math.floor(5 * next()) }, () => ({
      reward: isEqual ? 0.5 : next() < 0.5 ? 0 : next(),
      trainable_tokens: 1 + Math.floor(9 * next()),
      metrics: { right: next() < 0.5, form: isEqual ? 0.3 : next() },
    }));
  });
}

/** Population standard deviation + 1e-6, as everywhere here. */
function spread(numbers: readonly number[]): number {
  const middle = mean(numbers);
  return Math.sqrt(mean(numbers.map((one) => (one - middle) ** 2))) + 1e-6;
}

const relative = (numbers: readonly number[]): number[] =>
  numbers.map((one) => (one - mean(numbers)) / spread(numbers));

describe('an advantage', () => {
  it('maxrl (2602.02710)', () => {
    for (let draw = 0; draw < DRAWS; draw++) {
      const groups = drawGroups(draw);
      const expected = groups.map((group) => {
        const rewards = group.map(({ reward }) => reward);
        const middle = mean(rewards);
        return rewards.map((reward) => (middle > 0 ? (reward - middle) / (middle + 1e-6) : 0));
      });
      expectAdvantages(groups, { estimator: 'maxrl', normalize: false }, expected);
    }
  });

  it('gdpo (2601.05242)', () => {
    for (let draw = 0; draw < DRAWS; draw++) {
      const groups = drawGroups(draw);
      const rewardWeights = { right: 1, form: pick([0.5, 2, -1], draw) };
      const combined = groups.map((group) => {
        const right = relative(group.map(({ metrics }) => Number(metrics.right)));
        const form = relative(group.map(({ metrics }) => metrics.form));
        return right.map((one, i) => one + rewardWeights.form * form[i]!);
      });
      const all = relative(combined.flat());
      const expected = combined.map((group) => group.map(() => all.shift()!));
      expectAdvantages(groups, { rewardWeights, normalize: false }, expected);
    }
  });

  it('gdpo needs its rewards', () => {
    const groups = [[{ reward: 1, trainable_tokens: 1, metrics: { right: 1 } }]];
    expect(() => computeAdvantages(groups, { rewardWeights: { form: 1 } })).toThrow(
      'groups.0.0.metrics.form: expected a number, got nothing',
    );
  });
});

function expectAdvantages(
  groups: ReturnType<typeof drawGroups>,
  options: Parameters<typeof computeAdvantages>[1],
  expected: readonly (readonly number[])[],
): void {
  const got = groups.map((group) => group.map(() => 0));
  for (const { group, index, advantage } of computeAdvantages(groups, options))
    got[group]![index] = advantage;
  expectClose(got.flat(), expected.flat(), JSON.stringify(groups));
}
