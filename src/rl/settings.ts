/** A job's `experimental_config`, as the wire has it -> the settings of every stage, complete and checked. */
import { type ErrorDetail, invalidInput } from '../errors.ts';

/** Which ratio of probabilities weighs a token. */
export type ImportanceSamplingLevel = 'token' | 'sequence' | 'average' | 'geometric_average';

/** What a trajectory's reward is compared with. */
export type AdvantageEstimator = 'group' | 'leave_one_out' | 'batch';

/** A loss over preferences, in place of the policy loss. */
export type PreferenceLoss = 'dpo' | 'kto';

/** The wire's fields, all optional; `null` and `undefined` mean absent. */
export type ExperimentalConfig = {
  [Name in keyof TrainingSettings]?: TrainingSettings[Name] | null | undefined;
};

/** Every setting of a training job; names are the wire's. */
export type TrainingSettings = {
  readonly advantage_estimator: AdvantageEstimator;
  readonly scale_rewards: boolean;
  readonly advantage_balance: number;
  readonly normalize_advantages: boolean;
  readonly allow_training_without_logprobs: boolean;
  readonly packed_sequence_length: number | null;
  readonly precalculate_logprobs: boolean;
  readonly ppo: boolean;
  readonly epsilon: number;
  readonly epsilon_high: number;
  readonly importance_sampling_level: ImportanceSamplingLevel;
  readonly max_negative_advantage_importance_sampling_weight: number | null;
  readonly mask_prob_ratio: boolean;
  readonly variant_k2_tau: number | null;
  readonly kl_penalty_coef: number;
  readonly kl_penalty_reference_step: number | null;
  readonly kl_loss_coef: number;
  readonly truncated_importance_sampling: number | null;
  readonly normalize_by_length: boolean;
  readonly loss_length: number | null;
  readonly overlong_length: number | null;
  readonly overlong_buffer: number | null;
  readonly preference_loss: PreferenceLoss | null;
  readonly preference_beta: number;
  readonly learning_rate: number;
  readonly gradient_accumulation_steps: number;
};

const LEVELS: readonly ImportanceSamplingLevel[] = ['token', 'sequence', 'average', 'geometric_average'];
const ESTIMATORS: readonly AdvantageEstimator[] = ['group', 'leave_one_out', 'batch'];
const PREFERENCE_LOSSES: readonly PreferenceLoss[] = ['dpo', 'kto'];

type Check = { readonly expected: string; readonly accepts: (value: unknown) => boolean };
const isFiniteNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);
const bool: Check = { expected: 'a boolean', accepts: (value) => typeof value === 'boolean' };
const atLeast = (low: number): Check => ({
  expected: `a number >= ${low}`,
  accepts: (value) => isFiniteNumber(value) && value >= low,
});
const above0: Check = {
  expected: 'a number above 0',
  accepts: (value) => isFiniteNumber(value) && value > 0,
};
const oneOf = (names: readonly string[]): Check => ({
  expected: `one of ${names.join(', ')}`,
  accepts: (value) => names.includes(value as string),
});
const integerFrom = (low: number): Check => ({
  expected: `an integer >= ${low}`,
  accepts: (value) => Number.isInteger(value) && (value as number) >= low,
});

/** What each field accepts. The two clip bounds depend on `ppo`, so their defaults are in {@link resolveSettings}. */
const CHECKS: Record<keyof TrainingSettings, Check> = {
  advantage_estimator: oneOf(ESTIMATORS),
  scale_rewards: bool,
  advantage_balance: {
    expected: 'a number from -1 to 1',
    accepts: (value) => isFiniteNumber(value) && value >= -1 && value <= 1,
  },
  normalize_advantages: bool,
  allow_training_without_logprobs: bool,
  packed_sequence_length: integerFrom(2),
  precalculate_logprobs: bool,
  ppo: bool,
  epsilon: atLeast(0),
  epsilon_high: atLeast(0),
  importance_sampling_level: oneOf(LEVELS),
  max_negative_advantage_importance_sampling_weight: atLeast(0),
  mask_prob_ratio: bool,
  variant_k2_tau: atLeast(0),
  kl_penalty_coef: atLeast(0),
  kl_penalty_reference_step: integerFrom(0),
  kl_loss_coef: atLeast(0),
  truncated_importance_sampling: atLeast(0),
  normalize_by_length: bool,
  loss_length: integerFrom(1),
  overlong_length: integerFrom(1),
  overlong_buffer: integerFrom(1),
  preference_loss: oneOf(PREFERENCE_LOSSES),
  preference_beta: above0,
  learning_rate: atLeast(0),
  gradient_accumulation_steps: integerFrom(1),
};

/** Fills defaults and rejects unknown fields and illegal values, naming every one of them. */
export function resolveSettings(config: ExperimentalConfig = {}): TrainingSettings {
  const given = Object.entries(config).filter(([, value]) => value !== undefined && value !== null);
  const faults = given.flatMap(([name, input]): ErrorDetail[] => {
    const loc = ['experimental_config', name];
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof TrainingSettings] : undefined;
    if (!check) return [{ loc, type: 'unknown_field', msg: 'unknown field', input }];
    if (check.accepts(input)) return [];
    return [{ loc, type: 'value', msg: `expected ${check.expected}, got ${String(input)}`, input }];
  });
  if (faults.length > 0) throw invalidInput(faults);
  const values = Object.fromEntries(given) as Partial<TrainingSettings>;
  const ppo = values.ppo ?? false;
  const epsilon = values.epsilon ?? (ppo ? 0.2 : 1);
  return {
    advantage_estimator: 'group',
    scale_rewards: true,
    advantage_balance: 0,
    normalize_advantages: true,
    allow_training_without_logprobs: false,
    packed_sequence_length: null,
    precalculate_logprobs: false,
    epsilon_high: ppo ? epsilon : 4,
    importance_sampling_level: 'token',
    max_negative_advantage_importance_sampling_weight: null,
    mask_prob_ratio: false,
    variant_k2_tau: null,
    kl_penalty_coef: 0,
    kl_penalty_reference_step: null,
    kl_loss_coef: 0,
    truncated_importance_sampling: null,
    normalize_by_length: true,
    loss_length: null,
    overlong_length: null,
    overlong_buffer: null,
    preference_loss: null,
    preference_beta: 0.1,
    learning_rate: 5e-6,
    gradient_accumulation_steps: 1,
    ...values,
    ppo,
    epsilon,
  };
}

/** Whether a job needs log-probabilities under the reference weights. */
export function needsReference(settings: TrainingSettings): boolean {
  return settings.kl_penalty_coef > 0 || settings.kl_loss_coef > 0 || settings.preference_loss !== null;
}

/** Whether choices may come without ids and log-probabilities. Preferences are learnt from texts of any origin. */
export function acceptsTexts(settings: TrainingSettings): boolean {
  return settings.allow_training_without_logprobs || settings.preference_loss !== null;
}
