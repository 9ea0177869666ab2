/** Tasks, a rollout and a goal -> a trained model. The state is the model's checkpoints and log, so the loop continues after a kill. */
import { allOf, seedOf, shuffled } from '../../common/index.ts';
import { errorAt, OnpolicyError } from '../../errors.ts';
import { type GatheredGroup, type GatherOptions, gather, type Rollout } from './gather.ts';
import {
  checkLoopOptions,
  type Evaluation,
  type LoopRollout,
  type TrainLoopOptions,
} from './loop-options.ts';
import { Policy } from './policy.ts';
import { record } from './recorder.ts';

/** The result of a training loop. */
export type TrainLoopResult = {
  /** The condition of `until` that was met. */
  readonly reason: 'steps' | 'reward' | 'patience';
  /** The model's step at the end. */
  readonly step: number;
  /** The best evaluation: `<model>@<step>` is its checkpoint. Null without evaluations. */
  readonly best: Evaluation | null;
  /** Evaluations in order of their steps. */
  readonly evaluations: readonly Evaluation[];
};

/** A loop ends after this many jobs in a row without a gradient. */
const MOST_DRY_JOBS = 20;

/** Default settings that correct for samples of an older step or another engine. */
const CORRECTED = { precalculate_logprobs: true, truncated_importance_sampling: 2 } as const;

/**
 * Trains until a condition of `until` is met. Each step samples groups with the newest checkpoint and trains on them. If the process is
 * killed, call it again with the same options: it continues at the last checkpoint, with the same order of tasks and the same seeds as
 * without the interruption.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options; `ABORTED`; the error of a failed attempt or training job
 */
