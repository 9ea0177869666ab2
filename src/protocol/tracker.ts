/** The contract of an experiment tracker, which runs in the process and receives the metrics of runs. */
import type { MetricValues, Model } from './resources.ts';

/** A model's run. */
export type RunRecord = {
  readonly format: number;
  /** Seconds since 1970. */
  readonly created: number;
  /** The machine that started the run. */
  readonly system: {
    readonly onpolicy: string;
    readonly node: string;
    readonly platform: string;
    readonly arch: string;
    readonly cpu: string;
    readonly cores: number;
    readonly memory_bytes: number;
  };
  /** Settings of the newest training job. */
  readonly config: Readonly<Record<string, unknown>>;
};

/** Metrics of one moment, as a tracker receives them. */
export type TrackedMetrics = {
  /** The checkpoint that was measured. */
  readonly step: number;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly metrics: MetricValues;
};

/**
 * An experiment tracker. It receives a copy of the metrics in the home folder. After a failure they are sent with the next
 * ones, so that some may arrive twice.
 */
export interface Tracker {
  /** Stored with each run, to tell trackers apart. */
  readonly name: string;
  /** Starts the run of a model and returns the tracker's id for it. */
  startRun(model: Model, run: RunRecord): Promise<string>;
  /**
   * Adds metrics, oldest first. `config`: settings of the newest training job.
   * @throws OnpolicyError `INVALID_REQUEST` if it will never take one of these metrics. It then gets smaller parts, and the metric that it
   *   still refuses is left out and reported.
   */
  log(
    runId: string,
    metrics: readonly TrackedMetrics[],
    config: Readonly<Record<string, unknown>>,
  ): Promise<void>;
  /** Deletes a run. A missing run is no error. */
  deleteRun(runId: string): Promise<void>;
}
