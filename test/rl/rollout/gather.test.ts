/** Tasks -> groups of attempts: order, limits, failures, retries, abort. */
import { describe, expect, it } from 'vitest';
import type { Trajectory } from '../../../src/protocol/index.ts';
import { type GatherProgress, gatherTrajectoryGroups } from '../../../src/rl/rollout/gather.ts';
import { progressBar } from '../../../src/rl/rollout/progress-bar.ts';

const trajectory = (reward: number): Trajectory => ({ messages_and_choices: [], reward });
const rewardsOf = (groups: readonly { trajectories: readonly Trajectory[] }[]) =>
  groups.map(({ trajectories }) => trajectories.map(({ reward }) => reward));

describe('groups', () => {
  it('are in the order of tasks and attempts, however attempts end', async () => {
    const waiting: (() => void)[] = [];
    const rollout = async (task: number, { attempt }: { attempt: number }) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return trajectory(10 * task + attempt);
    };
    const gathering = gatherTrajectoryGroups([1, 2, 3], rollout, { groupSize: 2 });
    await expect.poll(() => waiting.length).toBe(6);
    for (const end of waiting.reverse()) end();
    expect(rewardsOf(await gathering)).toEqual([
      [10, 11],
      [20, 21],
      [30, 31],
    ]);
  });

  it('of no tasks are none', async () => {
    expect(await gatherTrajectoryGroups([], () => trajectory(0))).toEqual([]);
  });

  it('run at most `concurrency` attempts, each with a seed of its own that stays', async () => {
    let most = 0;
    const run = async () => {
      let running = 0;
      const seeds: number[] = [];
      await gatherTrajectoryGroups(
        ['a', 'b', 'c'],
        async (_, { seed }) => {
          most = Math.max(most, ++running);
          await Promise.resolve();
          seeds.push(seed);
          running--;
          return trajectory(0);
        },
        { groupSize: 4, concurrency: 5, seed: 7 },
      );
      return seeds;
    };
    const seeds = await run();
    expect(most).toBe(5);
    expect(new Set(seeds).size).toBe(12);
    expect(await run()).toEqual(seeds);
  });

  it('are scored when they are whole', async () => {
    const groups = await gatherTrajectoryGroups(['a', 'b'], () => trajectory(1), {
      groupSize: 3,
      scoreGroup: async (group) => ({
        ...group,
        trajectories: group.trajectories.map((one, index) => ({ ...one, reward: index })),
      }),
    });
    expect(rewardsOf(groups)).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
  });
});

describe('failures', () => {
  const failing =
    (fails: (task: number, attempt: number) => boolean) => (task: number, context: { attempt: number }) => {
      if (fails(task, context.attempt)) throw new RangeError(`task ${task}`);
      return trajectory(task);
    };

  it('are exceptions of their group, up to `maxFailures`', async () => {
    const groups = await gatherTrajectoryGroups(
      [1, 2],
      failing((task, attempt) => task === 2 && attempt > 0),
      {
        groupSize: 3,
        maxFailures: 2,
      },
    );
    expect(rewardsOf(groups)).toEqual([[1, 1, 1], [2]]);
    expect(groups.map(({ exceptions }) => exceptions)).toEqual([
      [],
      Array.from({ length: 2 }, () => ({ type: 'RangeError', message: 'task 2' })),
    ]);
  });

  it('beyond that end all attempts', async () => {
    const signals: AbortSignal[] = [];
    const gathering = gatherTrajectoryGroups(
      [1, 2, 3],
      async (task, { signal }) => {
        signals.push(signal);
        if (task === 2) throw new Error('broken');
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        return trajectory(0);
      },
      { groupSize: 1 },
    );
    await expect(gathering).rejects.toThrow('broken');
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  it('are tried again', async () => {
    let calls = 0;
    const flaky = () => {
      if (++calls % 3 !== 0) throw new Error('flaky');
      return trajectory(1);
    };
    const groups = await gatherTrajectoryGroups([1, 2], flaky, { groupSize: 1, retries: 2 });
    expect([rewardsOf(groups), calls]).toEqual([[[1], [1]], 6]);
  });

  it('include rewards that are no numbers', async () => {
    await expect(gatherTrajectoryGroups([1], () => trajectory(Number.NaN))).rejects.toThrow(
      'reward: expected a finite number in what a rollout returns, got NaN',
    );
  });

  it.each([
    [{ groupSize: 0 }, 'groupSize: expected an integer >= 1, got 0'],
    [{ concurrency: 0.5 }, 'concurrency: expected an integer >= 1, got 0.5'],
    [{ maxFailures: -1 }, 'maxFailures: expected an integer >= 0, got -1'],
    [{ retries: '1' as never }, 'retries: expected an integer >= 0, got "1"'],
  ])('of options name them: %j', async (options, message) => {
    await expect(gatherTrajectoryGroups([1], () => trajectory(0), options)).rejects.toThrow(message);
  });
});

describe('an abort', () => {
  it.each([
    ['before', 0],
    ['in the middle', 2],
  ])('%s ends attempts and starts none', async (_, after) => {
    const stop = new AbortController();
    if (after === 0) stop.abort();
    let begun = 0;
    const gathering = gatherTrajectoryGroups(
      [1, 2, 3, 4],
      async (_, { signal }) => {
        if (++begun === after) stop.abort(new Error('enough'));
        signal.throwIfAborted();
        return trajectory(0);
      },
      { groupSize: 1, concurrency: 1, signal: stop.signal },
    );
    await expect(gathering).rejects.toMatchObject({ code: 'ABORTED' });
    expect(begun).toBe(after);
  });
});

describe('progress', () => {
  it('counts attempts and their mean reward', async () => {
    const seen: GatherProgress[] = [];
    await gatherTrajectoryGroups([1, 3], (task) => trajectory(task), {
      groupSize: 1,
      concurrency: 1,
      onProgress: (progress) => seen.push(progress),
    });
    expect(seen).toEqual([
      { done: 0, total: 2, failed: 0, reward: null },
      { done: 1, total: 2, failed: 0, reward: 1 },
      { done: 2, total: 2, failed: 0, reward: 2 },
    ]);
  });

  it('is a bar in a terminal, and nothing elsewhere', () => {
    const lines: string[] = [];
    const output = { isTTY: true, write: (text: string) => lines.push(text) };
    const draw = progressBar('train', output as never);
    draw({ done: 1, total: 2, failed: 1, reward: null });
    draw({ done: 2, total: 2, failed: 1, reward: 0.5 });
    expect(lines).toEqual([
      `\r\x1b[2K\x1b[?7ltrain ${'█'.repeat(15)}${'░'.repeat(15)} 1/2  1 failed\x1b[?7h`,
      `\r\x1b[2Ktrain ${'█'.repeat(30)} 2/2  reward 0.500  1 failed\n`,
    ]);
    output.isTTY = false;
    draw({ done: 2, total: 2, failed: 0, reward: 1 });
    expect(lines).toHaveLength(2);
  });
});
