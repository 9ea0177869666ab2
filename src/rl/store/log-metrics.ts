/** Logged trajectories -> the metrics of their split. */
import type { ErrorDetail } from '../../errors.ts';
import { fault, type LogRequest, throwFaults } from '../../protocol/index.ts';
import {
  addGroupMetrics,
  addOwnMetrics,
  conversationsOf,
  isChoice,
  policyStepOf,
  type StepAverages,
} from '../index.ts';

type Group = LogRequest['trajectory_groups'][number];
type Trajectory = Group['trajectories'][number];

/**
 * Adds the metrics of a group to the averages of its split.
 * @param step step of the policy, unless a trajectory states its own
 */
export function addLogMetrics(steps: StepAverages, group: Group, split: string, step: number): void {
  const averagesOf = (trajectory: Trajectory) => steps.at(policyStepOf(trajectory, step));
  addGroupMetrics(averagesOf, group, split);
  const failed = group.trajectories[0] ? averagesOf(group.trajectories[0]) : steps.at(step);
  for (const _ of group.exceptions ?? []) failed.add({ [`${split}/exception_rate`]: 1 });
  for (const trajectory of group.trajectories) {
    const averages = averagesOf(trajectory);
    const { metrics, auto_metrics } = trajectory;
    const measured = Object.entries(auto_metrics ?? {}).filter(([name]) => !hasOwn(metrics, name));
    addOwnMetrics(averages, Object.fromEntries(measured), split);
    const isOwn = (name: string): boolean => hasOwn(metrics, name) || hasOwn(auto_metrics, name);
    const computed = {
      exception_rate: Number(hasException(trajectory)),
      completion_tokens: sampledTokens(trajectory),
      duration: seconds(trajectory),
    };
    for (const [name, value] of Object.entries(computed))
      if (!isOwn(name)) averages.add({ [`${split}/${name}`]: value });
  }
}

/** Returns true if the metadata of a trajectory has an exception. */
function hasException({ metadata }: Trajectory): boolean {
  return Boolean(hasOwn(metadata, 'exception') && (metadata as Record<string, unknown>)['exception']);
}

/** Tokens of all choices that state them; null if none does. */
function sampledTokens(trajectory: Trajectory): number | null {
  const counts = conversationsOf(trajectory)
    .flatMap(({ entries }) => entries.filter(isChoice))
    .flatMap(({ token_ids, logprobs }) => token_ids?.length ?? logprobs?.content?.length ?? []);
  return counts.length === 0 ? null : counts.reduce((sum, count) => sum + count, 0);
}

/** From `start_time` to an `end_time` in the metadata, in seconds; null if one is missing. */
function seconds({ start_time, metadata }: Trajectory): number | null {
  const end = hasOwn(metadata, 'end_time') ? (metadata as Record<string, unknown>)['end_time'] : null;
  if (!start_time || typeof end !== 'string') return null;
  const duration = (Date.parse(end) - Date.parse(start_time)) / 1000;
  return duration >= 0 ? duration : null;
}

function hasOwn(object: unknown, name: string): boolean {
  return typeof object === 'object' && object !== null && Object.hasOwn(object, name);
}

/**
 * Throws if a trajectory states that a step sampled it which the model never had.
 * @param newest the highest step that the model ever had
 */
export function requireKnownSteps(groups: readonly Group[], newest: number): void {
  const faults: ErrorDetail[] = [];
  for (const [g, { trajectories }] of groups.entries())
    for (const [t, trajectory] of trajectories.entries())
      for (const field of ['initial_policy_version', 'final_policy_version'] as const) {
        const version = trajectory[field];
        if (version == null || version <= newest) continue;
        const loc = ['trajectory_groups', String(g), 'trajectories', String(t), field];
        faults.push(fault(loc, 'value', `at most ${newest}, the newest step of the model`, version));
      }
  throwFaults(faults);
}
