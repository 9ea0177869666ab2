/** A job that cannot run on its model -> faults by path, before anything is queued. */
import { describe, expect, it } from 'vitest';
import { resolveSettings } from '../../src/rl/settings.ts';
import { requireTrainable } from '../../src/training/trainable.ts';

const model = { vocabSize: 10, steps: [], experts: null };
const group = (metrics: Record<string, unknown> | null) => [
  { trajectories: [{ messages_and_choices: [], reward: 1, metrics }] },
];

describe('reward_weights', () => {
  const settings = resolveSettings({ reward_weights: { right: 1 } });

  it('takes numbers and flags', () => {
    for (const right of [0.5, true])
      expect(() => requireTrainable(group({ right }), settings, model)).not.toThrow();
  });

  it.each([[null], [{ form: 1 }], [{ right: null }]])('needs its rewards: %j', (metrics) => {
    expect(() => requireTrainable(group(metrics), settings, model)).toThrow(
      'trajectory_groups.0.trajectories.0.metrics.right: expected a number, as reward_weights names it',
    );
  });
});
