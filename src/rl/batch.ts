/** Trajectory groups -> packed rows with advantages and weights, and the numbers that describe them. */
import { computeAdvantages, isTrainable } from './advantages.ts';
import { type Metrics, trajectoryMetrics } from './metrics.ts';
import { defaultRowLength, packRows, type TrainingRow, type WeightedSequence } from './pack.ts';
import type { TrainingSettings } from './settings.ts';
import { type ChatTokenizer, countTrained, type TokenSequence, trajectoryTokens } from './tokens.ts';
import type { TrajectoryGroup } from './trajectory.ts';

/** What one job trains on. */
export type Batch = { readonly rows: readonly TrainingRow[]; readonly metrics: Metrics };

/**
 * Makes a job's rows.
 * @param pause awaited between trajectories, so that tokenizing many of them does not hold up the caller's thread
 */
export async function makeBatch(
  groups: readonly TrajectoryGroup[],
  settings: TrainingSettings,
  tokenizer: ChatTokenizer,
  contextSize: number,
  pause: () => Promise<void>,
): Promise<Batch> {
  const isGroupTrainable = groups.map(({ trajectories }) =>
    isTrainable(trajectories.map(({ reward }) => reward)),
  );
  const sequences: TokenSequence[][][] = []; // (groups)(trajectories)(sequences)
  for (const [g, { trajectories }] of groups.entries()) {
    const ofGroup: TokenSequence[][] = [];
    for (const trajectory of trajectories) {
      await pause();
      const options = { allowWithoutLogprobs: settings.allow_training_without_logprobs };
      ofGroup.push(isGroupTrainable[g] ? await trajectoryTokens(trajectory, tokenizer, options) : []);
    }
    sequences.push(ofGroup);
  }
  const scored = groups.map(({ trajectories }, g) =>
    trajectories.map(({ reward }, t) => ({ reward, trainable_tokens: countTrained(sequences[g]![t]!) })),
  );
  const advantages = computeAdvantages(scored, {
    scaleRewards: settings.scale_rewards,
    advantageBalance: settings.advantage_balance,
    normalize: settings.normalize_advantages,
  });
  const weighted = advantages.flatMap(({ group, index, advantage, weight }): WeightedSequence[] =>
    sequences[group]![index]!.map((sequence) => ({ ...sequence, group, advantage, weight })),
  );
  const length = settings.packed_sequence_length ?? defaultRowLength(weighted, contextSize);
  const { rows, truncatedCount } = packRows(weighted, length);
  return {
    rows,
    metrics: {
      ...trajectoryMetrics(groups, 'train'),
      'data/step_num_trajectories': groups.reduce((sum, { trajectories }) => sum + trajectories.length, 0),
      'data/step_num_groups_submitted': groups.length,
      'data/step_num_groups_trainable': isGroupTrainable.filter(Boolean).length,
      'data/step_num_truncated': truncatedCount,
      'data/step_trainable_tokens': rows.reduce((sum, { row }) => sum + row.targetTokens.length, 0),
      'data/step_packed_tokens': rows.reduce((sum, { row }) => sum + row.tokens.length, 0),
    },
  };
}
