/** Numbers collected while a job runs -> the named metrics of a step. */
import { unitOf } from './advantages.ts';
import type { Trajectory, TrajectoryGroup } from './trajectory.ts';

/** Metric values by name. */
export type Metrics = Record<string, number>;

/** Numbers above this limit are summed in units of {@link UNIT}, so that their sum is finite. */
const LARGE = 2 ** 900;
const UNIT = 2 ** 100;

/** Averages the numbers that are added under each name. A name without numbers is absent. */
export class Averages {
  readonly #sums = new Map<
    string,
    { readonly sum: number; readonly large: number; readonly count: number }
  >();

  add(values: Readonly<Record<string, number | null | undefined>>): void {
    for (const [name, value] of Object.entries(values)) {
      if (value === null || value === undefined || !Number.isFinite(value)) continue;
      const { sum, large, count } = this.#sums.get(name) ?? { sum: 0, large: 0, count: 0 };
      const next =
        Math.abs(value) > LARGE ? { sum, large: large + value / UNIT } : { sum: sum + value, large };
      this.#sums.set(name, { ...next, count: count + 1 });
    }
  }

  read(): Metrics {
    const means = [...this.#sums].map(([name, { sum, large, count }]): [string, number] => [
      name,
      sum / count + (large / count) * UNIT,
    ]);
    return Object.fromEntries(means);
  }
}

/** Returns the mean reward, the mean spread of rewards within a group, and the means of the trajectories' own metrics, under `split`. */
export function trajectoryMetrics(groups: readonly TrajectoryGroup[], split: string): Metrics {
  const averages = new Averages();
  for (const group of groups) addGroupMetrics(() => averages, group, split);
  return averages.read();
}

/** Returns the step of the model that sampled a trajectory: the one that it states, else `otherwise`. */
export function policyStepOf(
  { initial_policy_version, final_policy_version }: PolicyVersions,
  otherwise: number,
): number {
  return final_policy_version ?? initial_policy_version ?? otherwise;
}

/** Steps of the model at the first and at the last token of a trajectory. */
type PolicyVersions = {
  readonly initial_policy_version?: number | null | undefined;
  readonly final_policy_version?: number | null | undefined;
};

/** Averages for each step of a model. */
export class StepAverages {
  readonly #steps = new Map<number, Averages>();

  at(step: number): Averages {
    const averages = this.#steps.get(step) ?? new Averages();
    this.#steps.set(step, averages);
    return averages;
  }

  /** Returns the averages in order of their steps. */
  read(): { readonly step: number; readonly metrics: Metrics }[] {
    const sorted = [...this.#steps].sort(([a], [b]) => a - b);
    return sorted.map(([step, averages]) => ({ step, metrics: averages.read() }));
  }
}

/**
 * Adds one group to the averages of {@link trajectoryMetrics}. The spread of its rewards counts for its newest policy.
 * @param averagesOf returns the averages that a trajectory of the group belongs to
 */
export function addGroupMetrics<Attempt extends Trajectory>(
  averagesOf: (trajectory: Attempt) => Averages,
  { trajectories }: { readonly trajectories: readonly Attempt[] },
  split: string,
): void {
  const newest = trajectories.reduce<Attempt | null>(
    (found, one) => (found && policyStepOf(found, -1) >= policyStepOf(one, -1) ? found : one),
    null,
  );
  if (newest) averagesOf(newest).add({ [`${split}/reward_std_dev`]: deviation(trajectories) });
  for (const trajectory of trajectories) {
    const averages = averagesOf(trajectory);
    averages.add({ [`${split}/reward`]: trajectory.reward });
    addOwnMetrics(averages, trajectory.metrics ?? {}, split);
  }
}

/** Adds a trajectory's own metrics: numbers, and flags as 0 or 1. */
export function addOwnMetrics(
  averages: Averages,
  metrics: Readonly<Record<string, unknown>>,
  split: string,
): void {
  for (const [name, value] of Object.entries(metrics))
    if (typeof value === 'number' || typeof value === 'boolean')
      averages.add({ [`${split}/${name}`]: Number(value) });
}

function deviation(trajectories: readonly Trajectory[]): number {
  const unit = unitOf(trajectories.map(({ reward }) => reward));
  const rewards = trajectories.map(({ reward }) => reward / unit);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  return unit * Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length);
}
