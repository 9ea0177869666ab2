/** A model's run -> the data of its report page, without trajectories. */
import type { Checkpoint, Model, RunRecord } from '../protocol/index.ts';
import type { Store } from '../store/index.ts';

/** Most points of a curve; if there are more, neighbours are averaged. */
const MOST_POINTS = 2_000;
const PAGE = 100;
const MOST_CHECKPOINTS = 500;

/** Curves over steps: one value per step and name, null if missing. */
export type Curves = {
  readonly steps: readonly number[];
  readonly values: Readonly<Record<string, readonly (number | null)[]>>; // name -> (steps)
};

/** The data of the page. */
export type ReportData = {
  readonly model: Model;
  readonly run: RunRecord;
  /** Seconds since 1970. */
  readonly made: number;
  readonly curves: Curves;
  /** Newest first, only the newest. */
  readonly checkpoints: readonly Checkpoint[];
  readonly has_more_checkpoints: boolean;
  /** Another run to compare with. */
  readonly other: { readonly model: Model; readonly curves: Curves } | null;
};

/** Reads a run, and the curves of another one. */
export async function readReport(store: Store, modelId: string, otherId: string | null): Promise<ReportData> {
  const model = await store.getModel(modelId);
  const checkpoints: Checkpoint[] = [];
  let hasMore = true;
  while (hasMore && checkpoints.length < MOST_CHECKPOINTS) {
    const after = checkpoints.at(-1)?.id ?? null;
    const page = await store.listCheckpoints(model.id, { after, limit: PAGE, order: 'desc' });
    checkpoints.push(...page.data);
    hasMore = page.has_more;
  }
  return {
    model,
    run: await store.runs.read(model.id),
    made: Math.floor(Date.now() / 1000),
    curves: thin(await readCurves(store, model.id)),
    checkpoints,
    has_more_checkpoints: hasMore,
    other:
      otherId === null
        ? null
        : { model: await store.getModel(otherId), curves: thin(await readCurves(store, otherId)) },
  };
}

/** Averages several measurements of a name at one step. */
async function readCurves(store: Store, modelId: string): Promise<Curves> {
  const sums = new Map<string, Map<number, { sum: number; count: number }>>();
  const steps = new Set<number>();
  for await (const { step, metrics } of store.runs.readMetrics(modelId))
    for (const [name, value] of Object.entries(metrics)) {
      const bySteps = sums.get(name) ?? new Map<number, { sum: number; count: number }>();
      sums.set(name, bySteps);
      const entry = bySteps.get(step) ?? { sum: 0, count: 0 };
      bySteps.set(step, { sum: entry.sum + value, count: entry.count + 1 });
      steps.add(step);
    }
  const sorted = [...steps].sort((a, b) => a - b);
  const values = [...sums].map(([name, bySteps]) => {
    const mean = (step: number) => {
      const entry = bySteps.get(step);
      return entry ? entry.sum / entry.count : null;
    };
    return [name, sorted.map(mean)] as const;
  });
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
