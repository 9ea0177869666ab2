/** Rules about training settings that contradict each other. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import type { ExperimentalConfig } from '../generated/request-types.ts';

/** Returns the faults of settings that match their schema. `loc` is their path. */
export function settingFaults(
  loc: readonly string[],
  config: NonNullable<ExperimentalConfig>,
): readonly ErrorDetail[] {
  const { ppo, objective, reward_weights, sampler_correction, truncated_importance_sampling } = config;
  const { preference_loss, observation_weights } = config;
  const { loss_fn, kl_penalty_step_lag, kl_penalty_reference_step } = config;
  const { sampler_correction_min: least, sampler_correction_max: most } = config;
  const at = (field: keyof typeof config, expected: string): ErrorDetail =>
    fault([...loc, field], 'conflict', expected, config[field]);
  const faults: ErrorDetail[] = [];
  if (ppo && objective && objective !== 'ppo')
    faults.push(at('objective', '"ppo" or no value with ppo: true'));
  if (loss_fn && objective && objective !== loss_fn) faults.push(at('loss_fn', 'the same as objective'));
  if (loss_fn && ppo != null && ppo !== (loss_fn === 'ppo'))
    faults.push(at('loss_fn', ppo ? '"ppo" or no value with ppo: true' : 'no "ppo" with ppo: false'));
  if (kl_penalty_step_lag != null && kl_penalty_reference_step != null)
    faults.push(at('kl_penalty_step_lag', 'no value with kl_penalty_reference_step'));
  if (reward_weights && Object.keys(reward_weights).length === 0)
    faults.push(at('reward_weights', 'the name of a metric and its weight'));
  if (preference_loss && observation_weights)
    faults.push(at('observation_weights', 'no value with preference_loss'));
  if (sampler_correction && truncated_importance_sampling)
    faults.push(at('sampler_correction', 'no value with truncated_importance_sampling'));
  if (least != null && most != null && least > most)
    faults.push(at('sampler_correction_min', `at most sampler_correction_max, ${most}`));
  return faults;
}

/** Returns the faults of a job's settings. A job must compute columns of log-probabilities itself, so some settings need that option. */
export function jobSettingFaults(
  loc: readonly string[],
  config: NonNullable<ExperimentalConfig>,
): readonly ErrorDetail[] {
  const faults = [...settingFaults(loc, config)];
  const expected = 'no value without precalculate_logprobs: true';
  for (const field of ['sampler_correction', 'truncated_importance_sampling'] as const)
    if (config[field] && !config.precalculate_logprobs)
      faults.push(fault([...loc, field], 'conflict', expected, config[field]));
  return faults;
}
