/** Training jobs, logs, models, checkpoints, pages: what they accept and refuse. */
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import {
  checkListQuery,
  checkLogRequest,
  checkModelCreateRequest,
  checkOf,
  checkTrainingJobRequest,
  type ValidationOptions,
} from '../../src/protocol/index.ts';

const model_id = '0f8fad5b-d9cb-469f-a165-70867728950e';
const choice = {
  index: 0,
  message: { role: 'assistant', content: 'a', tool_calls: [], provider_field: 1 },
  finish_reason: 'stop',
  logprobs: {
    content: [
      { token: 'token_id:5', logprob: -0.5, bytes: [97], top_logprobs: [] },
      { token: 'b', logprob: null },
    ],
  },
  token_ids: [5],
  prompt_token_ids: [1, 2],
  extra: true,
};
const trajectory = {
  messages_and_choices: [{ role: 'user', content: 'Hi' }, choice],
  reward: 0.5,
  tools: null,
  additional_histories: [{ messages_and_choices: [choice] }],
  initial_policy_version: 0,
  final_policy_version: null,
  metrics: { right: true, tries: 2 },
  auto_metrics: {},
  metadata: { source: ['a'] },
  logs: ['line'],
  start_time: '2026-01-31T12:30:00.123456+01:00',
};
const job = {
  model_id,
  trajectory_groups: [{ trajectories: [trajectory] }],
  experimental_config: { epsilon: 0.2 },
};

function messages(
  check: (input: unknown, options?: ValidationOptions) => unknown,
  input: unknown,
  options?: ValidationOptions,
): string[] {
  try {
    check(input, options);
    return [];
  } catch (error) {
    if (!(error instanceof OnpolicyError)) throw error;
    return error.detail!.map(({ msg }) => msg);
  }
}

const withTrajectory = (fields: object): unknown => ({
  model_id,
  trajectory_groups: [{ trajectories: [{ ...trajectory, ...fields }] }],
});

