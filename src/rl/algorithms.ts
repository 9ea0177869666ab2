/** Names of published algorithms -> the settings that make the trainer compute them. */
import type { ExperimentalConfig } from './settings.ts';

const CLIPPED = { ppo: true, normalize_advantages: false } as const satisfies ExperimentalConfig;

/**
 * Settings for `experimental_config`. Spread them before your own: `{ ...algorithms.dapo, learning_rate: 1e-5 }`. Each object has only the
 * settings that differ from the defaults.
 */
export const algorithms = {
  /** arXiv:2402.03300. The divergence from the reference is off, as is usual today. Add `kl_loss_coef` to turn it on. */
  grpo: CLIPPED,
  /** arXiv:2503.20783: no division by standard deviation or length. Set `loss_length` to the maximum number of tokens of an answer. */
  dr_grpo: { ...CLIPPED, scale_rewards: false, normalize_by_length: false },
  /**
   * arXiv:2503.14476: a wider upper clip bound, equal weight for all tokens. Add `overlong_length` for its shaping of long answers, and
   * `refill` of `trainLoop` for its dynamic sampling.
   */
  dapo: { ...CLIPPED, epsilon: 0.2, epsilon_high: 0.28, normalize_by_length: false },
  /** arXiv:2507.18071: ratios per answer instead of per token. */
  gspo: { ...CLIPPED, importance_sampling_level: 'sequence', epsilon: 3e-4, epsilon_high: 4e-4 },
  /** arXiv:2402.14740: each reward is relative to the mean of the others. */
  rloo: {
    advantage_estimator: 'leave_one_out',
    scale_rewards: false,
    normalize_advantages: false,
    normalize_by_length: false,
  },
  /** arXiv:2501.03262: rewards are relative to the batch. */
  reinforce_plus_plus: { ...CLIPPED, advantage_estimator: 'batch', normalize_by_length: false },
  /** arXiv:2506.13585: clipped importance weights, equal weight for all tokens. */
  cispo: { normalize_by_length: false },
  /** arXiv:2511.20347: a soft gate on the ratio, in place of clipping. */
  sapo: { objective: 'sapo', normalize_advantages: false },
  /** arXiv:2602.02710: rewards of at least 0 are divided by their group's mean, so that hard tasks count more. */
  maxrl: { ...CLIPPED, advantage_estimator: 'maxrl' },
  /** arXiv:2601.05242: several rewards, each normalized separately. Set `reward_weights`. */
  gdpo: CLIPPED,
  /** arXiv:2602.04879: plain ratios; tokens whose probability moved too far from the sampler's do not move further. */
  dppo: {
    objective: 'importance_sampling',
    dppo_mask_low: 0.2,
    dppo_mask_high: 0.2,
    normalize_advantages: false,
    normalize_by_length: false,
  },
  /** Ling team, 2025: tokens on which trainer and sampler disagree are masked. */
  icepop: { ...CLIPPED, precalculate_logprobs: true, sampler_correction: 'token_mask' },
} as const satisfies Record<string, ExperimentalConfig>;
