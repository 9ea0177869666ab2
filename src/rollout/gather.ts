/** Tasks and a function that attempts one -> groups of attempts. An attempt that fails is kept as an exception of its group. */
import { setMaxListeners } from 'node:events';
import { seedOf } from '../common/index.ts';
import { abortedBy, messageOf, OnpolicyError } from '../errors.ts';
import {
  type Arguments,
  type Complete,
  checkArguments,
  type RolloutException,
  type Trajectory,
  withDefaults,
} from '../protocol/index.ts';
import { wrongInput } from './wrong-input.ts';

/** What an attempt gets. */
export type RolloutContext = {
  /** Fires when the attempt must end: the caller aborted, or too many attempts failed. */
  readonly signal: AbortSignal;
  /** Index of the attempt in its group, from 0. */
  readonly attempt: number;
  /** Different for each attempt and the same in a repeated run: for the `seed` of requests or of a recorder. */
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
 * @throws what an attempt threw, if more than `maxFailures` failed
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

/** The same with checked arguments. */
export function gather<Task>(
  tasks: readonly Task[],
  rollout: Rollout<Task>,
  options: GatherOptions,
): Promise<GatheredGroup[]> {
  return new Gathering(tasks, rollout, options).run();
}

/** Attempts that run, and what came out of those that ended. */
class Gathering<Task> {
  readonly #tasks: readonly Task[];
  readonly #rollout: Rollout<Task>;
  readonly #options: GatherOptions;
  readonly #limits: Complete['GatherOptions'];
  readonly #stop = new AbortController();
  readonly #outcomes: Outcome[][]; // (tasks)(attempts)
  readonly #groups: GatheredGroup[] = [];
  readonly #total: number;
  #begun = 0;
  #done = 0;
  #failed = 0;
  #rewardSum = 0;

  constructor(tasks: readonly Task[], rollout: Rollout<Task>, options: GatherOptions) {
    this.#tasks = tasks;
    this.#rollout = rollout;
    this.#options = options;
    this.#limits = withDefaults('GatherOptions', options);
    const { groupSize } = this.#limits;
    this.#outcomes = tasks.map(() => Array.from({ length: groupSize }, () => null));
    this.#total = tasks.length * groupSize;
    setMaxListeners(0, this.#stop.signal); // any number of attempts listen to it
  }

  async run(): Promise<GatheredGroup[]> {
    const { signal } = this.#options;
    const abort = (): void => this.#stop.abort(abortedBy(signal, 'the rollout'));
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      this.#report();
      const count = Math.min(this.#limits.concurrency, this.#total);
      await Promise.all(Array.from({ length: count }, () => this.#work()));
      this.#stop.signal.throwIfAborted();
      return this.#groups;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Takes one attempt after the other, group by group, so that groups end early. Never rejects. */
  async #work(): Promise<void> {
    while (this.#begun < this.#total && !this.#stop.signal.aborted) {
      const place = this.#begun++;
      const group = Math.floor(place / this.#limits.groupSize);
      const attempt = place % this.#limits.groupSize;
      try {
        this.#outcomes[group]![attempt] = await this.#attempt(group, attempt);
        this.#report();
        if (this.#outcomes[group]!.every((outcome) => outcome !== null)) await this.#finishGroup(group);
      } catch (error) {
        this.#stop.abort(error); // the first reason stays
      }
    }
  }

  async #attempt(group: number, attempt: number): Promise<Trajectory | RolloutException> {
    const { signal } = this.#stop;
    const seed = seedOf(this.#limits.seed, group, attempt);
    for (let tries = 0; ; tries++) {
      try {
        const trajectory = await this.#rollout(this.#tasks[group]!, { signal, attempt, seed });
        if (!Number.isFinite(trajectory?.reward))
          throw wrongInput(['reward'], 'a finite number in what a rollout returns', trajectory?.reward);
        this.#done++;
        this.#rewardSum += trajectory.reward;
        return trajectory;
      } catch (error) {
        if (signal.aborted) throw error;
        if (tries < this.#limits.retries) continue;
        this.#done++;
        if (++this.#failed > this.#limits.maxFailures) throw error;
        return exceptionOf(error);
      }
    }
  }

  async #finishGroup(index: number): Promise<void> {
    const outcomes = this.#outcomes[index]!;
    const group: GatheredGroup = {
      trajectories: outcomes.filter(isTrajectory),
      exceptions: outcomes.filter(isException),
    };
    const { scoreGroup } = this.#options;
    const hasAttempts = group.trajectories.length > 0;
    this.#groups[index] = scoreGroup && hasAttempts ? await scoreGroup(group, this.#stop.signal) : group;
  }

  #report(): void {
    const succeeded = this.#done - this.#failed;
    this.#options.onProgress?.({
      done: this.#done,
      total: this.#total,
      failed: this.#failed,
      reward: succeeded > 0 ? this.#rewardSum / succeeded : null,
    });
  }
}

/** Null: it still runs. */
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
