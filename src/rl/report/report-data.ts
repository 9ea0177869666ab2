/** A model's run -> the data of its report page, without trajectories. */
import { readDecisions } from '../../models/index.ts';
import type { Checkpoint, JsonObject, Model, RunRecord } from '../../protocol/index.ts';
import { Averages, stepFolder } from '../index.ts';
import type { Store } from '../store/index.ts';

/** Highest number of points of a curve. If there are more, neighbours are averaged. */
const MOST_POINTS = 2_000;
const MOST_CHECKPOINTS = 500;

/** Curves over steps: one value per step and name, null if missing. */
export type Curves = {
  readonly steps: readonly number[];
  readonly values: Readonly<Record<string, readonly (number | null)[]>>; // name -> (steps)
};

export type ReportData = {
  readonly model: Model;
  readonly run: RunRecord;
  /** Seconds since 1970. */
  readonly made: number;
  readonly curves: Curves;
  /** The newest checkpoints, newest first, with all their metrics: from training, later jobs and log calls. */
  readonly checkpoints: readonly Checkpoint[];
  readonly has_more_checkpoints: boolean;
  /** The report of the newest checkpoint that learned decisions. Null if there is none. */
  readonly decisions: { readonly step: number; readonly report: JsonObject } | null;
  /** Another run to compare with. */
  readonly other: { readonly model: Model; readonly curves: Curves } | null;
};

/** Reads a run, and the curves of another one. */
export async function readReport(store: Store, modelId: string, otherId: string | null): Promise<ReportData> {
  const model = await store.getModel(modelId);
  const newest = { after: null, limit: MOST_CHECKPOINTS, order: 'desc' } as const;
  const checkpoints = await store.listCheckpoints(model.id, newest);
  const measured = await store.runs.meansByStep(model.id);
  return {
    model,
    run: await store.runs.read(model.id),
    made: Math.floor(Date.now() / 1000),
    curves: thin(await readCurves(store, model.id)),
    checkpoints: checkpoints.data.map((one) => ({
      ...one,
      metrics: { ...one.metrics, ...measured.get(one.step) },
    })),
    has_more_checkpoints: checkpoints.has_more,
    decisions: await newestDecisions(store, model.id, checkpoints.data),
    other:
      otherId === null
        ? null
        : { model: await store.getModel(otherId), curves: thin(await readCurves(store, otherId)) },
  };
}

async function newestDecisions(
  store: Store,
  modelId: string,
  checkpoints: readonly Checkpoint[],
): Promise<ReportData['decisions']> {
  for (const { step } of checkpoints) {
    const found = await readDecisions(stepFolder(store.checkpointsFolder(modelId), step));
    if (found?.report) return { step, report: found.report };
  }
  return null;
}

/** Averages several measurements of a name at one step. */
async function readCurves(store: Store, modelId: string): Promise<Curves> {
  const steps = new Map<number, Averages>();
  const names = new Set<string>();
  for await (const { step, metrics } of store.runs.readMetrics(modelId)) {
    const averages = steps.get(step) ?? new Averages();
    steps.set(step, averages);
    averages.add(metrics);
    for (const name of Object.keys(metrics)) names.add(name);
  }
  const sorted = [...steps.keys()].sort((a, b) => a - b);
  const means = sorted.map((step) => steps.get(step)!.read());
  const values = [...names].map((name) => [name, means.map((one) => one[name] ?? null)] as const);
  return { steps: sorted, values: Object.fromEntries(values) };
}

function thin({ steps, values }: Curves): Curves {
  const width = Math.ceil(steps.length / MOST_POINTS);
  if (width <= 1) return { steps, values };
  const buckets = Array.from({ length: Math.ceil(steps.length / width) }, (_, i) => i * width);
  const mean = (column: readonly (number | null)[], from: number) => {
    const known = column.slice(from, from + width).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
  };
  return {
    steps: buckets.map((from) => steps[Math.min(from + width, steps.length) - 1]!),
    values: Object.fromEntries(
      Object.entries(values).map(([name, column]) => [name, buckets.map((from) => mean(column, from))]),
    ),
  };
}
