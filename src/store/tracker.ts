/** Metrics in the home folder -> an experiment tracker, by the contract `Tracker`. */
import path from 'node:path';
import { Queue, replaceFile } from '../common/index.ts';
import type { Model, RunRecord, TrackedMetrics, Tracker } from '../protocol/index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { readCommitted, readMetrics } from './run-log.ts';

/** Content of `tracker.json`. */
type TrackerState = {
  readonly format: number;
  readonly tracker: string;
  readonly run_id: string;
  /** Bytes of `metrics.jsonl` that were sent. */
  readonly sent_bytes: number;
};

const RECORDS_AT_ONCE = 100;

/** Sends metrics of runs in the background. */
export class TrackerMirror {
  readonly #home: Home;
  readonly #tracker: Tracker;
  readonly #queue = new Queue();

  constructor(home: Home, tracker: Tracker) {
    this.#home = home;
    this.#tracker = tracker;
  }

  /** Sends a model's new metrics, after earlier ones. Reports failures and does not throw. */
  async send(id: string, modelFolder: string, read: () => Promise<[Model, RunRecord]>): Promise<void> {
    await this.#queue
      .run(id, async () => this.#send(...(await read()), modelFolder))
      .catch((error: unknown) => this.#home.report(stateFile(modelFolder), error));
  }

  /** Resolves when all was sent. */
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

/** Deletes the run of a discarded model if it belongs to `tracker`. */
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
