/** A job's `experimental_config`, as the wire has it -> the settings of every stage, complete and checked. */
import {
  type Complete,
  checkArguments,
  type ExperimentalConfig,
  settingFaults,
  throwFaults,
  withDefaults,
} from '../protocol/index.ts';

export type { ExperimentalConfig };

/** Every setting of a training job, under its request name. */
export type TrainingSettings = Omit<
  Complete['ExperimentalConfig'],
  'objective' | 'epsilon' | 'epsilon_high' | 'sampler_correction_min' | 'sampler_correction_max'
> & {
  readonly objective: NonNullable<Complete['ExperimentalConfig']['objective']>;
  readonly epsilon: number;
  readonly epsilon_high: number;
  readonly sampler_correction_min: number;
  readonly sampler_correction_max: number;
};

/** Ratio of probabilities that weights a token. */
export type ImportanceSamplingLevel = TrainingSettings['importance_sampling_level'];

/** The baseline of a trajectory's reward. */
export type AdvantageEstimator = TrainingSettings['advantage_estimator'];

/** A preference loss, in place of the policy loss. */
export type PreferenceLoss = NonNullable<TrainingSettings['preference_loss']>;

/** Checks the settings and fills in defaults. Throws `INVALID_REQUEST` with all faults. */
export function resolveSettings(config: ExperimentalConfig | null = null): TrainingSettings {
  checkArguments('ExperimentalConfig', config);
  throwFaults(settingFaults([], config ?? {}));
  return completeSettings(config);
}

/** Fills in the defaults of checked settings. */
export function completeSettings(config: ExperimentalConfig | null = null): TrainingSettings {
  const settings = withDefaults('ExperimentalConfig', config);
  const objective = settings.objective ?? settings.loss_fn ?? (settings.ppo ? 'ppo' : 'cispo');
  const isClipped = objective === 'ppo';
  const isTokenMask = settings.sampler_correction === 'token_mask';
  const epsilon = settings.epsilon ?? (isClipped ? 0.2 : 1);
  return {
    ...settings,
    objective,
    epsilon,
    epsilon_high: settings.epsilon_high ?? (isClipped ? epsilon : 4),
    sampler_correction_min: settings.sampler_correction_min ?? (isTokenMask ? 0.5 : 0),
    sampler_correction_max: settings.sampler_correction_max ?? (isTokenMask ? 5 : 3),
  };
}

/** Returns true if a job needs log-probabilities under the reference weights. */
export function needsReference(settings: TrainingSettings): boolean {
  return settings.kl_penalty_coef > 0 || settings.kl_loss_coef > 0 || settings.preference_loss !== null;
}

/** Returns true if choices may have no ids and log-probabilities. Preferences are learned from texts of any origin. */
export function acceptsTexts(settings: TrainingSettings): boolean {
  return settings.allow_training_without_logprobs || settings.preference_loss !== null;
}
