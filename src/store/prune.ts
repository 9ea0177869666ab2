/** Checkpoints and a metric -> the steps to delete. */
import { type Checkpoint, checkArguments, type PruneRequest, withDefaults } from '../protocol/index.ts';

/**
 * All steps but the best `keep` and the newest, which is in use. Among equals the newer is better; a checkpoint without the
 * metric is worse than all others.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields
 */
export function stepsToPrune(checkpoints: readonly Checkpoint[], request: PruneRequest): number[] {
  const { keep, metric, goal } = withDefaults('PruneRequest', checkArguments('PruneRequest', request));
  const worth = ({ metrics }: Checkpoint) => {
    const value = metrics[metric];
    return value === undefined ? Number.NEGATIVE_INFINITY : goal === 'max' ? value : -value;
  };
  const newest = Math.max(...checkpoints.map(({ step }) => step));
  return checkpoints
    .toSorted((a, b) => Math.sign(worth(b) - worth(a)) || b.step - a.step)
    .slice(keep)
    .map(({ step }) => step)
    .filter((step) => step !== newest);
}
