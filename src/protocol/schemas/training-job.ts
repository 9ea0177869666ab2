/** The request for a training job, and the settings of the algorithm. */
import { modelDefinitions } from './model.ts';
import {
  type Definitions,
  list,
  listOrNull,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  string,
} from './schema.ts';

function number(description: string, more: Schema = {}): Schema {
  return { description, type: ['number', 'null'], ...more };
}

function flag(isOn: boolean, description: string): Schema {
  return { description, type: ['boolean', 'null'], default: isOn };
}

/** Tokens of one packed row: one token alone has nothing to predict. */
const packed_sequence_length: Schema = orNull(
  'integer',
  'Tokens of one packed row. Default: the longest sequence, rounded up.',
  { minimum: 2 },
);

/** The largest number that 32 bits hold, rounded down. */
export const FLOAT_MAX = 3e38;

/** A model's id in the requests that name one. */
export const modelId: Schema = string('Id of the model.', {
  pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  expected: 'a UUID',
  bounds: 'a UUID',
});

/** Definitions of the training job request. */
export const trainingJobDefinitions: Definitions = {
  TrainingJobRequest: object(
    'Trains a model on groups of trajectories: one step, one new checkpoint.',
    ['model_id', 'trajectory_groups'],
    {
      model_id: modelId,
      trajectory_groups: list('What is learnt from.', ref('TrajectoryGroup')),
      experimental_config: ref('ExperimentalConfig', 'Settings of the algorithm.'),
    },
  ),
  JobListQuery: object('Which page of the training jobs.', [], {
    ...modelDefinitions['ListQuery']!.properties,
    model_id: { ...modelId, description: 'Only jobs of this model.', type: ['string', 'null'] },
    status: oneOf('Only jobs of this status.', [
      'queued',
      'running',
      'completed',
      'failed',
      'cancelled',
      null,
    ]),
  }),
  SftRequest: object('Trains a model on given answers.', ['model_id', 'data'], {
    model_id: modelId,
    data: list(
      'Conversations; their assistant turns are what is learned.',
      {
        type: 'object',
        required: ['messages'],
        properties: {
          messages: list('The conversation.', ref('Message'), { minItems: 1 }),
          tools: listOrNull('Tools that the template shows.', ref('Tool')),
        },
        additionalProperties: false,
      },
      { minItems: 1 },
    ),
    config: ref('SftConfig', 'Settings.'),
  }),
  SftConfig: object(
    'Settings of supervised training. Null stands for the default.',
    [],
    {
      batch_size: orNull('integer', 'Examples per optimizer step.', { default: 8, minimum: 1 }),
      epochs: orNull('integer', 'Passes over the data.', { default: 1, minimum: 1 }),
      learning_rate: number('The highest rate.', { default: 2e-4, minimum: 0, maximum: FLOAT_MAX }),
      schedule: oneOf(
        'How the rate falls after the warm-up: not, or to 0 along a line or half a cosine.',
        ['constant', 'linear', 'cosine', null],
        { default: 'cosine' },
      ),
      warmup_ratio: number('Share of the steps over which the rate rises from 0.', {
        default: 0.03,
        minimum: 0,
        maximum: 1,
      }),
      assistant_turns: oneOf('Learns every assistant turn, or only the last.', ['all', 'last', null], {
        default: 'all',
      }),
      packed_sequence_length,
    },
    { title: 'config', type: ['object', 'null'] },
  ),
  ExperimentalConfig: object(
    'Settings of the algorithm. Null stands for the default.',
    [],
    {
      advantage_balance: number(
        'Above 0 shrinks negative advantages, below 0 positive ones; 1 and -1 drop them.',
        { default: 0, minimum: -1, maximum: 1 },
      ),
      advantage_estimator: oneOf(
        'What a reward is compared with: the mean of its group, the mean of the others of its group, the mean of the batch, or the mean of its group, in units of that mean (for rewards from 0).',
        ['group', 'leave_one_out', 'batch', 'maxrl', null],
        { default: 'group' },
      ),
      scale_rewards: flag(
        true,
        "Divides advantages by the standard deviation of the group's rewards; with the estimator `batch`, of the batch's.",
      ),
      reward_weights: {
        description:
          'Rewards that are compared each for itself, by the names that `metrics` of every trajectory has, and the weight of each advantage. Default: `reward` alone.',
        type: ['object', 'null'],
        additionalProperties: { type: 'number' },
        tsType: 'Readonly<Record<string, number>> | null',
        bounds: 'at least one name',
      },
      normalize_advantages: flag(
        true,
        'Divides advantages by the mean of their size, after `advantage_balance`, over the trajectories of the batch, long and short ones alike.',
      ),
      normalize_by_length: flag(true, 'Gives long and short answers the same weight.'),
      loss_length: orNull(
        'integer',
        'Divides the loss by this many tokens for each answer. Default: by the tokens there are.',
        { minimum: 1 },
      ),
      overlong_length: orNull('integer', 'An answer of more tokens loses 1 of its reward. Default: none.', {
        minimum: 1,
      }),
      overlong_buffer: orNull(
        'integer',
        'Tokens before `overlong_length` over which the reward falls. Default: a fifth of `overlong_length`.',
        { minimum: 1 },
      ),
      epsilon: number('How far below 1 a probability ratio may go. Default 1, with `ppo` 0.2.', {
        minimum: 0,
      }),
      epsilon_high: number(
        'How far above 1 a probability ratio may go. Default 4, with `ppo` like `epsilon`.',
        {
          minimum: 0,
        },
      ),
      importance_sampling_level: oneOf(
        'Whether probability ratios are of tokens, of sequences, or a mean of both.',
        ['token', 'sequence', 'average', 'geometric_average', null],
        { default: 'token' },
      ),
      mask_prob_ratio: flag(
        false,
        'A ratio out of bounds counts as 0 before it is clipped: with `ppo` its token has no gradient, else the weight 1 - `epsilon`.',
      ),
      max_negative_advantage_importance_sampling_weight: number('Largest ratio. Default: none.', {
        exclusiveMinimum: 0,
      }),
      ppo: flag(false, 'The clipped objective of PPO instead of clipped importance weights.'),
      objective: oneOf(
        'What is minimized for a token: clipped importance weights, the clipped objective of PPO, a soft gate on the ratio, the plain ratio, or log-probabilities with a quadratic pull to the sampler. Default `cispo`, with `ppo` `ppo`.',
        ['cispo', 'ppo', 'sapo', 'importance_sampling', 'dro', null],
      ),
      sapo_temperature_pos: number('With `sapo`: how steep the gate is for advantages above 0.', {
        default: 1,
        exclusiveMinimum: 0,
      }),
      sapo_temperature_neg: number('With `sapo`: how steep the gate is for other advantages.', {
        default: 1.05,
        exclusiveMinimum: 0,
      }),
      dro_beta: number('With `dro`: the pull to the sampler.', { default: 0.05, minimum: 0 }),
      dual_clip: number('Largest ratio of a token with a negative advantage. Default: none.', {
        exclusiveMinimum: 1,
      }),
      dppo_mask_low: number(
        "A token with a negative advantage counts 0 where its probability is this much below the sampler's. Default: never.",
        { minimum: 0 },
      ),
      dppo_mask_high: number(
        "A token with a positive advantage counts 0 where its probability is this much above the sampler's. Default: never.",
        { minimum: 0 },
      ),
      off_policy_mask_threshold: number(
        'An answer with a negative advantage counts 0 where the sampler found its tokens likelier than the policy by more than this, as a mean of log-probabilities. Default: never.',
        { minimum: 0 },
      ),
      top_entropy_quantile: number("Share of a row's tokens that count: those with the highest entropy.", {
        default: 1,
        minimum: 0,
        maximum: 1,
      }),
      entropy_advantage_coef: number("Adds a token's entropy times this to its advantage.", {
        default: 0,
        minimum: 0,
      }),
      entropy_advantage_kappa: number('That bonus is at most the size of the advantage divided by this.', {
        default: 2,
        exclusiveMinimum: 1,
      }),
      mask_truncated: flag(false, 'An attempt with an answer that was cut for its length trains nothing.'),
      routing: oneOf(
        'Whether tokens of a model with experts take those that the trainer chooses (`own`), or those that they took when they were sampled (`replay`).',
        ['own', 'replay', null],
        { default: 'own' },
      ),
      precalculate_logprobs: flag(
        false,
        'Recomputes old log-probabilities with the weights at the start of the job.',
      ),
      truncated_importance_sampling: number(
        'With `precalculate_logprobs`: largest weight that corrects for the sampler. Default: none.',
        { exclusiveMinimum: 0 },
      ),
      sampler_correction: oneOf(
        'With `precalculate_logprobs`: weighs tokens by how much likelier the trainer finds them than the sampler did; a token, a sequence or its mean out of bounds counts 0 (mask) or the bound (cap). Default: none.',
        ['token_mask', 'sequence_mask', 'sequence_cap', 'sequence_mean_mask', 'sequence_mean_cap', null],
      ),
      sampler_correction_min: number(
        'With `sampler_correction`: lower bound of a mask. Default 0.5 for `token_mask`, else 0.',
        { minimum: 0 },
      ),
      sampler_correction_max: number(
        'With `sampler_correction`: upper bound. Default 5 for `token_mask`, else 3.',
        { exclusiveMinimum: 0 },
      ),
      variant_k2_tau: number('Pulls every token towards its old probability.', { default: 0, minimum: 0 }),
      kl_penalty_coef: number('Pulls the policy towards the reference policy.', { default: 0, minimum: 0 }),
      kl_loss_coef: number('Adds the divergence from the reference policy to the loss.', {
        default: 0,
        minimum: 0,
      }),
      kl_loss_unbiased: flag(
        false,
        "Weighs that divergence by each token's ratio of probabilities, which makes its gradient that of the divergence.",
      ),
      preference_loss: oneOf(
        'Learns from preferences: `dpo` from groups of two, `kto` from trajectories whose reward is above 0 or not. Default: none.',
        ['dpo', 'kto', null],
      ),
      preference_beta: number('With `preference_loss`: how far the policy may leave the reference.', {
        default: 0.1,
        exclusiveMinimum: 0,
      }),
      kl_penalty_reference_step: orNull(
        'integer',
        'Checkpoint that is the reference. Default: the model without an adapter.',
        { minimum: 0 },
      ),
      learning_rate: number('Size of a step.', { default: 5e-6, minimum: 0, maximum: FLOAT_MAX }),
      packed_sequence_length,
      gradient_accumulation_steps: orNull('integer', 'Packed rows of one optimizer step.', {
        default: 1,
        minimum: 1,
      }),
      allow_training_without_logprobs: flag(
        false,
        'Takes choices that carry no token ids or log-probabilities.',
      ),
    },
    { title: 'experimental_config', type: ['object', 'null'] },
  ),
};
