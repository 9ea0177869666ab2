/** Trajectory groups -> packed rows with advantages and weights, and metrics of the groups. */

import { OnpolicyError } from '../errors.ts';
import type { ScoredTrajectory } from '../protocol/index.ts';
import { computeAdvantages, isTrainable, type TrajectoryAdvantage } from './advantages.ts';
import { type Metrics, trajectoryMetrics } from './metrics.ts';
import { areObserved } from './observations.ts';
import { defaultRowLength, packRows, type TrainingRow, type WeightedSequence } from './pack.ts';
import { acceptsTexts, type TrainingSettings } from './settings.ts';
import { type ChatTokenizer, countTrained, located, type TokenSequence, tokensOf } from './tokens.ts';
import { conversationsOf, isChoice, type Trajectory, type TrajectoryGroup } from './trajectory.ts';

/** Training data of one job. */
export type Batch = {
  readonly rows: readonly TrainingRow[];
  readonly metrics: Metrics;
  /** Means of the trajectories' metrics. */
  readonly sampled: Metrics;
};

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
  const isKept = keptGroups(groups, settings);
  const sequences: TokenSequence[][][] = []; // (groups)(trajectories)(sequences)
  const allowWithoutLogprobs = acceptsTexts(settings);
  const replaysExperts = settings.routing === 'replay';
  const temperature = settings.sampling_temperature ?? 1;
  const observationWeights = settings.observation_weights;
  for (const [g, { trajectories }] of groups.entries()) {
    const ofGroup: TokenSequence[][] = [];
    for (const [t, trajectory] of trajectories.entries()) {
      await pause();
      const options = { allowWithoutLogprobs, replaysExperts, temperature, observationWeights };
      const fail = (error: unknown) => {
        throw located(error, `trajectory_groups.${g}.trajectories.${t}`);
      };
      ofGroup.push(isKept[g] ? await tokensOf(trajectory, tokenizer, options).catch(fail) : []);
    }
    sequences.push(ofGroup);
  }
  const scored = groups.map(({ trajectories }, g) =>
    trajectories.map((trajectory, t) => {
      const tokens = countTrained(sequences[g]![t]!);
      const reward = trajectory.reward - overlongPenalty(tokens, settings);
      const isLeftOut = settings.mask_truncated && isTruncated(trajectory);
      if (isLeftOut) sequences[g]![t] = [];
      return { reward, trainable_tokens: isLeftOut ? 0 : tokens, metrics: trajectory.metrics ?? null };
    }),
  );
  const advantages =
    settings.preference_loss === null
      ? computeAdvantages(scored, {
          estimator: settings.advantage_estimator,
          rewardWeights: settings.reward_weights,
          scaleRewards: settings.scale_rewards,
          advantageBalance: settings.advantage_balance,
          normalize: settings.normalize_advantages,
        })
      : preferences(scored, settings.preference_loss);
  const weighted = advantages.flatMap(({ group, index, advantage, weight, unit }): WeightedSequence[] =>
    sequences[group]![index]!.map((sequence) => ({
      ...sequence,
      // Preferences compare texts of any origin, so temperatures do not apply.
      temperatures: settings.preference_loss === null ? sequence.temperatures : undefined,
      group,
      advantage,
      weight,
      unit,
    })),
  );
  const trainable = new Set(
    weighted.filter(({ isTrained }) => isTrained.includes(1)).map(({ group }) => group),
  );
  const packed = areObserved(observationWeights)
    ? [...weighted, ...observedOnly(sequences, advantages)]
    : weighted;
  const length = settings.packed_sequence_length ?? defaultRowLength(packed, contextSize);
  const { rows, truncatedCount } = packRows(packed, length);
  return {
    rows,
    sampled: trajectoryMetrics(groups, 'train'),
    metrics: {
      'data/step_num_trajectories': groups.reduce((sum, { trajectories }) => sum + trajectories.length, 0),
      'data/step_num_groups_submitted': groups.length,
      'data/step_num_groups_trainable': trainable.size,
      'data/step_num_truncated': truncatedCount,
      'data/step_trainable_tokens': rows.reduce((sum, { weights }) => sum + weights.length, 0),
      ...(areObserved(observationWeights) ? { 'data/step_observation_tokens': observedTokens(rows) } : {}),
      'data/step_packed_tokens': rows.reduce((sum, { row }) => sum + row.tokens.length, 0),
    },
  };
}

