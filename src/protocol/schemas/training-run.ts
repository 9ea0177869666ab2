/** Requests of training runs whose steps a client sends one by one, in the shapes that services of such runs share. */
import {
  boolean,
  type Definitions,
  integer,
  list,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  string,
} from './schema.ts';

const FLOAT_MAX = 3e38;
const STATE_NAME = '^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$';
const numbers = (description: string): Schema => ({ ...ref('Tensor', description) });
const stateName = string('Its name.', {
  pattern: STATE_NAME,
  expected: 'a name of letters, digits, ".", "_" and "-"',
  bounds: 'letters, digits, `.`, `_`, `-`',
});
const fromZero = (description: string, standard: number): Schema =>
  orNull('number', description, { default: standard, minimum: 0, maximum: FLOAT_MAX });
const share = (description: string, standard: number): Schema =>
  orNull('number', description, { default: standard, minimum: 0, maximum: 1 });

/** What every step has. */
const step = {
  sequence: orNull('integer', 'Its place among the steps of the run, from 1. Default: the next one.', {
    minimum: 1,
  }),
  idempotency_key: orNull('string', 'A repeated step of the same key has the answer of the first.', {
    minLength: 1,
    pattern: '^[\\x21-\\x7e]{1,200}$',
    expected: 'up to 200 visible characters',
    bounds: 'up to 200 visible characters',
  }),
  wait_ms: orNull('integer', 'Answers after this time with `pending`. Default: over HTTP 20 s, else never.', {
    minimum: 0,
    maximum: 600_000,
  }),
} satisfies Record<string, Schema>;

/** Definitions of these requests. */
export const trainingRunDefinitions: Definitions = {
  TrainingRunRequest: object('Opens a training run.', ['model'], {
    model: string('A registered model, by id or name, or what a new one starts from.', { minLength: 1 }),
    rank: orNull('integer', 'Inner size of the adapter. Default: as the runtime trains.', {
      minimum: 1,
      maximum: 1024,
    }),
    alpha: orNull('number', 'Its output is scaled by alpha / rank. Default: as the runtime trains.', {
      exclusiveMinimum: 0,
      maximum: 1e30,
    }),
    seed: orNull('integer', "Seed of the adapter's random start.", { default: 0, minimum: 0 }),
  }),
  Tensor: {
    description: 'Numbers, as a list or as `{ data, dtype, shape }`.',
    type: ['array', 'object'],
    items: { type: 'number' },
    required: ['data'],
    properties: { data: list('The numbers.', { type: 'number' }) },
    tsType: 'readonly number[] | { readonly data: readonly number[] }',
  },
  ModelInput: {
    description: 'Tokens in pieces.',
    type: 'object',
    required: ['chunks'],
    properties: {
      chunks: list('The pieces.', {
        type: 'object',
        required: ['tokens'],
        properties: { tokens: list('Token ids.', { type: 'integer', minimum: 0 }) },
      }),
    },
  },
  Datum: {
    description: 'A sequence to learn from: its tokens, and a number of each kind for each of them.',
    type: 'object',
    required: ['model_input', 'loss_fn_inputs'],
    properties: {
      model_input: ref('ModelInput', 'What the model reads.'),
      loss_fn_inputs: {
        description: 'By position of the input.',
        type: 'object',
        required: ['target_tokens'],
        properties: {
          target_tokens: numbers('What follows each position.'),
          weights: numbers('What each counts. Default: 1.'),
          logprobs: numbers('Of the targets, under the weights that sampled.'),
          advantages: numbers('How much better than expected.'),
          ref_logprobs: numbers('Under a reference.'),
          original_logprobs: numbers("The sampler's, where `logprobs` were recomputed."),
        },
      },
    },
  },
  RunDataRequest: object('Scores data, and for `forward_backward` adds the gradient of its loss.', ['data'], {
    ...step,
    data: list('Sequences.', ref('Datum'), { minItems: 1 }),
    loss_fn: oneOf(
      'The loss. `policy` takes the settings of training jobs; it is a mean over tokens, the others are sums.',
      ['cross_entropy', 'importance_sampling', 'ppo', 'cispo', 'dro', 'policy', null],
      { default: 'cross_entropy' },
    ),
    loss_fn_config: {
      description:
        'Settings of the loss: `clip_low_threshold` and `clip_high_threshold` of `ppo` and `cispo`, `beta` of `dro`, `experimental_config` of `policy`.',
      type: ['object', 'null'],
      tsType: 'JsonObject | null',
    },
  }),
  RunStepRequest: object('An optimizer step on the gradients added since the last one.', [], {
    ...step,
    adam_params: ref('AdamParams', 'Settings of AdamW.'),
  }),
  AdamParams: object(
    'Settings of AdamW. Null stands for the default.',
    [],
    {
      learning_rate: fromZero('Size of the step.', 1e-4),
      beta1: share('Decay of the mean.', 0.9),
      beta2: share('Decay of the squares.', 0.95),
      eps: fromZero('Added to the root.', 1e-12),
      weight_decay: fromZero('Of the weights.', 0),
      grad_clip_norm: fromZero('The gradient is scaled down to this norm; 0: never.', 0),
    },
    { title: 'adam_params', type: ['object', 'null'] },
  ),
  RunSaveRequest: object('Writes weights and optimizer to the store.', ['name'], {
    ...step,
    name: stateName,
  }),
  RunLoadRequest: object('Goes back to a saved state.', ['name'], {
    ...step,
    name: stateName,
    optimizer: boolean('Also its optimizer; else that starts anew.', { default: true }),
  }),
  RunPublishRequest: object('Makes the weights the newest checkpoint of the model.', [], step),
  RunSampleRequest: object('Samples with the newest checkpoint of the model.', ['prompt'], {
    ...step,
    prompt: ref('ModelInput', 'What is continued.'),
    num_samples: integer('Answers.', 1, { default: 1, maximum: 1024 }),
    sampling_params: {
      description: 'As in a text completion request.',
      type: ['object', 'null'],
      properties: {
        max_tokens: orNull('integer', 'Most tokens of an answer. Default: 16.', { minimum: 1 }),
        temperature: orNull('number', 'Of the distribution. Default 1.', { minimum: 0 }),
        top_p: orNull('number', 'Mass of the likeliest tokens.', { minimum: 0, maximum: 1 }),
        top_k: orNull('integer', 'Number of the likeliest tokens.', { minimum: -1 }),
        seed: orNull('integer', 'Seed of the draws.'),
        stop: { description: 'Texts that end an answer.', type: ['string', 'array', 'null'] },
      },
    },
    prompt_logprobs: orNull('boolean', 'Also scores the prompt.', { default: false }),
  }),
};
