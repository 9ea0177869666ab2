/** Jobs under settings as the wire has them, for tests. */
import { checkArguments, type SftConfig, withDefaults } from '../../src/protocol/index.ts';
import { type ExperimentalConfig, resolveSettings } from '../../src/rl/settings.ts';
import type { SftExample } from '../../src/rl/sft.ts';
import * as jobs from '../../src/rl/train.ts';
import type { TrajectoryGroup } from '../../src/rl/trajectory.ts';

/** Reinforcement learning. Rejects when the settings are wrong. */
export async function train(
  request: { trajectory_groups: readonly TrajectoryGroup[]; experimental_config?: ExperimentalConfig },
  tools: jobs.TrainTools,
): Promise<jobs.TrainResult> {
  const settings = resolveSettings(request.experimental_config);
  return await jobs.train({ groups: request.trajectory_groups, settings }, tools);
}

/** Supervised learning. Rejects when the settings are wrong. */
export async function sft(
  { data, config = {} }: { data: readonly SftExample[]; config?: SftConfig },
  tools: jobs.TrainTools,
): Promise<jobs.TrainResult> {
  return await jobs.sft(
    { data, settings: withDefaults('SftConfig', checkArguments('SftConfig', config)) },
    tools,
  );
}
