/** Attempts of several agents -> what their rewards are compared with: attempts at the same problem, or the usual reward of the agent. */
import {
  type AgentBaselineOptions,
  type AgentTrajectory,
  checkArguments,
  withDefaults,
} from '../protocol/index.ts';

/**
 * Groups the attempts of proposers and solvers for `trajectory_groups`, as prime-rl's `hierarchical_grpo` does: those of `episodeAgents`
 * with the attempts of the same agent in their episode, all others with those of the same agent in all episodes. Train on them with
 * `{ ...algorithms.grpo, scale_rewards: false }`. A group of one has no gradient.
 * @param episodes (episodes)(trajectories of the episode): the attempts at one proposed problem, of one source task
 * @throws OnpolicyError `INVALID_REQUEST` for wrong arguments
 */
export function hierarchicalGroups<Attempt extends AgentTrajectory>(
  episodes: readonly (readonly Attempt[])[],
  episodeAgents: readonly string[],
): { readonly trajectories: readonly Attempt[] }[] {
  checkArguments('HierarchyArguments', { episodes, episodeAgents });
  const groups = new Map<string, Attempt[]>();
  for (const [e, episode] of episodes.entries())
    for (const attempt of episode) {
      const key = JSON.stringify([attempt.agent, episodeAgents.includes(attempt.agent) ? e : null]);
      const group = groups.get(key) ?? [];
      groups.set(key, group);
      group.push(attempt);
    }
  return Array.from(groups.values(), (trajectories) => ({ trajectories }));
}

/**
 * Role-conditioned advantages of self-play (SPIRAL, arXiv:2506.24119, as prime-rl's `rae`): a reward minus the baseline of its agent, an
 * exponential mean of that agent's earlier rewards. Train on attempts with these advantages as rewards, with
 * `{ ...algorithms.grpo, advantage_estimator: 'none' }`.
 */
export class AgentBaselines {
  readonly #decay: number;
  readonly #baselines: Map<string, number>;

  /** @throws OnpolicyError `INVALID_REQUEST` for wrong options */
  constructor(options: AgentBaselineOptions = {}) {
    checkArguments('AgentBaselineOptions', options);
    const { decay, baselines } = withDefaults('AgentBaselineOptions', options);
    this.#decay = decay;
    this.#baselines = new Map(Object.entries(baselines ?? {}));
  }

  /**
   * Returns the advantage of each attempt, then adds its reward to the baseline: baseline = decay * baseline + (1 - decay) * reward.
   * @throws OnpolicyError `INVALID_REQUEST` for wrong arguments
   */
  advantages(trajectories: readonly AgentTrajectory[]): number[] {
    checkArguments('AgentBaselineArguments', { trajectories });
    return trajectories.map(({ agent, reward }) => {
      const baseline = this.#baselines.get(agent) ?? 0;
      this.#baselines.set(agent, this.#decay * baseline + (1 - this.#decay) * reward);
      return reward - baseline;
    });
  }

  /** Returns the baselines by agent, to continue from. */
  values(): Record<string, number> {
    return Object.fromEntries(this.#baselines);
  }
}
