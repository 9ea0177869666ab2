/** Logged trajectories and metrics -> the home folder, then the tracker. */
import type { LogRequest, LogResult, MetricValues, Model, RunRecord, Tracker } from '../../protocol/index.ts';
import { addGroupMetrics, policyStepOf, StepAverages } from '../index.ts';
import type { Home } from './home.ts';
import { addLogMetrics, requireKnownSteps } from './log-metrics.ts';
import {
  appendToRun,
  type Committed,
  type LoggedException,
  type MetricRecord,
  readCommitted,
  readMetrics,
  readTrajectories,
  type TrajectoryRecord,
} from './run-log.ts';
import { readRunRecord, saveConfig } from './run-record.ts';
import { deleteTrackedRun, TrackerMirror } from './tracker.ts';

/** Functions of the store that runs need. */
export type RunModels = {
  /** Throws `MODEL_NOT_FOUND`. */
  model(id: string): Promise<Model>;
  folder(id: string): string;
  /** The highest step that the model ever had. */
  newestStep(id: string): Promise<number>;
  /** Runs `work` as the only writer of the model. */
  write<Result>(id: string, work: () => Promise<Result>): Promise<Result>;
};

/** A trajectory as it was logged. */
export type LoggedTrajectory = TrajectoryRecord<
  LogRequest['trajectory_groups'][number]['trajectories'][number]
>;

/** Trajectory groups that a training job learned from. */
export type TrainedGroups = {
  readonly groups: LogRequest['trajectory_groups'];
  /** The model's step when the job was requested, for trajectories that do not state which step sampled them. */
  readonly policyStep: number;
  /** Approximate bytes of trajectories that training keeps of a model. 0 keeps none. */
  readonly mostBytes: number;
};

type Logged = LogRequest['trajectory_groups'][number]['trajectories'][number];

/** Split of the trajectories that training learned from. */
const TRAINED = 'train';

/** Stores and reads runs. */
export class Runs {
  readonly #home: Home;
  readonly #models: RunModels;
  #tracker: Tracker | null = null;
  #mirror: TrackerMirror | null = null;

  /** @internal Use `store.runs`. */
  constructor(home: Home, models: RunModels) {
    this.#home = home;
    this.#models = models;
  }

  /** Tracker that receives all metrics from now on. */
  set tracker(tracker: Tracker) {
    this.#tracker = tracker;
    this.#mirror = new TrackerMirror(this.#home, tracker);
  }

