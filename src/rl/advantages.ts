/** Rewards of each group's attempts -> one advantage and one token weight per trajectory that trains anything. */
import type { AdvantageEstimator } from './settings.ts';

/** What one trajectory brings: its reward, and how many of its tokens are trained on. */
export type ScoredTrajectory = { readonly reward: number; readonly trainable_tokens: number };

/** Settings of {@link computeAdvantages}. */
export type AdvantageOptions = {
  /**
   * What a reward is compared with: the mean of its group (default), the mean of the others of its group (RLOO,
   * arXiv:2402.14740), or the mean of the batch (REINFORCE++, arXiv:2501.03262).
   */
  readonly estimator?: AdvantageEstimator | undefined;
  /** Divides by the standard deviation of what it is compared with. Default true. */
  readonly scaleRewards?: boolean | undefined;
  /** In [-1, 1]: above 0 weakens negative advantages, below 0 positive ones. Default 0. */
  readonly advantageBalance?: number | undefined;
  /** Divides by the batch's mean magnitude per trainable token. Default true. */
  readonly normalize?: boolean | undefined;
};

/** A trajectory that trains, by its place in the input. */
export type TrajectoryAdvantage = {
  readonly group: number;
  readonly index: number;
  /** The same for each of its tokens. */
  readonly advantage: number;
  /** Weight of each of its tokens; over the batch's trainable tokens the mean is 1. */
  readonly weight: number;
  /** Trajectories of one unit are trained on in one row. Absent: each is for itself. */
  readonly unit?: number | undefined;
};

const EPSILON = 1e-6;

/**
 * Turns rewards into advantages. A trajectory whose reward equals its group's mean is left out: it trains nothing.
 * @param groups (groups)(trajectories of the group)
 */
export function computeAdvantages(
  groups: readonly (readonly ScoredTrajectory[])[],
  options: AdvantageOptions = {},
): TrajectoryAdvantage[] {
  const balance = options.advantageBalance ?? 0;
  const kept = centeredGroups(groups, options).flatMap((advantages, group) =>
    advantages.flatMap((advantage, index) => {
      if (advantage === 0) return [];
      const tokens = groups[group]![index]!.trainable_tokens;
      return [
        { group, index, tokens, advantage: balanced(advantage, balance), weight: 1 / (tokens + EPSILON) },
      ];
    }),
  );
  const tokenCount = kept.reduce((sum, one) => sum + one.tokens, 0);
  if (tokenCount === 0) return kept.map(({ tokens: _, ...one }) => one);
  const meanWeight = kept.reduce((sum, one) => sum + one.weight * one.tokens, 0) / tokenCount;
  const weighted = kept.map((one) => ({ ...one, weight: one.weight / meanWeight }));
  const magnitude =
    weighted.reduce((sum, one) => sum + Math.abs(one.advantage) * one.weight * one.tokens, 0) / tokenCount;
  const scale = (options.normalize ?? true) && magnitude > 0 ? magnitude : 1;
  return weighted.map(({ group, index, advantage, weight }) => ({
    group,
    index,
    advantage: advantage / scale,
    weight,
  }));
}

/** Whether a group's rewards differ: only then can it train anything. */
export function isTrainable(rewards: readonly number[]): boolean {
  return rewards.some((reward) => reward !== rewards[0]);
}

/** Advantages before balance and normalization, (groups)(trajectories). */
function centeredGroups(
  groups: readonly (readonly ScoredTrajectory[])[],
  { estimator = 'group', scaleRewards = true }: AdvantageOptions,
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

/** Rewards minus their mean, in units of their standard deviation when `scale`. Exactly 0 when all are equal. */
function centered(rewards: readonly number[], scale: boolean): number[] {
  if (!isTrainable(rewards)) return rewards.map(() => 0); // a rounded mean would leave a remainder
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const variance = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length;
  const divisor = scale ? Math.sqrt(variance) + EPSILON : 1;
  return rewards.map((reward) => (reward - mean) / divisor);
}

function balanced(advantage: number, balance: number): number {
  if (balance > 0 && advantage < 0) return advantage * (1 - balance);
  if (balance < 0 && advantage > 0) return advantage * (1 + balance);
  return advantage;
}
