/** What settings of training contradict each other. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import type { ExperimentalConfig } from '../generated/request-types.ts';

/** The faults of settings that follow their schema, at `loc`. */
export function settingFaults(
  loc: readonly string[],
  config: NonNullable<ExperimentalConfig>,
): readonly ErrorDetail[] {
  const { ppo, objective, reward_weights, sampler_correction, truncated_importance_sampling } = config;
  const { sampler_correction_min: least, sampler_correction_max: most } = config;
  const at = (field: keyof typeof config, expected: string): ErrorDetail =>
    fault([...loc, field], 'conflict', expected, config[field]);
  const faults: ErrorDetail[] = [];
  if (ppo && objective && objective !== 'ppo')
    faults.push(at('objective', '"ppo" or nothing with ppo: true'));
  if (reward_weights && Object.keys(reward_weights).length === 0)
    faults.push(at('reward_weights', 'the name of a metric and its weight'));
  if (sampler_correction && truncated_importance_sampling)
    faults.push(at('sampler_correction', 'nothing with truncated_importance_sampling'));
  if (least != null && most != null && least > most)
    faults.push(at('sampler_correction_min', `at most sampler_correction_max, ${most}`));
  return faults;
}

/** Those of a job, which has to find its columns itself. */
export function jobSettingFaults(
  loc: readonly string[],
  config: NonNullable<ExperimentalConfig>,
): readonly ErrorDetail[] {
  const { sampler_correction, precalculate_logprobs } = config;
  const isUnknown = sampler_correction && !precalculate_logprobs;
  const expected = 'nothing without precalculate_logprobs: true';
  return [
    ...settingFaults(loc, config),
    ...(isUnknown ? [fault([...loc, 'sampler_correction'], 'conflict', expected, sampler_correction)] : []),
  ];
}
