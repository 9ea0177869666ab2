/** Metrics in the home folder -> an experiment tracker, by the contract `Tracker`. */
import path from 'node:path';
import { Queue, replaceFile } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { Model, RunRecord, TrackedMetrics, Tracker } from '../../protocol/index.ts';
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
  /** Names of metrics that the tracker does not take. They were reported. */
  readonly #refused = new Set<string>();

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

  /** Sends records. A metric that the tracker refuses is reported once and left out, so that it does not hold up the others. */
  async #log(runId: string, batch: readonly TrackedMetrics[], config: RunRecord['config']): Promise<void> {
    const accepted = batch
      .map((record) => {
        const metrics = Object.entries(record.metrics).filter(([name]) => !this.#refused.has(name));
        return { ...record, metrics: Object.fromEntries(metrics) };
      })
      .filter(({ metrics }) => Object.keys(metrics).length > 0);
    if (accepted.length === 0) return;
    try {
      await this.#tracker.log(runId, accepted, config);
    } catch (error) {
      if ((error as OnpolicyError).code !== 'INVALID_REQUEST') throw error;
      const parts = halves(accepted);
      if (parts) {
        for (const part of parts) await this.#log(runId, part, config);
        return;
      }
      const [name] = Object.keys(accepted[0]!.metrics);
      this.#refused.add(name!);
      const message = `${this.#tracker.name} does not take the metric ${JSON.stringify(name)}; it is no longer sent`;
      this.#home.report(name!, new OnpolicyError('INVALID_REQUEST', message, { cause: error }));
    }
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
      await this.#log(run_id, batch, run.config);
      batch = [];
    }
    if (batch.length > 0) await this.#log(run_id, batch, run.config);
    await save({ ...state!, sent_bytes: metrics_bytes });
  }
}

/** Splits a batch that the tracker refused into two parts. Returns null for a single metric. */
function halves(batch: readonly TrackedMetrics[]): readonly (readonly TrackedMetrics[])[] | null {
  const middle = Math.ceil(batch.length / 2);
  if (batch.length > 1) return [batch.slice(0, middle), batch.slice(middle)];
  const [record] = batch;
  const entries = Object.entries(record?.metrics ?? {});
  if (!record || entries.length < 2) return null;
  const part = (some: typeof entries) => [{ ...record, metrics: Object.fromEntries(some) }];
  const half = Math.ceil(entries.length / 2);
  return [part(entries.slice(0, half)), part(entries.slice(half))];
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
