/** Logged trajectories and metrics -> the home folder, then the tracker. */
import type { LogRequest, LogResult, MetricValues, Model, RunRecord, Tracker } from '../protocol/index.ts';
import { Averages } from '../rl/index.ts';
import type { Home } from './home.ts';
import { addLogMetrics } from './log-metrics.ts';
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

/** What runs need of the models. */
export type RunModels = {
  /** Throws `MODEL_NOT_FOUND`. */
  model(id: string): Promise<Model>;
  folder(id: string): string;
  /** Runs `work` as the only writer of the model. */
  write<Result>(id: string, work: () => Promise<Result>): Promise<Result>;
};

/** A trajectory as it was logged. */
export type LoggedTrajectory = TrajectoryRecord<
  LogRequest['trajectory_groups'][number]['trajectories'][number]
>;

/** What a training job learned from. */
export type TrainedGroups = {
  readonly groups: LogRequest['trajectory_groups'];
  /** Bytes of trajectories that training keeps of a model, about; 0 keeps none. */
  readonly mostBytes: number;
};

/** The split of what training learned from. */
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

  /** Also receives all metrics from now on. */
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
    const averages = new Averages();
    const groups = function* () {
      for (const group of trajectory_groups) {
        addLogMetrics(averages, group, split);
        yield group;
      }
    };
    await this.#models.write(id, async () => {
      const { step } = await this.#models.model(id);
      const logged = { split, groups: groups(), mostBytes: null };
      await appendToRun(this.#home, this.#models.folder(id), step, logged, () => ({
        source: split,
        metrics: averages.read(),
      }));
    });
    this.#send(id);
    const count = trajectory_groups.reduce((sum, { trajectories }) => sum + trajectories.length, 0);
    return { logged_trajectories: count, metrics: averages.read() };
  }

  /** Stores the metrics of a training job that wrote the checkpoint `step`, and what it learned from. */
  async logTraining(
    id: string,
    step: number,
    metrics: MetricValues,
    trained: TrainedGroups | null = null,
  ): Promise<void> {
    const logged = trained && trained.mostBytes > 0 ? { split: TRAINED, ...trained } : null;
    await this.#models.write(id, () =>
      appendToRun(this.#home, this.#models.folder(id), step, logged, () => ({ source: 'training', metrics })),
    );
    this.#send(id);
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

  /** Resolves when all was sent to the tracker. */
  async idle(): Promise<void> {
    await this.#mirror?.idle();
  }

  /** Sends a run's new metrics to the tracker, in the background. */
  #send(id: string): void {
    const read = () => Promise.all([this.#models.model(id), this.read(id)]);
    this.#mirror?.send(id, this.#models.folder(id), read).catch(() => {}); // `send` reports failures
  }
}
