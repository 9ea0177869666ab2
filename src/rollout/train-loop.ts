/** Tasks, a rollout and what to reach -> a trained model. Its state is the model's checkpoints and log, so it goes on after a kill. */
import { seedOf, shuffled } from '../common/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import { type GatheredGroup, type GatherOptions, gather, type Rollout } from './gather.ts';
import {
  checkLoopOptions,
  type Evaluation,
  type LoopCounts,
  type LoopRollout,
  type TrainLoopOptions,
} from './loop-options.ts';
import { Policy } from './policy.ts';
import { record } from './recorder.ts';

/** The result of a training loop. */
export type TrainLoopResult = {
  /** Which condition of `until` was met. */
  readonly reason: 'steps' | 'reward' | 'patience';
  /** The model's step. */
  readonly step: number;
  /** The best evaluation: `<model>@<step>` is its checkpoint. Null without evaluations. */
  readonly best: Evaluation | null;
  /** By step. */
  readonly evaluations: readonly Evaluation[];
};

/**
 * Trains until a condition of `until` is met. Each step samples groups with the newest checkpoint and trains on them. If the process is
 * killed, call it again with the same options: it continues at the last checkpoint, with the same order of tasks and the same seeds as
 * without the interruption.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options; `ABORTED`; what an attempt or a training job failed with
 */
export async function trainLoop<Task>(options: TrainLoopOptions<Task>): Promise<TrainLoopResult> {
  return await new TrainLoop(options).run();
}

/** A loop whose jobs never have a gradient ends after so many. */
const MOST_DRY_JOBS = 20;

/** How what an older step or another engine sampled is weighed, unless the settings say otherwise. */
const CORRECTED = { precalculate_logprobs: true, truncated_importance_sampling: 2 } as const;

/** The loop's position is the model's step; the rest is read from the log of the model. */
class TrainLoop<Task> {
  readonly #options: TrainLoopOptions<Task>;
  readonly #counts: LoopCounts;
  readonly #evaluations: Evaluation[] = [];
  readonly #policy: Policy;
  readonly #begun = new Map<number, Promise<GatheredGroup[]>>(); // rollouts of further steps, by their place
  readonly #stop = new AbortController();
  #dryJobs = 0; // in a row, that left the step as it was

  constructor(options: TrainLoopOptions<Task>) {
    this.#counts = checkLoopOptions(options);
    this.#options = options;
    const { service, model, sampler, samplerModel, samplerPath } = options;
    this.#policy = new Policy({ service, model, sampler, samplerModel, samplerPath });
  }

