/** The request for a training job, and the settings of the algorithm. */
import { modelDefinitions } from './model.ts';
import * as s from './schema.ts';

/** Tokens of one packed row. At least two, as a single token has nothing to predict. */
const packed_sequence_length: s.Schema = s.integerOrNull(
  'Tokens of one packed row. Default: the longest sequence, rounded up.',
  { minimum: 2 },
);

/** The largest 32-bit float, rounded down. */
export const FLOAT_MAX = 3e38;

/** The id of a model in requests that refer to one. */
export const modelId: s.Schema = s.string('Id of the model.', {
  pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  expected: 'a UUID',
  bounds: 'a UUID',
});

/** Weights of the loss on observation tokens. The name of the field is a role. */
const observation_weights: s.Schema = s.objectOrNull(
  'Also learns to predict the messages of these roles that follow a choice: the mean cross-entropy of their tokens, times this weight. Default: none.',
  Object.fromEntries(
    ['tool', 'user', 'system', 'developer', 'assistant'].map((role) => [
      role,
      s.numberOrNull(`Weight of messages of the role \`${role}\`.`, { minimum: 0, maximum: FLOAT_MAX }),
    ]),
  ),
);

export const trainingJobDefinitions: s.Definitions = {
  TrainingJobRequest: s.object(
    'Trains a model on groups of trajectories: one step, one new checkpoint.',
    ['model_id', 'trajectory_groups'],
    {
      model_id: modelId,
      trajectory_groups: s.list('The trajectories to learn from.', s.ref('TrajectoryGroup')),
      experimental_config: s.ref('ExperimentalConfig', 'Settings of the algorithm.'),
    },
  ),
  JobListQuery: s.object('Which page of the training jobs.', [], {
    ...modelDefinitions['ListQuery']!.properties,
    model_id: { ...modelId, description: 'Only jobs of this model.', type: ['string', 'null'] },
    status: s.oneOf('Only jobs of this status.', [
      'queued',
      'running',
      'completed',
      'failed',
      'cancelled',
      null,
    ]),
  }),
  SftRequest: s.object('Trains a model on given answers.', ['model_id', 'data'], {
    model_id: modelId,
    data: s.list(
      'Conversations; their assistant turns are what is learned.',
      {
        type: 'object',
        required: ['messages'],
        properties: {
          messages: s.list('The conversation.', s.ref('Message'), { minItems: 1 }),
          tools: s.listOrNull('Tools that the template shows.', s.ref('Tool')),
        },
        additionalProperties: false,
      },
      { minItems: 1 },
    ),
    config: s.ref('SftConfig', 'Settings.'),
  }),
  SftConfig: s.object(
    'Settings of supervised training. Null stands for the default.',
    [],
    {
      batch_size: s.integerOrNull('Examples per optimizer step.', { default: 8, minimum: 1 }),
      epochs: s.integerOrNull('Passes over the data.', { default: 1, minimum: 1 }),
      learning_rate: s.numberOrNull('The highest rate.', { default: 2e-4, minimum: 0, maximum: FLOAT_MAX }),
      schedule: s.oneOf(
        'How the rate falls after the warm-up: not, or to 0 along a line or half a cosine.',
        ['constant', 'linear', 'cosine', null],
        { default: 'cosine' },
      ),
      warmup_ratio: s.numberOrNull('Share of the steps over which the rate rises from 0.', {
        default: 0.03,
        minimum: 0,
        maximum: 1,
      }),
      assistant_turns: s.oneOf('Learns every assistant turn, or only the last.', ['all', 'last', null], {
        default: 'all',
      }),
      packed_sequence_length,
    },
    { title: 'config', type: ['object', 'null'] },
  ),
  ExperimentalConfig: s.object(
    'Settings of the algorithm. Null stands for the default.',
    [],
    {
      advantage_balance: s.numberOrNull(
        'Above 0 shrinks negative advantages, below 0 positive ones; 1 and -1 drop them.',
        { default: 0, minimum: -1, maximum: 1 },
      ),
      advantage_estimator: s.oneOf(
        'What a reward is compared with: the mean of its group, the mean of the others of its group, the mean of the batch, the mean of its group, in units of that mean (for rewards from 0), or nothing: it is the advantage, undivided.',
        ['group', 'leave_one_out', 'batch', 'maxrl', 'none', null],
        { default: 'group' },
      ),
      scale_rewards: s.flagOrNull(
        true,
        "Divides advantages by the standard deviation of the group's rewards; with the estimator `batch`, of the batch's.",
      ),
      reward_weights: {
        description:
          'Weights of several rewards, by their names in `metrics` of every trajectory. Each reward gets its own advantage. Default: `reward` alone.',
        type: ['object', 'null'],
        additionalProperties: { type: 'number' },
        tsType: 'Readonly<Record<string, number>> | null',
        bounds: 'at least one name',
      },
      normalize_advantages: s.flagOrNull(
        true,
        'Divides advantages by their mean magnitude over the trajectories of the batch, regardless of length, after `advantage_balance`.',
      ),
      normalize_by_length: s.flagOrNull(true, 'Gives long and short answers the same weight.'),
      loss_length: s.integerOrNull(
        'Divides the loss by this many tokens for each answer. Default: by the actual number.',
        { minimum: 1 },
      ),
      overlong_length: s.integerOrNull('An answer of more tokens loses 1 of its reward. Default: none.', {
        minimum: 1,
      }),
      overlong_buffer: s.integerOrNull(
        'Tokens before `overlong_length` over which the reward falls. Default: a fifth of `overlong_length`.',
        { minimum: 1 },
      ),
      epsilon: s.numberOrNull('How far below 1 a probability ratio may go. Default 1, with `ppo` 0.2.', {
        minimum: 0,
      }),
      epsilon_high: s.numberOrNull(
        'How far above 1 a probability ratio may go. Default 4, with `ppo` like `epsilon`.',
        { minimum: 0 },
      ),
      importance_sampling_level: s.oneOf(
        'Whether probability ratios are of tokens, of sequences, or a mean of both.',
        ['token', 'sequence', 'average', 'geometric_average', null],
        { default: 'token' },
      ),
      mask_prob_ratio: s.flagOrNull(
        false,
        'A ratio out of bounds counts as 0 before it is clipped: with `ppo` its token has no gradient, else the weight 1 - `epsilon`.',
      ),
      max_negative_advantage_importance_sampling_weight: s.numberOrNull('Largest ratio. Default: none.', {
        exclusiveMinimum: 0,
      }),
      ppo: s.flagOrNull(false, 'The clipped objective of PPO instead of clipped importance weights.'),
      objective: s.oneOf(
        'What is minimized for a token: clipped importance weights, the clipped objective of PPO, a soft gate on the ratio, the plain ratio, or log-probabilities with a quadratic pull to the sampler. Default `cispo`, with `ppo` `ppo`.',
        ['cispo', 'ppo', 'sapo', 'importance_sampling', 'dro', null],
      ),
      loss_fn: s.oneOf('Of ART: `objective`, by the name that it has there.', ['cispo', 'ppo', null]),
      sapo_temperature_pos: s.numberOrNull('With `sapo`: how steep the gate is for advantages above 0.', {
        default: 1,
        exclusiveMinimum: 0,
      }),
      sapo_temperature_neg: s.numberOrNull('With `sapo`: how steep the gate is for other advantages.', {
        default: 1.05,
        exclusiveMinimum: 0,
      }),
      dro_beta: s.numberOrNull('With `dro`: the pull to the sampler.', { default: 0.05, minimum: 0 }),
      dual_clip: s.numberOrNull('Largest ratio of a token with a negative advantage. Default: none.', {
        exclusiveMinimum: 1,
      }),
      dppo_mask_low: s.numberOrNull(
        "A token with a negative advantage counts 0 if its probability is this much below the sampler's. Default: never.",
        { minimum: 0 },
      ),
      dppo_mask_high: s.numberOrNull(
        "A token with a positive advantage counts 0 if its probability is this much above the sampler's. Default: never.",
        { minimum: 0 },
      ),
      ipo_mask: s.numberOrNull(
        "A token counts 0 if its probability is further than this from the sampler's, whatever its advantage. Default: never.",
        { minimum: 0 },
      ),
      off_policy_mask_threshold: s.numberOrNull(
        'An answer with a negative advantage counts 0 if the sampler found its tokens likelier than the policy by more than this, as a mean of log-probabilities. Default: never.',
        { minimum: 0 },
      ),
      top_entropy_quantile: s.numberOrNull(
        "Share of a row's tokens that count: those with the highest entropy.",
        {
          default: 1,
          minimum: 0,
          maximum: 1,
        },
      ),
      entropy_advantage_coef: s.numberOrNull("Adds a token's entropy times this to its advantage.", {
        default: 0,
        minimum: 0,
      }),
      entropy_advantage_kappa: s.numberOrNull(
        'That bonus is at most the size of the advantage divided by this.',
        {
          default: 2,
          exclusiveMinimum: 1,
        },
      ),
      mask_truncated: s.flagOrNull(
        false,
        'An attempt with an answer that was cut off at its token limit is not trained on.',
      ),
      routing: s.oneOf(
        'In models with experts: whether tokens use the experts that the trainer chooses (`own`), or those that they used when they were sampled (`replay`).',
        ['own', 'replay', null],
        { default: 'own' },
      ),
      sampling_temperature: s.numberOrNull(
        'Temperature at which the tokens of choices without `sampling_params.temperature` were sampled. Default: the value in the model, otherwise 1.',
        { exclusiveMinimum: 0, maximum: FLOAT_MAX },
      ),
      sampler_logprobs: s.oneOf(
        'Whether log-probabilities of choices are of the model itself (`raw`) or of the distribution that was sampled (`processed`).',
        ['raw', 'processed', null],
        { default: 'raw' },
      ),
      truncated_sampling: s.oneOf(
        'Whether choices that were sampled with `top_p`, `top_k` or `min_p` are trained on as if all tokens had been possible (`accept`), or are an error (`refuse`).',
        ['accept', 'refuse', null],
        { default: 'accept' },
      ),
      precalculate_logprobs: s.flagOrNull(
        false,
        'Recomputes old log-probabilities with the weights at the start of the job.',
      ),
      truncated_importance_sampling: s.numberOrNull(
        'With `precalculate_logprobs`: largest weight that corrects for the sampler. Default: none.',
        { exclusiveMinimum: 0 },
      ),
      sampler_correction: s.oneOf(
        'With `precalculate_logprobs`: weighs tokens by how much likelier the trainer finds them than the sampler did; a token, a sequence or its mean out of bounds counts 0 (mask) or the bound (cap). Default: none.',
        ['token_mask', 'sequence_mask', 'sequence_cap', 'sequence_mean_mask', 'sequence_mean_cap', null],
      ),
      sampler_correction_min: s.numberOrNull(
        'With `sampler_correction`: lower bound of a mask. Default 0.5 for `token_mask`, else 0.',
        { minimum: 0 },
      ),
      sampler_correction_max: s.numberOrNull(
        'With `sampler_correction`: upper bound. Default 5 for `token_mask`, else 3.',
        { exclusiveMinimum: 0 },
      ),
      variant_k2_tau: s.numberOrNull('Pulls every token towards its old probability.', {
        default: 0,
        minimum: 0,
      }),
      kl_penalty_coef: s.numberOrNull('Pulls the policy towards the reference policy.', {
        default: 0,
        minimum: 0,
      }),
      kl_penalty_source: s.oneOf(
        'Whose distance from the reference policy `kl_penalty_coef` penalizes: that of the weights being trained, or of those that sampled.',
        ['current_learner', 'sample', null],
        { default: 'current_learner' },
      ),
      kl_penalty_step_lag: s.integerOrNull(
        'The reference is the checkpoint this many steps before the newest one when the job is submitted, or the model without an adapter. Default: `kl_penalty_reference_step`.',
        { minimum: 1 },
      ),
      kl_ref_adapter_path: s.refused(
        'a reference is a checkpoint of the model, by its step: `kl_penalty_reference_step`',
        'ART',
      ),
      kl_loss_coef: s.numberOrNull('Adds the divergence from the reference policy to the loss.', {
        default: 0,
        minimum: 0,
      }),
      kl_loss_unbiased: s.flagOrNull(
        false,
        "Weighs that divergence by each token's ratio of probabilities, which makes its gradient that of the divergence.",
      ),
      preference_loss: s.oneOf(
        'Learns from preferences: `dpo` from groups of two, `kto` from trajectories whose reward is above 0 or not. Default: none.',
        ['dpo', 'kto', null],
      ),
      preference_beta: s.numberOrNull(
        'With `preference_loss`: how far the policy may move from the reference.',
        {
          default: 0.1,
          exclusiveMinimum: 0,
        },
      ),
      observation_weights,
      kl_penalty_reference_step: s.integerOrNull(
        'Checkpoint used as the reference. Default: the model without an adapter.',
        { minimum: 0 },
      ),
      learning_rate: s.numberOrNull(
        'Size of a step. The default suits adapters of models with billions of weights; small models take more.',
        {
          default: 1e-4,
          minimum: 0,
          maximum: FLOAT_MAX,
        },
      ),
      num_trajectories_learning_rate_multiplier_power: s.numberOrNull(
        'Multiplies the learning rate of an optimizer step by the number of its sequences to this power.',
        { default: 0, minimum: -FLOAT_MAX, maximum: FLOAT_MAX },
      ),
      scale_learning_rate_by_reward_std_dev: {
        description:
          'Of ART; true is refused: the rate would follow rewards of earlier steps, which a job does not have. Set `learning_rate`.',
        enum: [false, null],
        tsType: 'false | null',
        expected: 'false or no value: a job has no rewards of earlier steps; set learning_rate',
      },
      logprob_calculation_chunk_size: s.integerOrNull('Accepted from ART clients; no effect.', {
        minimum: 1,
      }),
      packed_sequence_length,
      gradient_accumulation_steps: s.integerOrNull('Packed rows of one optimizer step.', {
        default: 1,
        minimum: 1,
      }),
      allow_training_without_logprobs: s.flagOrNull(
        false,
        'Accepts choices without token ids or log-probabilities.',
      ),
    },
    { title: 'experimental_config', type: ['object', 'null'] },
  ),
};