export async function trainLoop<Task>(options: TrainLoopOptions<Task>): Promise<TrainLoopResult> {
  const { groupsPerStep, refill, maxStale, every, split, groupSize } = checkLoopOptions(options);
  const { service, model, until, tasks, evaluate, rollout, config, sampler, signal, onEvent } = options;
  const { keepCheckpoints, repetitionDetection } = options;
  const seed = options.seed ?? 0;
  const evaluations: Evaluation[] = [];
  const policy = new Policy(options);
  const begun = new Map<number, Promise<GatheredGroup[]>>(); // rollouts of later jobs, by their index
  const stop = new AbortController();
  let dryJobs = 0; // jobs in a row without a new step

  async function runToEnd(): Promise<TrainLoopResult> {
    let { step } = await service.models.retrieve(model);
    await policy.publish(step, signal);
    await readEvaluations();
    for (;;) {
      if (evaluate && (step % every === 0 || step >= until.steps)) await evaluateAt(step);
      const reason = step >= until.steps ? 'steps' : reasonToStop(step);
      if (reason) return { reason, step, best: best(), evaluations };
      const next = await trainOnce(step);
      dryJobs = next === step ? dryJobs + 1 : 0;
      if (dryJobs === MOST_DRY_JOBS)
        throw errorAt(
          'tasks',
          'INVALID_REQUEST',
          `${MOST_DRY_JOBS} jobs in a row had no difference in rewards`,
        );
      step = next;
    }
  }

  /** Samples and trains once; returns the next step. */
  async function trainOnce(step: number): Promise<number> {
    const isOld = sampler !== undefined || maxStale > 0;
    const trajectory_groups = withAge(await nextGroups(step), isOld ? step : null);
    const experimental_config = isOld ? { ...correctionFor(config), ...config } : (config ?? null);
    const request = { model_id: model, trajectory_groups, experimental_config };
    const job = await service.train(request, signal ? { signal } : {});
    const result = await job.done;
    await policy.publish(result.step, signal);
    onEvent?.({ type: 'step', step: result.step, metrics: result.metrics });
    await prune();
    return result.step;
  }

  /** Returns the groups of the next job, and starts those of the `maxStale` jobs after it. */
  async function nextGroups(step: number): Promise<GatheredGroup[]> {
    const place = step + dryJobs;
    for (let ahead = 0; ahead <= maxStale; ahead++) {
      if (begun.has(place + ahead)) continue;
      const groups = groupsOf(step + ahead, dryJobs);
      groups.catch(() => {}); // a failure is reported when its job is next
      begun.set(place + ahead, groups);
    }
    const groups = begun.get(place)!;
    begun.delete(place);
    return await groups;
  }

  /** Returns the groups that a step trains on: those of its own tasks, and of further ones to replace groups without a signal. */
  async function groupsOf(step: number, dryJobs: number): Promise<GatheredGroup[]> {
    const groups: GatheredGroup[] = [];
    let wanted = tasksOf(step + dryJobs);
    let left = refill;
    for (let round = 0; wanted.length > 0; round++) {
      const ofRound = seedOf(seed, step, round, ...(dryJobs === 0 ? [] : [dryJobs]));
      groups.push(...(await gatherWith(wanted, ofRound, rollout, {})));
      const missing = Math.min(left, groupsPerStep - groups.filter(hasSignal).length);
      left -= missing;
      wanted = Array.from({ length: missing }, (_, i) => tasks[seedOf(seed, step, round, i) % tasks.length]!);
    }
    return refill > 0 ? groups.filter(hasSignal) : groups;
  }

  /** Returns the tasks of a step: the next ones of a random order. When all were used, a new order begins. */
  function tasksOf(start: number): Task[] {
    const orders = new Map<number, number[]>(); // by how often all tasks were used before
    return Array.from({ length: groupsPerStep }, (_, i) => {
      const place = start * groupsPerStep + i;
      const epoch = Math.floor(place / tasks.length);
      const order = orders.get(epoch) ?? shuffled(tasks.length, seed, epoch);
      orders.set(epoch, order);
      return tasks[order[place % tasks.length]!]!;
    });
  }

  async function evaluateAt(step: number): Promise<void> {
    if (!evaluate || evaluations.some((one) => one.step === step)) return;
    const groups = await gatherWith(evaluate.tasks, seed, evaluate.rollout ?? rollout, {
      groupSize,
      scoreGroup: undefined,
    });
    const { metrics } = await service.models.log(model, { split, trajectory_groups: groups });
    const reward = metrics[`${split}/reward`];
    if (reward === undefined)
      throw new OnpolicyError('BACKEND_FAILED', 'every attempt of the evaluation failed');
    evaluations.push({ step, reward, metrics });
    onEvent?.({ type: 'evaluation', step, reward, metrics });
  }

  /** Reads evaluations of earlier calls. */
  async function readEvaluations(): Promise<void> {
    if (!evaluate) return;
    for await (const { step, source, metrics } of service.runs.metrics(model)) {
      const reward = source === split ? metrics[`${split}/reward`] : undefined;
      const isKnown = evaluations.some((one) => one.step === step);
      if (reward !== undefined && !isKnown) evaluations.push({ step, reward, metrics });
    }
  }

  function best(): Evaluation | null {
    return evaluations.reduce<Evaluation | null>(
      (known, one) => (known && known.reward >= one.reward ? known : one),
      null,
    );
  }

  /** Decides if the loop ends. Uses only the evaluations up to a step, so that a resumed loop decides as before. */
  function reasonToStop(step: number): 'reward' | 'patience' | null {
    const { reward, patience } = until;
    const last = evaluations.at(-1);
    if (last?.step !== step) return null;
    if (reward !== undefined && last.reward >= reward) return 'reward';
    const found = best();
    const since = found ? evaluations.length - 1 - evaluations.indexOf(found) : 0;
    return patience !== undefined && since >= patience ? 'patience' : null;
  }

  /** Deletes checkpoints except the newest ones, the best one, and those that a rollout or a setting uses. */
  async function prune(): Promise<void> {
    if (keepCheckpoints === undefined) return;
    const steps: number[] = [];
    const list = (after: string | null) =>
      service.checkpoints.list(model, { order: 'desc', limit: 100, after });
    for await (const { step } of allOf(list)) steps.push(step);
    const kept = [best()?.step, config?.kl_penalty_reference_step];
    const lagging = (steps[0] ?? 0) - (config?.kl_penalty_step_lag ?? 0);
    const isKept = (step: number) => kept.includes(step) || policy.isUsed(step) || step >= lagging;
    const old = steps.slice(keepCheckpoints).filter((step) => !isKept(step));
    if (old.length > 0) await service.checkpoints.delete(model, { steps: old });
  }

  async function gatherWith(
    tasks: readonly Task[],
    seed: number | string,
    rollout: LoopRollout<Task>,
    more: GatherOptions,
  ): Promise<GatheredGroup[]> {
    const attempt: Rollout<Task> = async (task, context) => {
      const { step, model, end } = policy.begin();
      try {
        const routedExperts = config?.routing === 'replay';
        const recordHere = () =>
          record(policy.service, { model, seed: context.seed, routedExperts, repetitionDetection });
        const trajectory = await rollout(task, { ...context, model, step, record: recordHere });
        return { initial_policy_version: step, final_policy_version: step, ...trajectory };
      } finally {
        await end();
      }
    };
    const ended = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
    return await gather(tasks, attempt, { ...options, ...more, seed, signal: ended });
  }

  let result: TrainLoopResult;
  try {
    result = await runToEnd();
  } finally {
    stop.abort(new OnpolicyError('ABORTED', 'the loop has ended'));
    await Promise.allSettled(begun.values());
  }
  if (maxStale > 0) await prune(); // checkpoints that rollouts have used until now
  return result;
}

/** Returns the default correction without the parts that the settings exclude. */
function correctionFor(config: TrainLoopOptions<unknown>['config']): Partial<typeof CORRECTED> {
  const { precalculate_logprobs, sampler_correction } = config ?? {};
  if (precalculate_logprobs === false) return {};
  return sampler_correction ? { precalculate_logprobs: true } : CORRECTED;
}

/** Returns true if the rewards of a group differ, so that it has a gradient. */
function hasSignal({ trajectories }: GatheredGroup): boolean {
  return trajectories.some(({ reward }) => reward !== trajectories[0]!.reward);
}

/** Records in the metric `stale_steps` how many steps before `step` each attempt began. Null leaves the groups unchanged. */
function withAge(groups: readonly GatheredGroup[], step: number | null): readonly GatheredGroup[] {
  if (step === null) return groups;
  return groups.map(({ trajectories, exceptions }) => ({
    trajectories: trajectories.map((trajectory) => ({
      ...trajectory,
      metrics: { stale_steps: step - (trajectory.initial_policy_version ?? step), ...trajectory.metrics },
    })),
    exceptions,
  }));
}
