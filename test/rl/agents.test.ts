/** Several agents: advantages as prime-rl's documentation and SPIRAL define them, in a bare loop beside what `onpolicy/rl` computes. */
import { describe, expect, it } from 'vitest';
import { computeAdvantages } from '../../src/rl/advantages.ts';
import { AgentBaselines, hierarchicalGroups } from '../../src/rl/agents.ts';
import { resolveSettings } from '../../src/rl/settings.ts';
import { uniforms } from './drawn-rows.ts';

const AGENTS = ['player0', 'player1', '__proto__'];

describe('AgentBaselines', () => {
  it.each([0, 0.5, 0.95, 1])(
    'with decay %d: the reward minus an exponential mean of earlier ones',
    (decay) => {
      const next = uniforms(Math.round(decay * 100) + 1);
      const agents = new AgentBaselines({ decay });
      // SPIRAL (arXiv:2506.24119), algorithm 1: A = R - b, then b = alpha b + (1 - alpha) R, for each role, from 0.
      const history: { agent: string; reward: number }[] = [];
      const baselineOf = (agent: string, end: number) => {
        let baseline = 0;
        for (const one of history.slice(0, end))
          if (one.agent === agent) baseline = decay * baseline + (1 - decay) * one.reward;
        return baseline;
      };
      for (let batch = 0; batch < 20; batch++) {
        const from = history.length;
        for (let i = 0; i < 1 + (batch % 4); i++)
          history.push({ agent: AGENTS[Math.floor(3 * next())]!, reward: 2 * next() - 1 });
        const got = agents.advantages(history.slice(from));
        const expected = history
          .slice(from)
          .map(({ agent, reward }, i) => reward - baselineOf(agent, from + i));
        expect(got).toEqual(expected);
      }
      const continued = new AgentBaselines({ decay, baselines: agents.values() });
      const more = [{ agent: 'player1', reward: 0.5 }];
      expect(continued.advantages(more)).toEqual(agents.advantages(more));
    },
  );

  it('has decay 0.95 and begins at 0, as prime-rl', () => {
    const agents = new AgentBaselines();
    const rewards = [1, 1].map((reward) => ({ agent: 'a', reward }));
    expect(agents.advantages(rewards)).toEqual([1, 1 - (1 - 0.95)]);
    expect(agents.advantages([{ agent: 'b', reward: -2 }])).toEqual([-2]);
  });

  it.each<[() => unknown, string]>([
    [() => new AgentBaselines({ decay: 1.5 }), 'decay: expected'],
    [() => new AgentBaselines({ baselines: { a: 'x' } } as never), 'baselines.a: expected'],
    [() => new AgentBaselines({ alpha: 0.9 } as never), 'alpha: not a field'],
    [() => new AgentBaselines().advantages([{ agent: '', reward: 1 }]), 'trajectories.0.agent: expected'],
    [
      () => new AgentBaselines().advantages([{ agent: 'a', reward: Number.NaN }]),
      'trajectories.0.reward: expected',
    ],
    [() => hierarchicalGroups([[{ agent: 'a' } as never]], ['a']), 'episodes.0.0.reward: '],
    [() => hierarchicalGroups([], [1 as never]), 'episodeAgents.0: expected'],
  ])('refuses %s', (call, message) => {
    expect(call).toThrow(message);
  });
});

describe('hierarchicalGroups', () => {
  const advantagesOf = (episodes: Parameters<typeof hierarchicalGroups>[0], episodeAgents: string[]) => {
    const groups = hierarchicalGroups(episodes, episodeAgents);
    const scored = groups.map(({ trajectories }) =>
      trajectories.map(({ reward }) => ({ reward, trainable_tokens: 3 })),
    );
    const { scale_rewards: scaleRewards } = resolveSettings({ scale_rewards: false });
    const found = new Map<object, number>();
    for (const { group, index, advantage } of computeAdvantages(scored, { scaleRewards, normalize: false }))
      found.set(groups[group]!.trajectories[index]!, advantage);
    expect(groups.flatMap(({ trajectories }) => trajectories)).toHaveLength(episodes.flat().length);
    return episodes.map((episode) => episode.map((attempt) => found.get(attempt) ?? 0));
  };

  it("gives the advantages of prime-rl's example", () => {
    const solvers = [1, 1, 0].map((reward) => ({ agent: 'solver', reward }));
    const easy = [1, 1, 1].map((reward) => ({ agent: 'solver', reward }));
    const episodes = [
      [{ agent: 'proposer', reward: 0.5 }, ...solvers],
      [{ agent: 'proposer', reward: 0 }, ...easy],
    ];
    const [first, second] = advantagesOf(episodes, ['solver']);
    expect(first).toEqual([0.25, 1 / 3, 1 / 3, -2 / 3].map((value) => expect.closeTo(value, 12)));
    expect(second).toEqual([-0.25, 0, 0, 0]);
  });

  it('compares each reward with the mean of its peers, on drawn episodes', () => {
    for (let draw = 0; draw < 200; draw++) {
      const next = uniforms(draw);
      const episodes = Array.from({ length: 1 + Math.floor(4 * next()) }, () =>
        Array.from({ length: Math.floor(5 * next()) }, () => ({
          agent: AGENTS[Math.floor(3 * next())]!,
          reward: next() < 0.3 ? 1 : next(),
        })),
      );
      const inEpisode = AGENTS.slice(draw % 3);
      const got = advantagesOf(episodes, inEpisode);
      for (const [e, episode] of episodes.entries())
        for (const [i, { agent, reward }] of episode.entries()) {
          const among = inEpisode.includes(agent) ? episode : episodes.flat();
          const peers = among.filter((one) => one.agent === agent).map((one) => one.reward);
          const expected = reward - peers.reduce((sum, one) => sum + one, 0) / peers.length;
          expect(got[e]![i]).toBeCloseTo(expected, 12);
        }
    }
  });
});
