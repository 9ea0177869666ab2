/** The request for a training job, and the settings of the algorithm. */
import { modelDefinitions } from './model.ts';
import { type Definitions, ref, type Schema } from './schema.ts';

function number(description: string, more: Schema = {}): Schema {
  return { description, type: ['number', 'null'], ...more };
}

function flag(isOn: boolean, description: string): Schema {
  return { description, type: ['boolean', 'null'], default: isOn };
}

/** A model's id in the requests that name one. */
export const modelId: Schema = {
  description: 'Id of the model.',
  type: 'string',
  pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  expected: 'a UUID',
  bounds: 'a UUID',
};

/** Definitions of the training job request. */
export const trainingJobDefinitions: Definitions = {
  TrainingJobRequest: {
    description: 'Trains a model on groups of trajectories: one step, one new checkpoint.',
    type: 'object',
    required: ['model_id', 'trajectory_groups'],
    properties: {
      model_id: modelId,
      trajectory_groups: {
        description: 'What is learnt from.',
        type: 'array',
        items: ref('TrajectoryGroup'),
      },
      experimental_config: { ...ref('ExperimentalConfig'), description: 'Settings of the algorithm.' },
    },
    additionalProperties: false,
  },
  JobListQuery: {
    description: 'Which page of the training jobs.',
    type: 'object',
    properties: {
      ...modelDefinitions['ListQuery']!.properties,
      model_id: { ...modelId, description: 'Only jobs of this model.', type: ['string', 'null'] },
      status: {
        description: 'Only jobs of this status.',
        enum: ['queued', 'running', 'completed', 'failed', 'cancelled', null],
      },
    },
    additionalProperties: false,
  },
  SftRequest: {
    description: 'Trains a model on given answers.',
    type: 'object',
    required: ['model_id', 'data'],
    properties: {
      model_id: modelId,
      data: {
        description: 'Conversations; their assistant turns are what is learned.',
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['messages'],
          properties: {
            messages: { description: 'The conversation.', type: 'array', minItems: 1, items: ref('Message') },
            tools: {
              description: 'Tools that the template shows.',
              type: ['array', 'null'],
              items: ref('Tool'),
            },
          },
          additionalProperties: false,
        },
      },
      config: { description: 'Settings.', type: ['object', 'null'], tsType: 'object | null' },
    },
    additionalProperties: false,
  },
  ExperimentalConfig: {
    description: 'Settings of the algorithm. Null stands for the default.',
    type: ['object', 'null'],
    properties: {
      advantage_balance: number(
        'Above 0 shrinks negative advantages, below 0 positive ones; 1 and -1 drop them.',
        { default: 0, minimum: -1, maximum: 1 },
      ),
      advantage_estimator: {
        description:
          'What a reward is compared with: the mean of its group, the mean of the others of its group, or the mean of the batch.',
        enum: ['group', 'leave_one_out', 'batch', null],
        default: 'group',
      },
      scale_rewards: flag(
        true,
        'Divides advantages by the standard deviation of the rewards they are compared with.',
      ),
      normalize_advantages: flag(true, 'Divides the advantages of a batch by their weighted mean size.'),
      normalize_by_length: flag(true, 'Gives long and short answers the same weight.'),
      loss_length: {
        description:
          'Divides the loss by this many tokens for each answer. Default: by the tokens there are.',
        type: ['integer', 'null'],
        minimum: 1,
      },
      overlong_length: {
        description: 'An answer of more tokens loses 1 of its reward. Default: none.',
        type: ['integer', 'null'],
        minimum: 1,
      },
      overlong_buffer: {
        description:
          'Tokens before `overlong_length` over which the reward falls. Default: a fifth of `overlong_length`.',
        type: ['integer', 'null'],
        minimum: 1,
      },
      epsilon: number('How far below 1 a probability ratio may go. Default 1, with `ppo` 0.2.', {
        minimum: 0,
      }),
      epsilon_high: number(
        'How far above 1 a probability ratio may go. Default 4, with `ppo` like `epsilon`.',
        {
          minimum: 0,
        },
      ),
      importance_sampling_level: {
        description: 'Whether probability ratios are of tokens, of sequences, or a mean of both.',
        enum: ['token', 'sequence', 'average', 'geometric_average', null],
        default: 'token',
      },
      mask_prob_ratio: flag(false, 'Drops tokens whose ratio is out of bounds instead of clipping it.'),
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
      preference_loss: {
        description:
          'Learns from preferences: `dpo` from groups of two, `kto` from trajectories whose reward is above 0 or not. Default: none.',
        enum: ['dpo', 'kto', null],
      },
      preference_beta: number('With `preference_loss`: how far the policy may leave the reference.', {
        default: 0.1,
        exclusiveMinimum: 0,
      }),
      kl_penalty_reference_step: {
        description: 'Checkpoint that is the reference. Default: the model without an adapter.',
        type: ['integer', 'null'],
        minimum: 0,
      },
      learning_rate: number('Size of a step.', { default: 5e-6, minimum: 0 }),
      packed_sequence_length: {
        description: 'Tokens of one packed row. Default: the longest sequence, rounded up.',
        type: ['integer', 'null'],
        minimum: 1,
      },
      gradient_accumulation_steps: {
        description: 'Packed rows of one optimizer step.',
        type: ['integer', 'null'],
        default: 1,
        minimum: 1,
      },
      allow_training_without_logprobs: flag(
        false,
        'Takes choices that carry no token ids or log-probabilities.',
      ),
    },
    additionalProperties: false,
  },
};