  async run(): Promise<TrainLoopResult> {
    let result: TrainLoopResult;
    try {
      result = await this.#run();
    } finally {
      this.#stop.abort(new OnpolicyError('ABORTED', 'the loop has ended'));
      await Promise.allSettled(this.#begun.values());
    }
    if (this.#counts.maxStale > 0) await this.#prune(); // what rollouts used until now
    return result;
  }

  async #run(): Promise<TrainLoopResult> {
    const { service, model, until, evaluate, signal } = this.#options;
    let { step } = await service.models.retrieve(model);
    await this.#policy.publish(step, signal);
    await this.#readEvaluations();
    for (;;) {
      if (evaluate && (step % this.#counts.every === 0 || step >= until.steps)) await this.#evaluate(step);
      const reason = step >= until.steps ? 'steps' : this.#reasonToStop(step);
      if (reason) return { reason, step, best: this.#best(), evaluations: this.#evaluations };
      const next = await this.#train(step);
      this.#dryJobs = next === step ? this.#dryJobs + 1 : 0;
      if (this.#dryJobs === MOST_DRY_JOBS)
        throw errorAt(
          'tasks',
          'INVALID_REQUEST',
          `${MOST_DRY_JOBS} jobs in a row had rewards without a difference`,
        );
      step = next;
    }
  }

  /** Samples and trains once; returns the next step. */
  async #train(step: number): Promise<number> {
    const { service, model, config, sampler, signal, onEvent } = this.#options;
    const isOld = sampler !== undefined || this.#counts.maxStale > 0;
    const trajectory_groups = withAge(await this.#nextGroups(step), isOld ? step : null);
    const experimental_config = isOld ? { ...CORRECTED, ...config } : (config ?? null);
    const request = { model_id: model, trajectory_groups, experimental_config };
    const job = await service.train(request, signal ? { signal } : {});
    const result = await job.done;
    await this.#policy.publish(result.step, signal);
    onEvent?.({ type: 'step', step: result.step, metrics: result.metrics });
    await this.#prune();
    return result.step;
  }

  /** The groups of the next job. Those of the `maxStale` jobs after it begin, too. */
  async #nextGroups(step: number): Promise<GatheredGroup[]> {
    const place = step + this.#dryJobs;
    for (let ahead = 0; ahead <= this.#counts.maxStale; ahead++) {
      if (this.#begun.has(place + ahead)) continue;
      const groups = this.#groupsOf(step + ahead, this.#dryJobs);
      groups.catch(() => {}); // reported when its turn comes
      this.#begun.set(place + ahead, groups);
    }
    const groups = this.#begun.get(place)!;
    this.#begun.delete(place);
    return await groups;
  }

  /** The groups that a step trains on: of its own tasks, then of further ones in place of those without a signal. */
  async #groupsOf(step: number, dryJobs: number): Promise<GatheredGroup[]> {
    const { tasks } = this.#options;
    const { groupsPerStep, refill } = this.#counts;
    const groups: GatheredGroup[] = [];
    let wanted = this.#tasksOf(step + dryJobs);
    let left = refill;
    for (let round = 0; wanted.length > 0; round++) {
      const seed = seedOf(this.#seed, step, round, ...(dryJobs === 0 ? [] : [dryJobs]));
      groups.push(...(await this.#gather(wanted, seed, this.#options.rollout, {})));
      const missing = Math.min(left, groupsPerStep - groups.filter(hasSignal).length);
      left -= missing;
      wanted = Array.from(
        { length: missing },
        (_, i) => tasks[seedOf(this.#seed, step, round, i) % tasks.length]!,
      );
    }
    return refill > 0 ? groups.filter(hasSignal) : groups;
  }

  /** The tasks of a step: the next ones of a random order, which is another one each time all were used. */
  #tasksOf(start: number): Task[] {
    const { tasks } = this.#options;
    const { groupsPerStep } = this.#counts;
    const orders = new Map<number, number[]>(); // by how often all tasks were used before
    return Array.from({ length: groupsPerStep }, (_, i) => {
      const place = start * groupsPerStep + i;
      const epoch = Math.floor(place / tasks.length);
      const order = orders.get(epoch) ?? shuffled(tasks.length, this.#seed, epoch);
      orders.set(epoch, order);
      return tasks[order[place % tasks.length]!]!;
    });
  }

  async #evaluate(step: number): Promise<void> {
    const { service, model, evaluate, rollout, onEvent } = this.#options;
    if (!evaluate || this.#evaluations.some((one) => one.step === step)) return;
    const groups = await this.#gather(evaluate.tasks, this.#seed, evaluate.rollout ?? rollout, {
      groupSize: this.#counts.groupSize,
      scoreGroup: undefined,
    });
    const split = this.#counts.split;
    const { metrics } = await service.models.log(model, { split, trajectory_groups: groups });
    const reward = metrics[`${split}/reward`];
    if (reward === undefined)
      throw new OnpolicyError('BACKEND_FAILED', 'every attempt of the evaluation failed');
    this.#evaluations.push({ step, reward, metrics });
    onEvent?.({ type: 'evaluation', step, reward, metrics });
  }

  /** Evaluations before the loop was started again. */
  async #readEvaluations(): Promise<void> {
    const { service, model, evaluate } = this.#options;
    if (!evaluate) return;
    const { split } = this.#counts;
    for await (const { step, source, metrics } of service.runs.metrics(model)) {
      const reward = source === split ? metrics[`${split}/reward`] : undefined;
      const isKnown = this.#evaluations.some((one) => one.step === step);
      if (reward !== undefined && !isKnown) this.#evaluations.push({ step, reward, metrics });
    }
  }

  #best(): Evaluation | null {
    return this.#evaluations.reduce<Evaluation | null>(
      (best, one) => (best && best.reward >= one.reward ? best : one),
      null,
    );
  }

  /** Looks at the evaluations up to a step only, so that a loop that goes on decides as before. */
  #reasonToStop(step: number): 'reward' | 'patience' | null {
    const { reward, patience } = this.#options.until;
    const last = this.#evaluations.at(-1);
    if (last?.step !== step) return null;
    if (reward !== undefined && last.reward >= reward) return 'reward';
    const best = this.#best();
    const since = best ? this.#evaluations.length - 1 - this.#evaluations.indexOf(best) : 0;
    return patience !== undefined && since >= patience ? 'patience' : null;
  }

  /** Deletes checkpoints that are neither among the newest nor the best one, and that no rollout and no setting uses. */
  async #prune(): Promise<void> {
    const { service, model, keepCheckpoints, config } = this.#options;
    if (keepCheckpoints === undefined) return;
    const steps: number[] = [];
    for (let after: string | null = null; ; ) {
      const page = await service.checkpoints.list(model, { order: 'desc', limit: 100, after });
      steps.push(...page.data.map(({ step }) => step));
      if (!page.has_more || page.last_id === null) break;
      after = page.last_id;
    }
    const kept = [this.#best()?.step, config?.kl_penalty_reference_step];
    const old = steps
      .slice(keepCheckpoints)
      .filter((step) => !kept.includes(step) && !this.#policy.isUsed(step));
    if (old.length > 0) await service.checkpoints.delete(model, { steps: old });
  }

  async #gather(
    tasks: readonly Task[],
    seed: number | string,
    rollout: LoopRollout<Task>,
    more: GatherOptions,
  ): Promise<GatheredGroup[]> {
    const policy = this.#policy;
    const { signal } = this.#options;
    const attempt: Rollout<Task> = async (task, context) => {
      const { step, model, end } = policy.begin();
      try {
        const routedExperts = this.#options.config?.routing === 'replay';
        const recordHere = () => record(policy.service, { model, seed: context.seed, routedExperts });
        const trajectory = await rollout(task, { ...context, model, step, record: recordHere });
        return { initial_policy_version: step, final_policy_version: step, ...trajectory };
      } finally {
        await end();
      }
    };
    const stop = signal ? AbortSignal.any([signal, this.#stop.signal]) : this.#stop.signal;
    return await gather(tasks, attempt, { ...this.#options, ...more, seed, signal: stop });
  }

  get #seed(): number | string {
    return this.#options.seed ?? 0;
  }
}

/** Whether the rewards of a group differ: only then does it train anything. */
function hasSignal({ trajectories }: GatheredGroup): boolean {
  return trajectories.some(({ reward }) => reward !== trajectories[0]!.reward);
}

/** Notes in the metric `stale_steps` how many steps before `step` each attempt began. Null: as they are. */
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
