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
        'What a reward is compared with: the mean of its group, the mean of the others of its group, or the mean of the batch.',
        ['group', 'leave_one_out', 'batch', null],
        { default: 'group' },
      ),
      scale_rewards: flag(
        true,
        "Divides advantages by the standard deviation of the group's rewards; with the estimator `batch`, of the batch's.",
      ),
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
      precalculate_logprobs: flag(
        false,
        'Recomputes old log-probabilities with the weights at the start of the job.',
      ),
      truncated_importance_sampling: number(
        'With `precalculate_logprobs`: largest weight that corrects for the sampler. Default: none.',
        { exclusiveMinimum: 0 },
      ),
      variant_k2_tau: number('Pulls every token towards its old probability.', { default: 0, minimum: 0 }),
      kl_penalty_coef: number('Pulls the policy towards the reference policy.', { default: 0, minimum: 0 }),
      kl_loss_coef: number('Adds the divergence from the reference policy to the loss.', {
        default: 0,
        minimum: 0,
      }),
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
