/** Where a team keeps its experiments: the contract, and what brings a run's metrics there. */
import path from 'node:path';
import { replaceFile } from '../common/index.ts';
import type { MetricValues, Model } from '../protocol/index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { Queue } from './queue.ts';
import { readCommitted, readMetrics } from './run-log.ts';
import type { RunRecord } from './run-record.ts';

/** Metrics of one moment, as a tracker receives them. */
export type TrackedMetrics = {
  /** The checkpoint that they are about. */
  readonly step: number;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly metrics: MetricValues;
};

/**
 * An experiment tracker. Runs are always kept in the home folder; a tracker gets them as well. When it fails, the
 * metrics stay there and are sent with the next ones, so that some may come twice.
 */
export interface Tracker {
  /** Kept with each run, so that another tracker does not take it for its own. */
  readonly name: string;
  /** Begins the run of a model; gives the id by which the tracker knows it. */
  startRun(model: Model, run: RunRecord): Promise<string>;
  /** Adds metrics, oldest first. `config`: settings of the newest training job. */
  log(
    runId: string,
    metrics: readonly TrackedMetrics[],
    config: Readonly<Record<string, unknown>>,
  ): Promise<void>;
  /** Deletes a run. One that is gone already is no error. */
  deleteRun(runId: string): Promise<void>;
}

/** What a model's folder says about its run in a tracker. */
type TrackerState = {
  readonly format: number;
  readonly tracker: string;
  readonly run_id: string;
  /** How much of `metrics.jsonl` was sent. */
  readonly sent_bytes: number;
};

const RECORDS_AT_ONCE = 100;

/** Sends what a run has kept, in the background. */
export class TrackerMirror {
  readonly #home: Home;
  readonly #tracker: Tracker;
  readonly #queue = new Queue();

  constructor(home: Home, tracker: Tracker) {
    this.#home = home;
    this.#tracker = tracker;
  }

  /** Sends a model's new metrics after those that are being sent. Failures are reported, not thrown. */
  async send(id: string, modelFolder: string, read: () => Promise<[Model, RunRecord]>): Promise<void> {
    await this.#queue
      .run(id, async () => this.#send(...(await read()), modelFolder))
      .catch((error: unknown) => this.#home.report(stateFile(modelFolder), error));
  }

  /** Resolves when nothing is being sent. */
  async idle(): Promise<void> {
    await this.#queue.idle();
  }

  async #send(model: Model, run: RunRecord, modelFolder: string): Promise<void> {
    let state = await readState(this.#home, modelFolder);
    const save = async (next: TrackerState) => {
      state = next;
      await replaceFile(stateFile(modelFolder), `${JSON.stringify(next)}\n`);
    };
    if (!state || state.tracker !== this.#tracker.name) {
      const runId = await this.#tracker.startRun(model, run);
      await save({ format: FORMAT, tracker: this.#tracker.name, run_id: runId, sent_bytes: 0 });
    }
    const { run_id, sent_bytes } = state!;
    const { metrics_bytes } = await readCommitted(this.#home, modelFolder);
    if (metrics_bytes === sent_bytes) return;
    let batch: TrackedMetrics[] = [];
    for await (const { step, created, metrics } of readMetrics(this.#home, modelFolder, sent_bytes)) {
      batch.push({ step, timeMs: created * 1000, metrics });
      if (batch.length < RECORDS_AT_ONCE) continue;
      await this.#tracker.log(run_id, batch, run.config);
      batch = [];
    }
    if (batch.length > 0) await this.#tracker.log(run_id, batch, run.config);
    await save({ ...state!, sent_bytes: metrics_bytes });
  }
}

/** Deletes the run that a discarded model's folder names, if `tracker` knows it. */
export async function deleteTrackedRun(
  home: Home,
  tracker: Tracker | null,
  modelFolder: string,
): Promise<void> {
  const state = await readState(home, modelFolder);
  if (state && state.tracker === tracker?.name) await tracker.deleteRun(state.run_id);
}

async function readState(home: Home, modelFolder: string): Promise<TrackerState | null> {
  return await readRecord<TrackerState>(home, stateFile(modelFolder));
}

function stateFile(modelFolder: string): string {
  return path.join(modelFolder, 'tracker.json');
}
