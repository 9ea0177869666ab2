/** Requests of training runs whose steps a client sends one by one, in the shapes that such services have in common. */
import * as s from './schema.ts';
import { FLOAT_MAX } from './training-job.ts';

const numbers = (description: string): s.Schema => s.ref('Tensor', description);
/** Name of a saved state. */
export const stateName: s.Schema = s.string('Its name.', {
  pattern: '^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$',
  expected: 'a name of letters, digits, ".", "_" and "-"',
  bounds: 'letters, digits, `.`, `_`, `-`',
});
const fromZero = (description: string, standard: number): s.Schema =>
  s.numberOrNull(description, { default: standard, minimum: 0, maximum: FLOAT_MAX });
const share = (description: string, standard: number): s.Schema =>
  s.numberOrNull(description, { default: standard, minimum: 0, maximum: 1 });

const temperature = s.number('Divides the logits of the options.', { exclusiveMinimum: 0, maximum: 1e6 });
const byKind = (description: string, fitted: s.Schema): s.Schema =>
  s.object(`By kind of question. ${description}`, [], { predicate: fitted, choice: fitted, score: fitted });

/** Fields of every step. */
const step = {
  sequence: s.integerOrNull('Its place among the steps of the run, from 1. Default: the next one.', {
    minimum: 1,
  }),
  idempotency_key: s.stringOrNull('A repeated step with the same key gets the answer of the first.', {
    minLength: 1,
    pattern: '^[\\x21-\\x7e]{1,200}$',
    expected: 'up to 200 visible characters',
    bounds: 'up to 200 visible characters',
  }),
  wait_ms: s.integerOrNull('Answers after this time with `pending`. Default: over HTTP 20 s, else never.', {
    minimum: 0,
    maximum: 600_000,
  }),
} satisfies Record<string, s.Schema>;

export const trainingRunDefinitions: s.Definitions = {
  TrainingRunRequest: s.object('Opens a training run.', ['model'], {
    model: s.string('A registered model, by id or name, or what a new one starts from.', { minLength: 1 }),
    rank: s.integerOrNull(
      "Inner size of the adapter. Default: that of the model's newest checkpoint, else the runtime's.",
      {
        minimum: 1,
        maximum: 1024,
      },
    ),
    alpha: s.numberOrNull(
      "Its output is scaled by alpha / rank. Default: that of the model's newest checkpoint, else the runtime's.",
      {
        exclusiveMinimum: 0,
        maximum: 1e30,
      },
    ),
    seed: s.integerOrNull("Seed of the adapter's random start.", { default: 0, minimum: 0 }),
  }),
  Tensor: {
    description: 'Numbers, as a list or as `{ data, dtype, shape }`.',
    type: ['array', 'object'],
    items: { type: 'number' },
    required: ['data'],
    properties: { data: s.list('The numbers.', { type: 'number' }) },
    tsType: 'readonly number[] | { readonly data: readonly number[] }',
  },
  ModelInput: s.shape('Tokens in pieces.', ['chunks'], {
    chunks: s.list('The pieces.', {
      type: 'object',
      required: ['tokens'],
      properties: { tokens: s.list('Token ids.', { type: 'integer', minimum: 0 }) },
    }),
  }),
  Datum: s.shape(
    'A sequence to learn from: its tokens, and a number of each kind for each of them.',
    ['model_input', 'loss_fn_inputs'],
    {
      model_input: s.ref('ModelInput', 'What the model reads.'),
      loss_fn_inputs: s.shape('By position of the input.', ['target_tokens'], {
        target_tokens: numbers('What follows each position.'),
        weights: numbers('What each counts. Default: 1.'),
        logprobs: numbers('Of the targets, under the weights that sampled.'),
        advantages: numbers('How much better than expected.'),
        ref_logprobs: numbers('Under a reference.'),
        original_logprobs: numbers("The sampler's, where `logprobs` were recomputed."),
      }),
    },
  ),
  RunDataRequest: s.object(
    'Scores data, and for `forward_backward` adds the gradient of its loss.',
    ['data'],
    {
      ...step,
      data: s.list('Sequences.', s.ref('Datum'), { minItems: 1 }),
      loss_fn: s.oneOf(
        'The loss. `policy` takes the settings of training jobs; it is a mean over tokens, the others are sums.',
        ['cross_entropy', 'importance_sampling', 'ppo', 'cispo', 'dro', 'policy', null],
        { default: 'cross_entropy' },
      ),
      weighted_only: s.boolean(
        'Scores only targets that the loss counts; the others have 0. Default: true of `forward_backward`, false of `forward`.',
      ),
      loss_fn_config: s.jsonObject(
        'Settings of the loss: `clip_low_threshold` and `clip_high_threshold` of `ppo` and `cispo`, `beta` of `dro`, `experimental_config` of `policy`.',
      ),
    },
  ),
  RunStepRequest: s.object('An optimizer step on the gradients added since the last one.', [], {
    ...step,
    adam_params: s.ref('AdamParams', 'Settings of AdamW.'),
  }),
  AdamParams: s.object(
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
  RunSaveRequest: s.object('Writes weights and optimizer to the store.', ['name'], {
    ...step,
    name: stateName,
    overwrite: s.flag(true, 'Replaces a state with this name. False: it is an error if there is one.'),
  }),
  RunLoadRequest: s.object('Returns to a saved state.', ['name'], {
    ...step,
    name: stateName,
    run: s.stringOrNull('Id of the run that has the state. Absent: this run.', {
      minLength: 1,
      bounds: 'a run of the same base model, rank and modules',
    }),
    optimizer: s.boolean('Also its optimizer; otherwise that starts anew.', { default: true }),
  }),
  RunPublishRequest: s.object('Makes the weights the newest checkpoint of the model.', [], {
    ...step,
    decisions: s.ref('DecisionCalibration', 'What was fitted for its decisions.'),
  }),
  DecisionCalibration: s.object(
    'What was fitted for the decisions of a checkpoint.',
    ['temperatures'],
    {
      temperatures: byKind('The temperature that fits best alone. Absent: 1.', temperature),
      with_noise: byKind(
        'What fits better than a temperature alone, and is used in its place except in decision files.',
        s.object('A temperature and noise.', ['temperature', 'noise'], {
          temperature,
          noise: s.number('Share of the probability that is spread evenly over the options.', {
            minimum: 0,
            maximum: 1,
          }),
        }),
      ),
      report: s.jsonObject('What was measured. The report page shows it.'),
    },
    { title: 'decisions', type: ['object', 'null'] },
  ),
  RunSampleRequest: s.object('Samples with the newest checkpoint of the model.', ['prompt'], {
    ...step,
    prompt: s.ref('ModelInput', 'The prompt to continue.'),
    num_samples: s.integer('Answers.', 1, { default: 1, maximum: 1024 }),
    sampling_params: {
      description: 'As in a text completion request.',
      type: ['object', 'null'],
      properties: {
        max_tokens: s.integerOrNull('Maximum number of tokens of an answer. Default: 16.', { minimum: 1 }),
        temperature: s.numberOrNull('Of the distribution. Default 1.', { minimum: 0 }),
        top_p: s.numberOrNull('Mass of the likeliest tokens.', { minimum: 0, maximum: 1 }),
        top_k: s.integerOrNull('Number of the likeliest tokens.', { minimum: -1 }),
        seed: s.integerOrNull('Seed of the draws.'),
        stop: { description: 'Texts that end an answer.', type: ['string', 'array', 'null'] },
      },
    },
    prompt_logprobs: s.flagOrNull(false, 'Also scores the prompt.'),
  }),
};
