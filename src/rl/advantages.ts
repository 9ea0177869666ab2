/** Rewards of each group's attempts -> one advantage and one token weight per trajectory with a gradient. */
import { describe } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import {
  type AdvantageOptions,
  checkArguments,
  type ScoredTrajectory,
  withDefaults,
} from '../protocol/index.ts';
import type { AdvantageEstimator } from './settings.ts';

/** A trajectory to train on, by its index in the input. */
export type TrajectoryAdvantage = {
  readonly group: number;
  readonly index: number;
  /** Advantage of each of its tokens. */
  readonly advantage: number;
  /** Weight of each of its tokens. The mean over the batch's trainable tokens is 1. */
  readonly weight: number;
  /** Trajectories of one unit are trained in one row. Absent: each is independent. */
  readonly unit?: number | undefined;
};

const EPSILON = 1e-6;

/**
 * Turns rewards into advantages. A trajectory whose reward equals its baseline up to rounding is left out, because it has no gradient.
 * @param groups (groups)(trajectories of the group)
 */
export function computeAdvantages(
  groups: readonly (readonly ScoredTrajectory[])[],
  options?: AdvantageOptions,
): TrajectoryAdvantage[] {
  checkArguments('AdvantageArguments', { groups, options });
  const { estimator, rewardWeights, scaleRewards, advantageBalance, normalize } = withDefaults(
    'AdvantageOptions',
    options,
  );
  const centeredRewards = rewardWeights
    ? combinedGroups(groups, rewardWeights)
    : centeredGroups(groups, estimator, scaleRewards);
  const kept = centeredRewards.flatMap((advantages, group) =>
    advantages.flatMap((advantage, index) => {
      if (advantage === 0) return [];
      const tokens = groups[group]![index]!.trainable_tokens;
      return [
        {
          group,
          index,
          tokens,
          advantage: balanced(advantage, advantageBalance),
          weight: 1 / (tokens + EPSILON),
        },
      ];
    }),
  );
  const tokenCount = kept.reduce((sum, one) => sum + one.tokens, 0);
  if (tokenCount === 0) return kept.map(({ tokens: _, ...one }) => one);
  const meanWeight = kept.reduce((sum, one) => sum + one.weight * one.tokens, 0) / tokenCount;
  const weighted = kept.map((one) => ({ ...one, weight: one.weight / meanWeight }));
  const unit = unitOf(weighted.map((one) => one.advantage));
  const magnitude =
    weighted.reduce((sum, one) => sum + Math.abs(one.advantage / unit) * one.weight * one.tokens, 0) /
    tokenCount;
  const isScaled = normalize && magnitude > 0;
  return weighted.map(({ group, index, advantage, weight }) => ({
    group,
    index,
    advantage: isScaled ? advantage / unit / magnitude : advantage,
    weight,
  }));
}

/** Returns true if a group's rewards differ, because a group of equal rewards has no gradient. */
export function isTrainable(rewards: readonly number[]): boolean {
  return centered(rewards, false).some((advantage) => advantage !== 0);
}

/** Returns the advantages before balancing and normalization, (groups)(trajectories). */
function centeredGroups(
  groups: readonly (readonly ScoredTrajectory[])[],
  estimator: AdvantageEstimator,
  scaleRewards: boolean,
): number[][] {
  const rewards = groups.map((trajectories) => trajectories.map(({ reward }) => reward));
  if (estimator === 'batch') {
    return inGroups(centered(rewards.flat(), scaleRewards), groups);
  }
  if (estimator === 'none') return rewards;
  if (estimator === 'maxrl') return rewards.map(inUnitsOfMean);
  return rewards.map((group) => {
    const advantages = centered(group, scaleRewards);
    if (estimator === 'group' || group.length < 2) return advantages;
    const share = group.length / (group.length - 1); // the mean of the others is farther away by this factor
    return advantages.map((advantage) => advantage * share);
  });
}

/**
 * GDPO (arXiv:2601.05242): each reward relative to its group, divided by its standard deviation there; then their weighted sum, divided by
 * its standard deviation over the batch.
 */
function combinedGroups(
  groups: readonly (readonly ScoredTrajectory[])[],
  weights: Readonly<Record<string, number>>,
): number[][] {
  const sums = groups.map((group) => group.map(() => 0));
  for (const [name, weight] of Object.entries(weights))
    for (const [g, group] of groups.entries()) {
      const rewards = group.map(({ metrics }, t) =>
        namedReward(metrics?.[name], `groups.${g}.${t}.metrics.${name}`),
      );
      for (const [t, advantage] of centered(rewards, true).entries()) sums[g]![t]! += weight * advantage;
    }
  return inGroups(centered(sums.flat(), true), groups);
}

function namedReward(value: unknown, path: string): number {
  const reward = typeof value === 'boolean' ? Number(value) : value;
  if (typeof reward === 'number' && Number.isFinite(reward)) return reward;
  throw errorAt(path, 'INVALID_REQUEST', `expected a number, got ${describe(value)}`);
}

/** Splits numbers of all trajectories by group again. */
function inGroups(all: readonly number[], groups: readonly (readonly unknown[])[]): number[][] {
  let next = 0;
  return groups.map((group) => group.map(() => all[next++]!));
}

/** MaxRL (arXiv:2602.02710): rewards divided by their mean. A group that never succeeds has no gradient. */
function inUnitsOfMean(rewards: readonly number[]): number[] {
  const unit = unitOf(rewards);
  const mean = rewards.reduce((sum, reward) => sum + reward / unit, 0) / rewards.length;
  return centered(rewards, false).map((advantage) =>
    mean > 0 ? advantage / unit / (mean + EPSILON / unit) : 0,
  );
}

/** Returns rewards minus their mean, divided by their standard deviation if `scale`. Returns 0 if they differ by rounding only. */
function centered(given: readonly number[], scale: boolean): number[] {
  const unit = unitOf(given);
  const rewards = given.map((reward) => reward / unit);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const largest = rewards.reduce((most, reward) => Math.max(most, Math.abs(reward)), 0);
  const rounding = Number.EPSILON * rewards.length * largest; // bound on the rounding error of a sum of this many decimal fractions
  const differences = rewards.map((reward) => (Math.abs(reward - mean) > rounding ? reward - mean : 0));
  const variance = differences.reduce((sum, difference) => sum + difference ** 2, 0) / rewards.length;
  const divisor = scale ? Math.sqrt(variance) + EPSILON / unit : 1 / unit;
  return differences.map((difference) => difference / divisor);
}

/** Returns a divisor that keeps sums and squares of the numbers finite: 1, or a power of two, which does not round. */
export function unitOf(numbers: readonly number[]): number {
  return numbers.some((number) => Math.abs(number) > 2 ** 400) ? 2 ** 600 : 1;
}

function balanced(advantage: number, balance: number): number {
  if (balance > 0 && advantage < 0) return advantage * (1 - balance);
  if (balance < 0 && advantage > 0) return advantage * (1 + balance);
  return advantage;
}
