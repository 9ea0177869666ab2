/** A job that cannot run on its model -> faults by path, before anything is queued. */
import { describe, expect, it } from 'vitest';
import { requireTrainable } from '../../../src/rl/jobs/trainable.ts';
import { resolveSettings } from '../../../src/rl/settings.ts';

const sampling = { top_p: null, top_k: null, min_p: null };
const model = { vocabSize: 10, steps: [], experts: null, sampling };
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

describe('truncated_sampling', () => {
  const sampled = (sampling_params: object | null) => {
    const choice = {
      message: { role: 'assistant' },
      token_ids: [1],
      logprobs: { content: [{ logprob: -1 }] },
    };
    return [{ trajectories: [{ messages_and_choices: [{ ...choice, sampling_params }], reward: 1 }] }];
  };
  const settings = resolveSettings({ truncated_sampling: 'refuse' });

  it.each<[object | null, object, string | null]>([
    [{ top_p: 0.9 }, sampling, 'top_p: expected a value that excludes no token'],
    [{ top_k: 20 }, sampling, 'top_k: expected a value that excludes no token'],
    [{ min_p: 0.05 }, sampling, 'min_p: expected a value that excludes no token'],
    [{ temperature: 0.5, top_p: 1, top_k: -1, min_p: 0 }, sampling, null],
    [{ top_k: 0 }, { ...sampling, top_k: 20 }, null],
    [null, { ...sampling, top_k: 20 }, 'top_k: expected a value that excludes no token'],
    [null, sampling, null],
  ])('%j with %j of the model: %j', (params, usual, message) => {
    const has = { ...model, sampling: usual as typeof sampling };
    const check =
      (config = settings) =>
      () =>
        requireTrainable(sampled(params) as never, config, has);
    expect(check(resolveSettings())).not.toThrow();
    if (message === null) expect(check()).not.toThrow();
    else expect(check()).toThrow(`messages_and_choices.0.sampling_params.${message}`);
  });
});
