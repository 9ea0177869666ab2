/** A job's `experimental_config`, as the wire has it -> the settings of every stage, complete and checked. */
import { type ErrorDetail, invalidInput } from '../errors.ts';

/** Which ratio of probabilities weighs a token. */
export type ImportanceSamplingLevel = 'token' | 'sequence' | 'average' | 'geometric_average';

/** The wire's fields, all optional; `null` and `undefined` mean absent. */
export type ExperimentalConfig = {
  [Name in keyof TrainingSettings]?: TrainingSettings[Name] | null | undefined;
};

/** Every setting of a training job; names are the wire's. */
export type TrainingSettings = {
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
  readonly truncated_importance_sampling: number | null;
  readonly normalize_by_length: boolean;
  readonly learning_rate: number;
  readonly gradient_accumulation_steps: number;
};

const LEVELS: readonly string[] = ['token', 'sequence', 'average', 'geometric_average'];

type Check = { readonly expected: string; readonly accepts: (value: unknown) => boolean };
const isFiniteNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);
const bool: Check = { expected: 'a boolean', accepts: (value) => typeof value === 'boolean' };
const atLeast = (low: number): Check => ({
  expected: `a number >= ${low}`,
  accepts: (value) => isFiniteNumber(value) && value >= low,
});
const integerFrom = (low: number): Check => ({
  expected: `an integer >= ${low}`,
  accepts: (value) => Number.isInteger(value) && (value as number) >= low,
});

/** What each field accepts. The two clip bounds depend on `ppo`, so their defaults are in {@link resolveSettings}. */
const CHECKS: Record<keyof TrainingSettings, Check> = {
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
  importance_sampling_level: {
    expected: `one of ${LEVELS.join(', ')}`,
    accepts: (value) => LEVELS.includes(value as string),
  },
  max_negative_advantage_importance_sampling_weight: atLeast(0),
  mask_prob_ratio: bool,
  variant_k2_tau: atLeast(0),
  kl_penalty_coef: atLeast(0),
  kl_penalty_reference_step: integerFrom(0),
  truncated_importance_sampling: atLeast(0),
  normalize_by_length: bool,
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
    truncated_importance_sampling: null,
    normalize_by_length: true,
    learning_rate: 5e-6,
    gradient_accumulation_steps: 1,
    ...values,
    ppo,
    epsilon,
  };
}
