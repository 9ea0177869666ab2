/** Logged trajectories -> the metrics of their split. */
import type { LogRequest } from '../protocol/index.ts';
import {
  Averages,
  addGroupMetrics,
  addOwnMetrics,
  isChoice,
  type Metrics,
  type Trajectory as TrainedTrajectory,
  type TrajectoryGroup,
} from '../rl/index.ts';

type Group = LogRequest['trajectory_groups'][number];
type Trajectory = Group['trajectories'][number];

/** Averages metrics, group by group. */
export class LogMetrics {
  readonly #split: string;
  readonly #averages = new Averages();

  constructor(split: string) {
    this.#split = split;
  }

  add(group: Group): void {
    addGroupMetrics(this.#averages, group as unknown as TrajectoryGroup, this.#split);
    for (const _ of group.exceptions ?? []) this.#averages.add({ [`${this.#split}/exception_rate`]: 1 });
    for (const trajectory of group.trajectories) {
      const { metrics, auto_metrics } = trajectory;
      const measured = Object.entries(auto_metrics ?? {}).filter(([name]) => !hasOwn(metrics, name));
      addOwnMetrics(this.#averages, Object.fromEntries(measured), this.#split);
      const isOwn = (name: string): boolean => hasOwn(metrics, name) || hasOwn(auto_metrics, name);
      this.#averages.add({
        [`${this.#split}/exception_rate`]: isOwn('exception_rate') ? null : Number(hasException(trajectory)),
        [`${this.#split}/completion_tokens`]: isOwn('completion_tokens')
          ? null
          : sampledTokens(trajectory as unknown as TrainedTrajectory),
        [`${this.#split}/duration`]: isOwn('duration') ? null : seconds(trajectory),
      });
    }
  }

  read(): Metrics {
    return this.#averages.read();
  }
}

/** Whether the metadata of a trajectory has an exception. */
function hasException({ metadata }: Trajectory): boolean {
  return Boolean(hasOwn(metadata, 'exception') && (metadata as Record<string, unknown>)['exception']);
}

/** Tokens of all choices that state them; null if none does. */
function sampledTokens({ messages_and_choices, additional_histories }: TrainedTrajectory): number | null {
  const histories = [
    messages_and_choices,
    ...(additional_histories ?? []).map((history) =>
      'messages_and_choices' in history ? history.messages_and_choices : history,
    ),
  ];
  let count: number | null = null;
  for (const history of histories)
    for (const entry of history) {
      if (!isChoice(entry)) continue;
      const tokens = entry.token_ids?.length ?? entry.logprobs?.content?.length;
      if (tokens !== undefined) count = (count ?? 0) + tokens;
    }
  return count;
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
