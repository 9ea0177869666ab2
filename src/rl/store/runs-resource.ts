/** A store -> `runtime.runs`, the history of each model. */
import type { RunRecord } from '../../protocol/index.ts';
import type { LoggedException, MetricRecord } from './run-log.ts';
import type { LoggedTrajectory } from './runs.ts';
import type { Store } from './store.ts';

/** The runs of the models: every model has one. */
export interface RunsResource {
  /** The machine of a model's run and the settings of its newest training job. */
  retrieve(modelId: string): Promise<RunRecord>;
  /** The metrics of training jobs and log calls, oldest first. */
  metrics(modelId: string): AsyncIterable<MetricRecord>;
  /** The same as lines of CSV, the header first. */
  metricsCsv(modelId: string): AsyncIterable<string>;
  /** The logged splits with their numbers of trajectories. */
  splits(modelId: string): Promise<Record<string, number>>;
  /** The trajectories of a split, oldest first, starting at a group. */
  trajectories(modelId: string, split: string, fromGroup?: number): AsyncIterable<LoggedTrajectory>;
  /** The failed attempts of a split, likewise. */
  exceptions(modelId: string, split: string, fromGroup?: number): AsyncIterable<LoggedException>;
}

/** Runs of a store's models. `store` throws if the runtime is closed. */
export function runsResource(store: () => Store): RunsResource {
  return {
    retrieve: async (modelId) => await store().runs.read(modelId),
    metrics: (modelId) => store().runs.readMetrics(modelId),
    metricsCsv: (modelId) => metricsCsv(() => store().runs.readMetrics(modelId)),
    splits: async (modelId) => {
      const { splits } = await store().runs.readCommitted(modelId);
      const counts = Object.entries(splits).map(([split, files]) => [
        split,
        files.reduce((sum, { trajectories }) => sum + trajectories, 0),
      ]);
      return Object.fromEntries(counts);
    },
    trajectories: (modelId, split, fromGroup) => store().runs.readTrajectories(modelId, split, fromGroup),
    async *exceptions(modelId, split, fromGroup) {
      for await (const line of store().runs.readAttempts(modelId, split, fromGroup))
        if ('exception' in line) yield line;
    },
  };
}

/** Lines of CSV, the header first. Reads `records` twice, so that a long history is not in memory at once. */
async function* metricsCsv(records: () => AsyncIterable<MetricRecord>): AsyncGenerator<string> {
  const names = new Set<string>();
  for await (const { metrics } of records()) for (const name of Object.keys(metrics)) names.add(name);
  const columns = [...names].sort();
  yield toLine(['step', 'created', 'source', ...columns]);
  for await (const { step, created, source, metrics } of records())
    yield toLine([step, created, source, ...columns.map((name) => metrics[name] ?? '')]);
}

function toLine(cells: readonly (string | number)[]): string {
  return `${cells.map((cell) => quote(String(cell))).join(',')}\r\n`;
}

function quote(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