  /**
   * Stores the trajectories of a valid request and their metrics: all or nothing.
   * @throws OnpolicyError `MODEL_NOT_FOUND`; `STORE_FAILED` if the disk is full or this process cannot write
   */
  async log(
    modelId: string,
    { split, trajectory_groups }: LogRequest & { readonly split: string },
  ): Promise<LogResult> {
    const { id } = await this.#models.model(modelId);
    requireKnownSteps(trajectory_groups, await this.#models.newestStep(id));
    const overall = new StepAverages(); // all metrics under one step
    await this.#models.write(id, async () => {
      const { step } = await this.#models.model(id);
      const steps = new StepAverages();
      const groups = function* () {
        for (const group of trajectory_groups) {
          addLogMetrics(steps, group, split, step);
          yield group;
        }
      };
      const stepOf = (trajectory: Logged | null) => (trajectory ? policyStepOf(trajectory, step) : step);
      const logged = { split, groups: groups(), stepOf, mostBytes: null };
      await appendToRun(this.#home, this.#models.folder(id), logged, () => {
        const records = steps.read();
        return (records.length > 0 ? records : [{ step, metrics: {} }]).map((record) => ({
          ...record,
          source: split,
        }));
      });
    });
    this.#send(id);
    for (const group of trajectory_groups) addLogMetrics(overall, withoutSteps(group), split, 0);
    const count = trajectory_groups.reduce((sum, { trajectories }) => sum + trajectories.length, 0);
    return { logged_trajectories: count, metrics: overall.at(0).read() };
  }

  /**
   * Stores the metrics of a training job that wrote the checkpoint `step`, and the groups that it learned from. Means of the trajectories
   * belong to the step of the model that sampled them, the other metrics to `step`.
   */
  async logTraining(
    id: string,
    step: number,
    metrics: MetricValues,
    trained: TrainedGroups | null = null,
  ): Promise<void> {
    const { groups = [], policyStep = 0, mostBytes = 0 } = trained ?? {};
    const steps = new StepAverages();
    const stepOf = (trajectory: Logged | null) =>
      trajectory ? policyStepOf(trajectory, policyStep) : policyStep;
    for (const group of groups) addGroupMetrics((one: Logged) => steps.at(stepOf(one)), group, TRAINED);
    const sampled = new Set(steps.read().flatMap((record) => Object.keys(record.metrics)));
    const made = Object.fromEntries(Object.entries(metrics).filter(([name]) => !sampled.has(name)));
    steps.at(step).add(made);
    const logged = mostBytes > 0 ? { split: TRAINED, groups, stepOf, mostBytes } : null;
    await this.#models.write(id, () =>
      appendToRun(this.#home, this.#models.folder(id), logged, () =>
        steps.read().map((record) => ({ ...record, source: 'training' })),
      ),
    );
    this.#send(id);
  }

  /** Returns the means of all measurements of a metric at each step. */
  async meansByStep(modelId: string): Promise<ReadonlyMap<number, MetricValues>> {
    const steps = new StepAverages();
    for await (const { step, metrics } of this.readMetrics(modelId)) steps.at(step).add(metrics);
    return new Map(steps.read().map((record) => [record.step, record.metrics]));
  }

  /** Returns true if anything was logged or trained. A model without has no run that could be deleted. */
  async hasContent(id: string): Promise<boolean> {
    const { metrics_bytes } = await readCommitted(this.#home, this.#models.folder(id));
    return metrics_bytes > 0;
  }

  /** Stores the settings of a new job. The caller must be the writer of the model. */
  async saveConfig(id: string, config: Readonly<Record<string, unknown>>): Promise<void> {
    await saveConfig(this.#home, this.#models.folder(id), config);
  }

  /** The machine of a run, and the settings of its newest training job. */
  async read(modelId: string): Promise<RunRecord> {
    const { id } = await this.#models.model(modelId);
    return await readRunRecord(this.#home, this.#models.folder(id));
  }

  /** Size of a run: bytes, and counts of groups and trajectories by split. */
  async readCommitted(modelId: string): Promise<Committed> {
    const { id } = await this.#models.model(modelId);
    return await readCommitted(this.#home, this.#models.folder(id));
  }

  /** The metrics of a run, oldest first. */
  async *readMetrics(modelId: string): AsyncGenerator<MetricRecord> {
    const { id } = await this.#models.model(modelId);
    yield* readMetrics(this.#home, this.#models.folder(id));
  }

  /** The trajectories of a split, oldest first, starting at a group. */
  async *readTrajectories(modelId: string, split: string, fromGroup = 0): AsyncGenerator<LoggedTrajectory> {
    for await (const line of this.readAttempts(modelId, split, fromGroup))
      if ('trajectory' in line) yield line;
  }

  /** The same with the attempts that failed, which come last in their group. */
  async *readAttempts(
    modelId: string,
    split: string,
    fromGroup = 0,
  ): AsyncGenerator<LoggedTrajectory | LoggedException> {
    const { id } = await this.#models.model(modelId);
    yield* readTrajectories(this.#home, this.#models.folder(id), split, fromGroup);
  }

  /** Deletes the tracker's run of a discarded model. */
  async finishDeletion(modelFolder: string): Promise<void> {
    await deleteTrackedRun(this.#home, this.#tracker, modelFolder);
  }

  /** Resolves when all metrics were sent to the tracker. */
  async idle(): Promise<void> {
    await this.#mirror?.idle();
  }

  /** Sends a run's new metrics to the tracker, in the background. */
  #send(id: string): void {
    const read = () => Promise.all([this.#models.model(id), this.read(id)]);
    this.#mirror?.send(id, this.#models.folder(id), read).catch(() => {}); // `send` reports failures
  }
}

/** Removes the sampling steps from a group's trajectories, so that its metrics are those of the whole request. */
function withoutSteps(
  group: LogRequest['trajectory_groups'][number],
): LogRequest['trajectory_groups'][number] {
  const versions = { initial_policy_version: null, final_policy_version: null };
  return { ...group, trajectories: group.trajectories.map((one) => ({ ...one, ...versions })) };
}
