/** Rewards of each group's attempts -> one advantage and one token weight per trajectory that trains anything. */
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
  /** The same for each of its tokens. */
  readonly advantage: number;
  /** Weight of each of its tokens; over the batch's trainable tokens the mean is 1. */
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
  const { estimator, scaleRewards, advantageBalance, normalize } = withDefaults('AdvantageOptions', options);
  const kept = centeredGroups(groups, estimator, scaleRewards).flatMap((advantages, group) =>
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

/** Whether a group's rewards differ: only then can it train anything. */
export function isTrainable(rewards: readonly number[]): boolean {
  return centered(rewards, false).some((advantage) => advantage !== 0);
}

/** Advantages before balance and normalization, (groups)(trajectories). */
function centeredGroups(
  groups: readonly (readonly ScoredTrajectory[])[],
  estimator: AdvantageEstimator,
  scaleRewards: boolean,
): number[][] {
  const rewards = groups.map((trajectories) => trajectories.map(({ reward }) => reward));
  if (estimator === 'batch') {
    const all = centered(rewards.flat(), scaleRewards);
    let next = 0;
    return rewards.map((group) => group.map(() => all[next++]!));
  }
  return rewards.map((group) => {
    const advantages = centered(group, scaleRewards);
    if (estimator === 'group' || group.length < 2) return advantages;
    const share = group.length / (group.length - 1); // the mean of the others is that much farther away
    return advantages.map((advantage) => advantage * share);
  });
}

/** Rewards minus their mean, in units of their standard deviation when `scale`. 0 where only rounding makes a difference. */
function centered(given: readonly number[], scale: boolean): number[] {
  const unit = unitOf(given);
  const rewards = given.map((reward) => reward / unit);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const largest = rewards.reduce((most, reward) => Math.max(most, Math.abs(reward)), 0);
  const rounding = Number.EPSILON * rewards.length * largest; // what a sum of so many decimal fractions may be off
  const differences = rewards.map((reward) => (Math.abs(reward - mean) > rounding ? reward - mean : 0));
  const variance = differences.reduce((sum, difference) => sum + difference ** 2, 0) / rewards.length;
  const divisor = scale ? Math.sqrt(variance) + EPSILON / unit : 1 / unit;
  return differences.map((difference) => difference / divisor);
}

/** What to divide numbers by so that their sums and squares are finite: 1, or a power of two, which rounds nothing. */
function unitOf(numbers: readonly number[]): number {
  return numbers.some((number) => Math.abs(number) > 2 ** 400) ? 2 ** 600 : 1;
}

function balanced(advantage: number, balance: number): number {
  if (balance > 0 && advantage < 0) return advantage * (1 - balance);
  if (balance < 0 && advantage > 0) return advantage * (1 + balance);
  return advantage;
}
