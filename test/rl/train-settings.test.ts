/** Settings of a job -> rows, gradients and rates of its steps. */
import { describe, expect, it } from 'vitest';
import type { TrajectoryGroup } from '../../src/rl/trajectory.ts';
import { group, setUp } from './fake-job.ts';
import { train } from './training.ts';

describe('settings of train', () => {
  it('accumulates the gradients of several rows into one step', async () => {
    const groups = [group([2, 1], [2, 0]), group([2, 1], [2, 0])];
    const config = { packed_sequence_length: 11 };
    const apart = setUp();
    await train({ trajectory_groups: groups, experimental_config: config }, apart.tools);
    const together = setUp();
    await train(
      { trajectory_groups: groups, experimental_config: { ...config, gradient_accumulation_steps: 2 } },
      together.tools,
    );
    const steps = ({ events }: typeof apart) => events.filter(({ type }) => type === 'gradient_step').length;
    expect([steps(apart), steps(together)]).toEqual([2, 1]);
    expect(together.trainer.gradients_seen[0]![0]).toBeCloseTo(apart.trainer.gradients_seen[0]![0]! / 2, 6);
  });

  it('multiplies the rate by a power of the number of sequences of its step', async () => {
    const { events, tools } = setUp();
    const experimental_config = { learning_rate: 0.1, num_trajectories_learning_rate_multiplier_power: 0.5 };
    const trajectory_groups = [group([2, 1], [4, 0], [3, 0.5]), group([2, 1], [4, 0])];
    await train({ trajectory_groups, experimental_config }, tools);
    const rates = events.flatMap((event) =>
      event.type === 'gradient_step' ? event.metrics['loss/learning_rate']! : [],
    );
    // The attempt in the middle of its group has no advantage. ART multiplies by (trajectories of the packed row) ** power.
    expect(rates).toEqual([expect.closeTo(0.1 * Math.sqrt(4), 9)]);
  });

  it('takes rewards as advantages where nothing is compared', async () => {
    const { trainer, tools } = setUp();
    const config = { ppo: true, normalize_advantages: false, normalize_by_length: false } as const;
    const experimental_config = { ...config, advantage_estimator: 'none', learning_rate: 0 } as const;
    await train({ trajectory_groups: [group([2, 0.75]), group([1, -3])], experimental_config }, tools);
    const gradient = trainer.gradients_seen.flat();
    // Minus the advantage over the three tokens of the step: equal rewards, and groups of one, have a gradient.
    const expected = [0.75, 0.75, -3].map((advantage) => -advantage / 3);
    expect(gradient).toEqual(expected.map((value) => expect.closeTo(value, 5)));
  });

  it('recomputes old log-probabilities, and penalises the distance from the reference', async () => {
    const { trainer, events, tools } = setUp();
    trainer.fresh = 0.25;
    await train(
      {
        trajectory_groups: [group([2, 1], [2, 0])],
        experimental_config: {
          precalculate_logprobs: true,
          kl_penalty_coef: 0.1,
          truncated_importance_sampling: 2,
        },
      },
      tools,
    );
    expect(trainer.rows).toHaveLength(4); // old, reference, new, and the new checkpoint's
    const step = events.find(({ type }) => type === 'gradient_step');
    expect(step).toMatchObject({ metrics: { 'loss/kl_policy_ref': expect.closeTo(0.25, 5) } });
  });

  it('trains answers at the temperature at which they were sampled', async () => {
    const hot = (given: TrajectoryGroup, temperature?: number): TrajectoryGroup => ({
      trajectories: given.trajectories.map((trajectory) => ({
        ...trajectory,
        messages_and_choices: trajectory.messages_and_choices.map((entry) =>
          'message' in entry ? { ...entry, sampling_params: { temperature } } : entry,
        ) as never,
      })),
    });
    const metricsOf = async (groups: TrajectoryGroup[], config: object, usual?: number) => {
      const { trainer, events, tools } = setUp();
      // At their temperature the trainer finds the answers likelier than the sampler reported of the model itself.
      const scoreOf = ({ temperatures }: (typeof trainer.rows)[number]) => (temperatures ? -0.5 : -1);
      const forward = trainer.forward.bind(trainer);
      trainer.forward = async (row, options) => {
        trainer.next.push(scoreOf(row));
        return await forward(row, options);
      };
      await train(
        { trajectory_groups: groups, experimental_config: { ppo: true, ...config } },
        { ...tools, usualTemperature: usual },
      );
      const step = events.find(({ type }) => type === 'gradient_step') as { metrics: Record<string, number> };
      const temperatures = trainer.rows.map((row) => row.temperatures?.[0] ?? null);
      return { clipped: step.metrics['train/clip_fraction'], temperatures };
    };
    const groups = [group([2, 1], [2, 0])];
    const heated = [hot(groups[0]!, 0.5)];
    // The old ones at the temperature, those of the model itself, the new ones, and the checkpoint's.
    expect(await metricsOf(heated, {})).toEqual({ clipped: 0, temperatures: [0.5, null, 0.5, 0.5] });
    expect(await metricsOf(groups, { sampling_temperature: 0.5 })).toEqual({
      clipped: 0,
      temperatures: [0.5, null, 0.5, 0.5],
    });
    expect(await metricsOf(groups, {}, 0.5)).toEqual({ clipped: 0, temperatures: [0.5, null, 0.5, 0.5] });
    expect(await metricsOf([hot(groups[0]!, 1)], {}, 0.5)).toEqual({
      clipped: 0,
      temperatures: [null, null],
    });
    expect(await metricsOf([hot(groups[0]!, 0)], {}, 0.5)).toEqual({
      clipped: 0,
      temperatures: [null, null],
    });
    // A sampler that reports what it samples from is believed: e^(-0.5 + 1) is out of bounds.
    expect(await metricsOf(heated, { sampler_logprobs: 'processed' })).toEqual({
      clipped: 1,
      temperatures: [0.5, 0.5],
    });
  });

  it('rejects settings of a wrong type', async () => {
    const { tools } = setUp();
    const request = { trajectory_groups: [], experimental_config: { ppo: 'yes' as never } };
    await expect(train(request, tools)).rejects.toThrow(/ppo: expected true or false or null, got "yes"/);
  });
});