describe('a training job', () => {
  it('is taken as it is', () => {
    expect(checkTrainingJobRequest(job)).toBe(job);
    expect(messages(checkTrainingJobRequest, { model_id, trajectory_groups: [] })).toEqual([]);
    expect(messages(checkTrainingJobRequest, { ...job, experimental_config: null })).toEqual([]);
    for (const start_time of ['2026-01-31', '2026-01-31 12:30', '2026-01-31T12:30:00Z', null])
      expect(messages(checkTrainingJobRequest, withTrajectory({ start_time }))).toEqual([]);
  });

  it.each<[string, unknown, string[]]>([
    [
      'nothing',
      {},
      [
        'model_id: this field is required, got nothing',
        'trajectory_groups: this field is required, got nothing',
      ],
    ],
    ['another id', { ...job, model_id: 'my-model' }, ['model_id: expected a UUID, got "my-model"']],
    [
      'a group that is none',
      { ...job, trajectory_groups: [trajectory] },
      [
        'trajectory_groups.0.messages_and_choices: not a field of trajectory_groups.0',
        'trajectory_groups.0.reward: not a field of trajectory_groups.0',
        'trajectory_groups.0.tools: not a field of trajectory_groups.0',
        'trajectory_groups.0.additional_histories: not a field of trajectory_groups.0',
        'trajectory_groups.0.initial_policy_version: not a field of trajectory_groups.0',
        'trajectory_groups.0.final_policy_version: not a field of trajectory_groups.0',
        'trajectory_groups.0.metrics: not a field of trajectory_groups.0',
        'trajectory_groups.0.auto_metrics: not a field of trajectory_groups.0',
        'trajectory_groups.0.metadata: not a field of trajectory_groups.0',
        'trajectory_groups.0.logs: not a field of trajectory_groups.0',
        'trajectory_groups.0.start_time: not a field of trajectory_groups.0',
        'trajectory_groups.0.trajectories: this field is required, got nothing',
      ],
    ],
  ])('refuses %s', (_, input, expected) => {
    expect(messages(checkTrainingJobRequest, input).sort()).toEqual(expected.sort());
  });

  it.each<[string, object, string]>([
    ['reward', { reward: undefined }, 'reward: this field is required, got nothing'],
    ['reward', { reward: Number.NaN }, 'reward: expected a number, got NaN'],
    ['reward', { reward: '1' }, 'reward: expected a number, got "1"'],
    [
      'start_time',
      { start_time: 'today' },
      'start_time: expected a date and time as ISO 8601 writes them, or null, got "today"',
    ],
    ['metrics', { metrics: { a: Number.NaN } }, 'metrics.a: expected a finite number, got NaN'],
    ['metadata', { metadata: { a: new Map() } }, 'metadata.a: expected JSON data, got a value of type Map'],
    ['logs', { logs: 'x' }, 'logs: expected a list or null, got "x"'],
    [
      'final_policy_version',
      { final_policy_version: -1 },
      'final_policy_version: expected an integer >= 0 or null, got -1',
    ],
    [
      'message',
      { messages_and_choices: [{ content: 'a' }] },
      'messages_and_choices.0.role: this field is required, got nothing',
    ],
    [
      'choice',
      { messages_and_choices: [{ ...choice, token_ids: ['5'] }] },
      'messages_and_choices.0.token_ids.0: expected an integer >= 0, got "5"',
    ],
    [
      'log-probability above 0',
      { messages_and_choices: [{ ...choice, logprobs: { content: [{ token: 'b', logprob: 0.5 }] } }] },
      'messages_and_choices.0.logprobs.content.0.logprob: expected a number <= 0.001 or null, got 0.5',
    ],
    [
      'choice',
      { messages_and_choices: [{ ...choice, message: {} }] },
      'messages_and_choices.0.message.role: this field is required, got nothing',
    ],
    [
      'logprobs',
      { messages_and_choices: [{ ...choice, logprobs: { content: [{ logprob: 'x' }] } }] },
      'messages_and_choices.0.logprobs.content.0.logprob: expected a number <= 0.001 or null, got "x"',
    ],
    [
      'history',
      { additional_histories: [{}] },
      'additional_histories.0.messages_and_choices: this field is required, got nothing',
    ],
  ])('refuses a wrong %s', (_, fields, expected) => {
    expect(messages(checkTrainingJobRequest, withTrajectory(fields))).toEqual([
      `trajectory_groups.0.trajectories.0.${expected}`,
    ]);
  });

  it.each<[string, readonly unknown[], readonly unknown[]]>([
    ['advantage_balance', [-1, 0, 1, null], [-1.1, 1.1, '0']],
    ['scale_rewards', [true, false, null], [1]],
    ['normalize_advantages', [true], ['true']],
    ['normalize_by_length', [false], [0]],
    ['epsilon', [0, 0.2], [-0.1]],
    ['epsilon_high', [0, 4], [-1, Number.POSITIVE_INFINITY]],
    ['importance_sampling_level', ['token', 'sequence', 'average', 'geometric_average', null], ['word', 1]],
    ['mask_prob_ratio', [true], ['no']],
    ['max_negative_advantage_importance_sampling_weight', [0.5, null], [0]],
    ['ppo', [true], [1]],
    ['precalculate_logprobs', [true], [[]]],
    ['truncated_importance_sampling', [null], [0]],
    ['variant_k2_tau', [0, 1], [-1]],
    ['kl_penalty_coef', [0, 0.1], [-1]],
    ['kl_penalty_reference_step', [0, 3, null], [-1, 0.5]],
    ['advantage_estimator', ['group', 'leave_one_out', 'batch', 'maxrl', 'none', null], ['best']],
    ['loss_fn', ['cispo', 'ppo', null], ['dro', true]],
    ['kl_penalty_source', ['current_learner', 'sample', null], ['reference', 1]],
    ['kl_penalty_step_lag', [1, 5, null], [0, -1, '1']],
    ['kl_ref_adapter_path', [null], ['/tmp/adapter', 1]],
    ['num_trajectories_learning_rate_multiplier_power', [0, 0.5, -1, null], ['1', true]],
    ['scale_learning_rate_by_reward_std_dev', [false, null], [true, 0]],
    ['logprob_calculation_chunk_size', [512, null], [0, 'x']],
    ['reward_weights', [{ right: 1, form: -0.5 }, null], [1, { right: 'x' }, { right: null }]],
    ['objective', ['cispo', 'ppo', 'sapo', 'importance_sampling', 'dro', null], ['grpo', true]],
    ['sapo_temperature_pos', [1, 0.1], [0, -1]],
    ['sapo_temperature_neg', [1.05, null], [0, '1']],
    ['dro_beta', [0, 0.05], [-1]],
    ['dual_clip', [3, 1.1, null], [1, 0]],
    ['ipo_mask', [0, 0.3, null], [-0.1, 'x']],
    ['dppo_mask_low', [0, 0.2, null], [-0.1]],
    ['dppo_mask_high', [0, 0.2, null], [-0.1]],
    ['off_policy_mask_threshold', [0, 1, null], [-1, true]],
    ['top_entropy_quantile', [0, 0.2, 1], [-0.1, 1.1]],
    ['entropy_advantage_coef', [0, 0.4], [-1]],
    ['entropy_advantage_kappa', [2, null], [1, 0]],
    ['mask_truncated', [true, null], ['length']],
    [
      'observation_weights',
      [{ tool: 0.1, user: 0 }, { system: null }, {}, null],
      [0.1, { tool: -1 }, { tool: 'x' }],
    ],
    ['kl_loss_unbiased', [true], [1]],
    ['sampler_correction_min', [0, 0.5], [-1]],
    ['sampler_correction_max', [5, 0.5], [0]],
    ['sampler_correction', [null], ['token', true]],
    ['learning_rate', [0, 1e-5], [-1, 'x']],
    ['packed_sequence_length', [2, null], [1]],
    ['gradient_accumulation_steps', [1, 8], [0]],
    ['allow_training_without_logprobs', [true], ['x']],
  ])('checks %s', (field, good, bad) => {
    const of = (value: unknown): string[] =>
      messages(checkTrainingJobRequest, { ...job, experimental_config: { [field]: value } });
    for (const value of good) expect(of(value), String(value)).toEqual([]);
    for (const value of bad)
      expect(of(value), String(value)).toEqual([
        expect.stringMatching(`experimental_config.${field}(.right|.tool)?: expected`),
      ]);
  });

  it.each<[object, string]>([
    [{ ppo: true, objective: 'sapo' }, 'objective: expected "ppo" or no value with ppo: true, got "sapo"'],
    [{ loss_fn: 'cispo', objective: 'sapo' }, 'loss_fn: expected the same as objective, got "cispo"'],
    [{ loss_fn: 'cispo', ppo: true }, 'loss_fn: expected "ppo" or no value with ppo: true, got "cispo"'],
    [{ loss_fn: 'ppo', ppo: false }, 'loss_fn: expected no "ppo" with ppo: false, got "ppo"'],
    [
      { kl_penalty_step_lag: 2, kl_penalty_reference_step: 0 },
      'kl_penalty_step_lag: expected no value with kl_penalty_reference_step, got 2',
    ],
    [
      { preference_loss: 'dpo', observation_weights: { tool: 1 } },
      'observation_weights: expected no value with preference_loss, got an object',
    ],
    [
      { observation_weights: { tools: 1 } },
      'observation_weights.tools: not a field of experimental_config.observation_weights; did you mean tool?',
    ],
    [{ reward_weights: {} }, 'reward_weights: expected the name of a metric and its weight, got an object'],
    [
      { sampler_correction: 'token_mask' },
      'sampler_correction: expected no value without precalculate_logprobs: true, got "token_mask"',
    ],
    [
      { truncated_importance_sampling: 2 },
      'truncated_importance_sampling: expected no value without precalculate_logprobs: true, got 2',
    ],
    [
      { precalculate_logprobs: true, sampler_correction: 'token_mask', truncated_importance_sampling: 2 },
      'sampler_correction: expected no value with truncated_importance_sampling, got "token_mask"',
    ],
    [
      { sampler_correction_min: 2, sampler_correction_max: 1 },
      'sampler_correction_min: expected at most sampler_correction_max, 1, got 2',
    ],
  ])('refuses the contradiction of %j', (experimental_config, expected) => {
    expect(messages(checkTrainingJobRequest, { ...job, experimental_config })).toEqual([
      `experimental_config.${expected}`,
    ]);
  });

  it.each<object>([
    { ppo: true, objective: 'ppo' },
    { ppo: true, objective: 'ppo', loss_fn: 'ppo' },
    { ppo: false, loss_fn: 'cispo' },
    { precalculate_logprobs: true, sampler_correction: 'sequence_mask', sampler_correction_min: 0.2 },
  ])('takes %j', (experimental_config) => {
    expect(messages(checkTrainingJobRequest, { ...job, experimental_config })).toEqual([]);
  });

  it('has each of its ids read once', () => {
    let reads = 0;
    const token_ids = new Proxy([5, 6], {
      get(ids, key) {
        if (key === '1') reads += 1;
        return Reflect.get(ids, key);
      },
    });
    const entry = { ...choice, token_ids };
    const additional_histories = [{ messages_and_choices: [entry] }];
    const given = withTrajectory({ messages_and_choices: [entry], additional_histories });
    expect(messages(checkTrainingJobRequest, given)).toEqual([]);
    expect(reads).toBe(2);
  });

  it.each([
    ['messages_and_choices.0.extra', { messages_and_choices: [{ ...choice, extra: new Map() }] }],
    [
      'additional_histories.0.messages_and_choices.0.extra',
      { additional_histories: [{ messages_and_choices: [{ ...choice, extra: new Map() }] }] },
    ],
    [
      'additional_histories.0.tools.0.function.parameters.x',
      {
        additional_histories: [
          {
            messages_and_choices: [],
            tools: [{ type: 'function', function: { name: 'f', parameters: { x: new Map() } } }],
          },
        ],
      },
    ],
  ])('refuses what is no JSON data: %s', (path, fields) => {
    expect(messages(checkTrainingJobRequest, withTrajectory(fields))).toEqual([
      expect.stringContaining(`${path}: `),
    ]);
  });

  it('may have fields that nobody knows over HTTP only', () => {
    const more = { ...job, foo: 1, experimental_config: { bar: 2 } };
    expect(messages(checkTrainingJobRequest, more, { wire: true })).toEqual([]);
    expect(messages(checkTrainingJobRequest, more)).toEqual([
      'foo: not a field of a request',
      'experimental_config.bar: not a field of experimental_config',
    ]);
  });
});