/** Returns the observations of trajectories without an advantage, whose answers are not trained. */
function observedOnly(
  sequences: readonly (readonly (readonly TokenSequence[])[])[], // (groups)(trajectories)(sequences)
  advantages: readonly TrajectoryAdvantage[],
): WeightedSequence[] {
  const trained = new Set(advantages.map(({ group, index }) => `${group}.${index}`));
  return sequences.flatMap((trajectories, group) =>
    trajectories.flatMap((ofTrajectory, index) => {
      if (trained.has(`${group}.${index}`)) return [];
      return ofTrajectory
        .filter(({ observationWeights }) => observationWeights)
        .map((sequence) => ({
          ...sequence,
          isTrained: new Uint8Array(sequence.tokens.length),
          group,
          advantage: 0,
          weight: 0,
        }));
    }),
  );
}

/** Returns the number of observation tokens of some rows. */
export function observedTokens(rows: readonly Pick<TrainingRow, 'observations'>[]): number {
  return rows.reduce((sum, { observations }) => sum + (observations?.weights.length ?? 0), 0);
}

/** Returns the groups whose tokens are needed: those that have a gradient. */
function keptGroups(
  groups: readonly TrajectoryGroup[],
  {
    advantage_estimator,
    reward_weights,
    overlong_length,
    preference_loss,
    observation_weights,
  }: TrainingSettings,
): boolean[] {
  const needsAll =
    ['batch', 'none'].includes(advantage_estimator) ||
    [reward_weights, overlong_length, preference_loss].some(Boolean) ||
    areObserved(observation_weights);
  return groups.map(({ trajectories }) => needsAll || isTrainable(trajectories.map(({ reward }) => reward)));
}

/** Returns true if an answer of the attempt was cut off at its length limit, so that its reward says little (DAPO, arXiv:2503.14476). */
function isTruncated(trajectory: Trajectory): boolean {
  return conversationsOf(trajectory)
    .flatMap(({ entries }) => entries)
    .some((entry) => isChoice(entry) && entry.finish_reason === 'length');
}

/** Returns the penalty for an answer's length: 0 up to the buffer, 1 beyond the limit, linear in between (DAPO, arXiv:2503.14476). */
function overlongPenalty(
  tokens: number,
  { overlong_length: length, overlong_buffer }: TrainingSettings,
): number {
  if (length === null) return 0;
  const buffer = Math.min(overlong_buffer ?? Math.max(1, Math.floor(length / 5)), length);
  return Math.min(Math.max((tokens - (length - buffer)) / buffer, 0), 1);
}

/** Marks each trajectory as a preferred (1) or rejected (-1) answer of its pair, or as an answer without a pair. */
function preferences(
  groups: readonly (readonly ScoredTrajectory[])[],
  loss: NonNullable<TrainingSettings['preference_loss']>,
): (TrajectoryAdvantage & { readonly unit: number })[] {
  let answers = 0;
  return groups.flatMap((trajectories, group) => {
    const [first, second, ...others] = trajectories;
    if (loss === 'dpo' && (!first || !second || others.length > 0 || first.reward === second.reward))
      throw new OnpolicyError(
        'INVALID_REQUEST',
        `trajectory_groups.${group}: expected two trajectories with different rewards for preference_loss dpo`,
        { param: `trajectory_groups.${group}` },
      );
    const limit = loss === 'dpo' ? Math.min(first!.reward, second!.reward) : 0;
    return trajectories.map(({ reward }, index) => ({
      group,
      index,
      advantage: reward > limit ? 1 : -1,
      weight: 1,
      unit: loss === 'dpo' ? group : answers++,
    }));
  });
}
