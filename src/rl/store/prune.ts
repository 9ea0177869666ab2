/** Checkpoints with all their metrics, and a metric -> the steps to delete. */
import { errorAt } from '../../errors.ts';
import { type Checkpoint, checkArguments, type PruneRequest, withDefaults } from '../../protocol/index.ts';

/**
 * Returns the steps with the metric, except the best `keep` and the newest checkpoint, which is in use. Of equal ones the newer is better.
 * A checkpoint without the metric stays.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields, and if no checkpoint has the metric
 */
export function stepsToPrune(checkpoints: readonly Checkpoint[], request: PruneRequest): number[] {
  const { keep, metric, goal } = withDefaults('PruneRequest', checkArguments('PruneRequest', request));
  const measured = checkpoints.flatMap(({ step, metrics }) => {
    const value = Object.hasOwn(metrics, metric) ? metrics[metric] : undefined;
    return typeof value === 'number' ? [{ step, worth: goal === 'max' ? value : -value }] : [];
  });
  if (measured.length === 0 && checkpoints.length > 0) throw unknownMetric(checkpoints, metric);
  const newest = Math.max(...checkpoints.map(({ step }) => step));
  return measured
    .toSorted((a, b) => b.worth - a.worth || b.step - a.step)
    .slice(keep)
    .map(({ step }) => step)
    .filter((step) => step !== newest);
}

function unknownMetric(checkpoints: readonly Checkpoint[], metric: string) {
  const known = [...new Set(checkpoints.flatMap(({ metrics }) => Object.keys(metrics)))].sort();
  const expected = known.length === 0 ? 'nothing: no checkpoint has a metric' : `one of ${known.join(', ')}`;
  return errorAt('metric', 'INVALID_REQUEST', `expected ${expected}, got ${JSON.stringify(metric)}`);
}
