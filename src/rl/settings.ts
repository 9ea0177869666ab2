/** A job's `experimental_config`, as the wire has it -> the settings of every stage, complete and checked. */
import { type Complete, checkArguments, type ExperimentalConfig, withDefaults } from '../protocol/index.ts';

export type { ExperimentalConfig };

/** Every setting of a training job, under its request name. */
export type TrainingSettings = Omit<Complete['ExperimentalConfig'], 'epsilon' | 'epsilon_high'> & {
  readonly epsilon: number;
  readonly epsilon_high: number;
};

/** Which ratio of probabilities weights a token. */
export type ImportanceSamplingLevel = TrainingSettings['importance_sampling_level'];

/** The baseline of a trajectory's reward. */
export type AdvantageEstimator = TrainingSettings['advantage_estimator'];

/** A preference loss, in place of the policy loss. */
export type PreferenceLoss = NonNullable<TrainingSettings['preference_loss']>;

/** Checks the settings and fills in defaults. Throws `INVALID_REQUEST` with all faults. */
export function resolveSettings(config: ExperimentalConfig | null = null): TrainingSettings {
  return completeSettings(checkArguments('ExperimentalConfig', config));
}

/** Fills the defaults of checked settings in. Those of the two clip bounds depend on `ppo`. */
export function completeSettings(config: ExperimentalConfig | null = null): TrainingSettings {
  const settings = withDefaults('ExperimentalConfig', config);
  const epsilon = settings.epsilon ?? (settings.ppo ? 0.2 : 1);
  return { ...settings, epsilon, epsilon_high: settings.epsilon_high ?? (settings.ppo ? epsilon : 4) };
}

/** Whether a job needs log-probabilities under the reference weights. */
export function needsReference(settings: TrainingSettings): boolean {
  return settings.kl_penalty_coef > 0 || settings.kl_loss_coef > 0 || settings.preference_loss !== null;
}

/** Whether choices may come without ids and log-probabilities. Preferences are learnt from texts of any origin. */
export function acceptsTexts(settings: TrainingSettings): boolean {
  return settings.allow_training_without_logprobs || settings.preference_loss !== null;
}
