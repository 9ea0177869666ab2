/** Tasks and a function that attempts one -> groups of attempts. An attempt that fails is kept as an exception of its group. */
import { setMaxListeners } from 'node:events';
import { onAbort, seedOf } from '../../common/index.ts';
import { abortedBy, messageOf, OnpolicyError } from '../../errors.ts';
import {
  type Arguments,
  checkArguments,
  type RolloutException,
  type Trajectory,
  withDefaults,
} from '../../protocol/index.ts';
import { wrongInput } from './wrong-input.ts';

/** Context of an attempt. */
export type RolloutContext = {
  /** Fires when the attempt must end: the caller aborted, or too many attempts failed. */
  readonly signal: AbortSignal;
  /** Index of the attempt in its group, from 0. */
  readonly attempt: number;
  /** Different for each attempt and the same in a repeated run. Use it for the `seed` of requests or of a recorder. */
  readonly seed: number;
};

/** Attempts a task once. */
export type Rollout<Task, Context extends RolloutContext = RolloutContext> = (
  task: Task,
  context: Context,
) => Trajectory | Promise<Trajectory>;

/** Attempts at one task, as `train` and `models.log` take them. */
export type GatheredGroup = {
  readonly trajectories: readonly Trajectory[];
  /** Attempts that failed. */
  readonly exceptions: readonly RolloutException[];
};

/** Progress of the attempts. */
export type GatherProgress = {
  /** Attempts that ended, including failed ones. */
  readonly done: number;
  readonly total: number;
  readonly failed: number;
  /** Mean reward of the attempts that did not fail; null before the first. */
  readonly reward: number | null;
};

/** Options of {@link gatherTrajectoryGroups}. */
export type GatherOptions = Omit<Arguments['GatherOptions'], 'onProgress' | 'scoreGroup'> & {
  /** Called at the start and after each attempt; `progressBar()` draws it. */
  readonly onProgress?: ((progress: GatherProgress) => void) | undefined;
  /** Scores a whole group, for example a judge that compares attempts. Called when all attempts of a group have ended. */
  readonly scoreGroup?: ((group: GatheredGroup, signal: AbortSignal) => Promise<GatheredGroup>) | undefined;
};

/**
 * Runs `groupSize` attempts at each task. Resolves with one group per task, in order. When it rejects, all attempts have ended: running
 * ones were aborted by their signal.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options; `ABORTED`
 * @throws the error of an attempt, if more than `maxFailures` failed
 */
export async function gatherTrajectoryGroups<Task>(
  tasks: Iterable<Task>,
  rollout: Rollout<Task>,
  options: GatherOptions = {},
): Promise<GatheredGroup[]> {
  if (typeof tasks?.[Symbol.iterator] !== 'function') throw wrongInput(['tasks'], 'a list of tasks', tasks);
  if (typeof rollout !== 'function') throw wrongInput(['rollout'], 'a function', rollout);
  checkArguments('GatherOptions', options);
  return await gather([...tasks], rollout, options);
}

/** Does the same with checked arguments. */
export async function gather<Task>(
  tasks: readonly Task[],
  rollout: Rollout<Task>,
  options: GatherOptions,
): Promise<GatheredGroup[]> {
  const { signal, onProgress, scoreGroup } = options;
  const limits = withDefaults('GatherOptions', options);
  const { groupSize } = limits;
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // any number of attempts listen to it
  const outcomes: Outcome[][] = tasks.map(() => Array.from({ length: groupSize }, () => null)); // (tasks)(attempts)
  const groups: GatheredGroup[] = [];
  const total = tasks.length * groupSize;
  let [begun, done, failed, rewardSum] = [0, 0, 0, 0];

  const report = (): void => {
    const succeeded = done - failed;
    onProgress?.({ done, total, failed, reward: succeeded > 0 ? rewardSum / succeeded : null });
  };

  async function outcomeOf(group: number, attempt: number): Promise<Trajectory | RolloutException> {
    const seed = seedOf(limits.seed, group, attempt);
    for (let tries = 0; ; tries++) {
      try {
        const trajectory = await rollout(tasks[group]!, { signal: stop.signal, attempt, seed });
        if (!Number.isFinite(trajectory?.reward))
          throw wrongInput(['reward'], 'a finite number in what a rollout returns', trajectory?.reward);
        done++;
        rewardSum += trajectory.reward;
        return trajectory;
      } catch (error) {
        if (stop.signal.aborted) throw error;
        if (tries < limits.retries) continue;
        done++;
        if (++failed > limits.maxFailures) throw error;
        return exceptionOf(error);
      }
    }
  }

  async function finishGroup(index: number): Promise<void> {
    const group: GatheredGroup = {
      trajectories: outcomes[index]!.filter(isTrajectory),
      exceptions: outcomes[index]!.filter(isException),
    };
    const hasAttempts = group.trajectories.length > 0;
    groups[index] = scoreGroup && hasAttempts ? await scoreGroup(group, stop.signal) : group;
  }

  /** Runs attempts one after the other, group by group, so that groups end early. Never rejects. */
  async function work(): Promise<void> {
    while (begun < total && !stop.signal.aborted) {
      const place = begun++;
      const group = Math.floor(place / groupSize);
      try {
        outcomes[group]![place % groupSize] = await outcomeOf(group, place % groupSize);
        report();
        if (outcomes[group]!.every((outcome) => outcome !== null)) await finishGroup(group);
      } catch (error) {
        stop.abort(error); // the first reason stays
      }
    }
  }

  using _stopping = onAbort(signal, () => stop.abort(abortedBy(signal, 'the rollout')));
  report();
  await Promise.all(Array.from({ length: Math.min(limits.concurrency, total) }, work));
  stop.signal.throwIfAborted();
  return groups;
}

/** Null while it runs. */
type Outcome = Trajectory | RolloutException | null;

function isTrajectory(outcome: Outcome): outcome is Trajectory {
  return outcome !== null && 'messages_and_choices' in outcome;
}

function isException(outcome: Outcome): outcome is RolloutException {
  return outcome !== null && !isTrajectory(outcome);
}

function exceptionOf(error: unknown): RolloutException {
  const type =
    error instanceof OnpolicyError ? error.code : error instanceof Error ? error.name : typeof error;
  return { type, message: messageOf(error) };
}
