/** Checkpoints and a metric -> the steps to delete. */
import type { Checkpoint } from '../protocol/index.ts';
import { fault, throwFaults } from '../protocol/index.ts';

/** Which checkpoints to keep. */
export type PruneRequest = {
  /** Number of the best to keep, at least 1. */
  readonly keep: number;
  /** Metric to compare. Default `train/reward`. */
  readonly metric?: string;
  /** Whether a higher or a lower value is better. Default `max`. */
  readonly goal?: 'max' | 'min';
};

/**
 * All steps but the best `keep` and the newest, which is in use. Among equals the newer is better; a checkpoint without the
 * metric is worse than all others.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields
 */
export function stepsToPrune(checkpoints: readonly Checkpoint[], request: PruneRequest): number[] {
  const { metric, goal } = checked(request);
  const worth = ({ metrics }: Checkpoint) => {
    const value = metrics[metric];
    return value === undefined ? Number.NEGATIVE_INFINITY : goal === 'max' ? value : -value;
  };
  const newest = Math.max(...checkpoints.map(({ step }) => step));
  return checkpoints
    .toSorted((a, b) => Math.sign(worth(b) - worth(a)) || b.step - a.step)
    .slice(request.keep)
    .map(({ step }) => step)
    .filter((step) => step !== newest);
}

function checked(request: PruneRequest): Required<PruneRequest> {
  const { keep, metric = 'train/reward', goal = 'max', ...unknown } = request;
  const faults = [
    Number.isSafeInteger(keep) && keep >= 1 ? [] : fault(['keep'], 'range', 'an integer >= 1', keep),
    typeof metric === 'string' && metric !== ''
      ? []
      : fault(['metric'], 'type', 'a non-empty string', metric),
    goal === 'max' || goal === 'min' ? [] : fault(['goal'], 'value', '"max" or "min"', goal),
    ...Object.entries(unknown).map(([name, value]) => fault([name], 'unknown_field', 'no such field', value)),
  ];
  throwFaults(faults.flat());
  return { keep, metric, goal };
}
