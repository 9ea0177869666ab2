// Names of runs -> their settings and what docs/agents.md says of them.
import { algorithms } from '../../../dist/rl/public.js';

/** Name -> how its settings differ from the defaults, when to take it, and settings that it needs beside its own. */
const TEXTS = {
  defaults: ['clipped importance weights, advantages by group', 'first'],
  grpo: ['clipped objective of PPO. With a reference: `kl_loss_coef`', 'to compare with published results'],
  dr_grpo: [
    'as `grpo`, without division by standard deviation and length. Set `loss_length` to the maximum number of tokens of an answer',
    'wrong answers grow longer',
    { loss_length: 32 },
  ],
  dapo: [
    'as `grpo`, bounds 0.2 and 0.28, equal weight for all tokens. Long answers: `overlong_length`. Dynamic sampling: `refill` of [`trainLoop`](#a-loop)',
    '`loss/entropy` falls to 0; long answers',
  ],
  gspo: ['ratios of whole answers, bounds 3e-4 and 4e-4', 'models with experts, long answers'],
  rloo: [
    'rewards relative to the mean of the others; clipped importance weights',
    'one optimizer step per batch',
  ],
  reinforce_plus_plus: ['clipped objective, rewards relative to the batch', 'few attempts at a task'],
  cispo: ['the default objective, equal weight for all tokens', 'clipping removes too many tokens'],
  sapo: ["`objective: 'sapo'`", 'the same'],
  maxrl: ['as `grpo`, advantages in units of the mean reward', 'most attempts fail'],
  gdpo: [
    'as `grpo`. Set `reward_weights`',
    'several rewards of different scales',
    { reward_weights: { animal: 1, brief: 0.25 } },
  ],
  dppo: [
    "`objective: 'importance_sampling'`, both DPPO masks at 0.2, equal weight for all tokens",
    'old trajectories',
  ],
  icepop: [
    "as `grpo`, with `precalculate_logprobs` and `sampler_correction: 'token_mask'`",
    'single tokens of another server disagree',
  ],
};

/** Runs with trajectories of the newest step: name -> { differs, take, config }. */
export const ALGORITHMS = Object.fromEntries(
  ['defaults', ...Object.keys(algorithms)].map((name) => {
    const [differs, take, more] = TEXTS[name];
    return [name, { differs, take, config: { ...algorithms[name], ...more } }];
  }),
);

export const AGES = [0, 1, 4, 8];

/** Settings that weigh trajectories of older steps, by name. */
export const CORRECTIONS = {
  none: { precalculate_logprobs: true, truncated_importance_sampling: null },
  ratios: { precalculate_logprobs: false, truncated_importance_sampling: null },
  loop: { precalculate_logprobs: true, truncated_importance_sampling: 2 },
};

/** All runs: name -> options of `learn`. */
export const RUNS = {
  ...Object.fromEntries(Object.entries(ALGORITHMS).map(([name, { config }]) => [name, { config }])),
  ...Object.fromEntries(
    AGES.flatMap((maxStale) =>
      Object.entries(CORRECTIONS).map(([name, config]) => [staleName(maxStale, name), { maxStale, config }]),
    ),
  ),
};

/** The name of a run with older trajectories. */
export function staleName(age, correction) {
  return `stale-${age}-${correction}`;
}
