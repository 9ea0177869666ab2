/** Checkpoints and a metric -> the steps that are not worth keeping. */

import type { Checkpoint } from '../protocol/index.ts';
import { fault, throwFaults } from '../protocol/index.ts';

/** Which checkpoints stay. */
export type PruneRequest = {
  /** How many of the best, from 1. */
  readonly keep: number;
  /** What makes them good. Default `train/reward`. */
  readonly metric?: string;
  /** Whether more of it is better. Default `max`. */
  readonly goal?: 'max' | 'min';
};

/**
 * Everything but the best `keep` and the newest, which answers and is trained on. Of equal ones the newer is better; one
 * without the metric is worse than all that have it.
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