describe('a log', () => {
  it('counts for validation unless it says otherwise', () => {
    expect(checkLogRequest({ trajectory_groups: [] }).split).toBe('val');
    expect(checkLogRequest({ trajectory_groups: [], split: 'train' }).split).toBe('train');
    expect(messages(checkLogRequest, { split: '' })).toEqual([
      'trajectory_groups: this field is required, got nothing',
      'split: expected a non-empty string, got ""',
    ]);
  });
});

describe('models, checkpoints and pages', () => {
  it('come with their defaults', () => {
    expect(checkModelCreateRequest({ base_model: 'a.gguf' })).toEqual({
      base_model: 'a.gguf',
      name: null,
      return_existing: false,
    });
    expect(checkListQuery(undefined)).toEqual({ after: null, limit: 20, order: 'desc' });
    expect(checkListQuery({ after: 'x', limit: 100, order: 'asc' })).toEqual({
      after: 'x',
      limit: 100,
      order: 'asc',
    });
    expect(checkOf('CheckpointDeleteRequest')({ steps: [0, 5] })).toEqual({ steps: [0, 5] });
  });

  it.each<[string, (input: unknown) => unknown, unknown, string]>([
    ['no base', checkModelCreateRequest, {}, 'base_model: this field is required, got nothing'],
    [
      'an empty name',
      checkModelCreateRequest,
      { base_model: 'a', name: '' },
      'name: expected a non-empty string or null, got ""',
    ],
    [
      'a page of nothing',
      checkListQuery,
      { limit: 0 },
      'limit: expected an integer from 1 to 100 or null, got 0',
    ],
    [
      'a page too long',
      checkListQuery,
      { limit: 101 },
      'limit: expected an integer from 1 to 100 or null, got 101',
    ],
    [
      'a limit as text',
      checkListQuery,
      { limit: '5' },
      'limit: expected an integer from 1 to 100 or null, got "5"',
    ],
    ['another order', checkListQuery, { order: 'up' }, 'order: expected "asc", "desc" or null, got "up"'],
    ['no steps', checkOf('CheckpointDeleteRequest'), {}, 'steps: this field is required, got nothing'],
    [
      'a step below 0',
      checkOf('CheckpointDeleteRequest'),
      { steps: [-1] },
      'steps.0: expected an integer >= 0, got -1',
    ],
  ])('refuse %s', (_, check, input, expected) => {
    expect(messages(check, input)).toEqual([expected]);
  });
});
