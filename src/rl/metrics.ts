/** Numbers gathered while a job runs -> the named metrics of a step. */
import type { Trajectory, TrajectoryGroup } from './trajectory.ts';

/** Metric values by name. */
export type Metrics = Record<string, number>;

/** Averages what is added under each name; a name that was never added is absent. */
export class Averages {
  readonly #sums = new Map<string, { sum: number; count: number }>();

  add(values: Readonly<Record<string, number | null | undefined>>): void {
    for (const [name, value] of Object.entries(values)) {
      if (value === null || value === undefined || !Number.isFinite(value)) continue;
      const entry = this.#sums.get(name) ?? { sum: 0, count: 0 };
      this.#sums.set(name, { sum: entry.sum + value, count: entry.count + 1 });
    }
  }

  read(): Metrics {
    return Object.fromEntries([...this.#sums].map(([name, { sum, count }]) => [name, sum / count]));
  }
}

/** Mean reward, mean spread of rewards within a group, and the means of the trajectories' own metrics, under `split`. */
export function trajectoryMetrics(groups: readonly TrajectoryGroup[], split: string): Metrics {
  const averages = new Averages();
  for (const group of groups) addGroupMetrics(averages, group, split);
  return averages.read();
}

/** Adds one group to the averages of {@link trajectoryMetrics}.  */
export function addGroupMetrics(averages: Averages, { trajectories }: TrajectoryGroup, split: string): void {
  averages.add({ [`${split}/reward_std_dev`]: deviation(trajectories) });
  for (const { reward, metrics } of trajectories) {
    averages.add({ [`${split}/reward`]: reward });
    addOwnMetrics(averages, metrics ?? {}, split);
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
  const mean = trajectories.reduce((sum, { reward }) => sum + reward, 0) / trajectories.length;
  return Math.sqrt(
    trajectories.reduce((sum, { reward }) => sum + (reward - mean) ** 2, 0) / trajectories.length,
  );
}
