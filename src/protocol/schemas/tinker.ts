/** Requests of Tinker's API, with its names. Data of `forward_backward` are not JSON: src/serve/wires/tinker/read-data.ts reads them. */
import * as s from './schema.ts';
import { stateName } from './training-run.ts';

const noEffect = s.acceptedFrom('Tinker');

const model_id = s.string('The model, by the id that `create_model` returned.', { minLength: 1 });
const seq_id = s.integer('Its place among the steps of the model, from 1.', 1);
const session = {
  type: noEffect,
  session_id: s.string('Id of the session.', { minLength: 1 }),
} satisfies Record<string, s.Schema>;
const step = { type: noEffect, model_id, seq_id } satisfies Record<string, s.Schema>;
const tinkerPath = (description: string): s.Schema =>
  s.string(description, {
    pattern: '^tinker://[^/]+/(weights|sampler_weights)/[^/]+$',
    expected: 'a path such as tinker://<model>/weights/<name>',
    bounds: '`tinker://<model>/weights/<name>` or `tinker://<model>/sampler_weights/<name>`',
  });
const savedName = { ...stateName, description: 'Its name.' };
const base_model = s.stringOrNull('A model of this server.', { minLength: 1 });
const model_path = {
  ...tinkerPath('Weights of `save_weights_for_sampler`.'),
  type: ['string', 'null'],
} as const;
const always = (what: string): s.Schema =>
  s.oneOf(`Whether ${what} are trained.`, [true, null], {
    type: ['boolean', 'null'],
    expected: 'true: which layers are trained is an option of the server',
  });

export const tinkerDefinitions: s.Definitions = {
  TinkerConfigBody: s.object('The body of `POST /api/v1/client/config`.', [], { sdk_version: noEffect }),
  TinkerSessionBody: s.object('The body of `POST /api/v1/create_session`.', [], {
    ...s.accepted('Tinker', 'type', 'tags', 'user_metadata', 'sdk_version', 'project_id'),
  }),
  TinkerHeartbeatBody: s.object('The body of `POST /api/v1/session_heartbeat`.', ['session_id'], session),
  TinkerTelemetryBody: s.object('The body of `POST /api/v1/telemetry`, of which nothing is kept.', [], {
    ...s.accepted('Tinker', 'events', 'platform', 'sdk_version', 'session_id', 'process_uuid'),
  }),
  TinkerModelBody: s.object(
    'The body of `POST /api/v1/create_model`.',
    ['session_id', 'model_seq_id', 'base_model'],
    {
      ...session,
      model_seq_id: s.integer('Its place among the models of the session.', 0),
      base_model: s.string('A model of this server.', { minLength: 1 }),
      user_metadata: noEffect,
      lora_config: s.ref('TinkerLoraConfig', 'Its adapter.'),
    },
  ),
  TinkerLoraConfig: s.object(
    'The adapter of a model.',
    ['rank'],
    {
      rank: s.integer('Inner size of the adapter.', 1, { maximum: 1024 }),
      seed: s.integerOrNull('Seed of its random start. Absent: a random one.', { minimum: 0 }),
      train_mlp: always('the feed-forward layers'),
      train_attn: always('the attention layers'),
      train_unembed: noEffect,
    },
    { type: ['object', 'null'] },
  ),
  TinkerModelIdBody: s.object(
    'The body of `POST /api/v1/get_info` and `POST /api/v1/unload_model`.',
    ['model_id'],
    {
      type: noEffect,
      model_id,
    },
  ),
  TinkerStepBody: s.object('The body of `POST /api/v1/optim_step`.', ['model_id', 'seq_id', 'adam_params'], {
    ...step,
    adam_params: s.ref('AdamParams', 'Settings of AdamW.'),
  }),
  TinkerSaveBody: s.object('The body of `POST /api/v1/save_weights`.', ['model_id', 'seq_id', 'path'], {
    ...step,
    path: savedName,
    overwrite: s.flag(false, 'Replaces weights with this name; otherwise it is an error if there are some.'),
    ttl_seconds: noEffect,
  }),
  TinkerLoadBody: s.object(
    'The body of `POST /api/v1/load_weights`.',
    ['model_id', 'seq_id', 'path', 'optimizer'],
    {
      ...step,
      path: tinkerPath('Weights of `save_weights`, of this or of another model.'),
      optimizer: s.boolean('Also the state of the optimizer.'),
      weights_access_token: s.refused('the weights of all models are those of this server', 'Tinker'),
    },
  ),
  TinkerPublishBody: s.object(
    'The body of `POST /api/v1/save_weights_for_sampler`.',
    ['model_id', 'seq_id'],
    {
      ...step,
      path: {
        ...savedName,
        description: 'Their name. Absent: they are only for a sampling session.',
        type: ['string', 'null'],
      },
      sampling_session_seq_id: s.integerOrNull('Place of a sampling session that is created with them.', {
        minimum: 0,
      }),
      ttl_seconds: noEffect,
    },
  ),
  TinkerWeightsBody: s.object('The body of `POST /api/v1/weights_info`.', ['tinker_path'], {
    tinker_path: tinkerPath('Saved weights.'),
  }),
  TinkerSamplingSessionBody: s.object(
    'The body of `POST /api/v1/create_sampling_session`. One of `base_model` and `model_path` is needed.',
    ['session_id', 'sampling_session_seq_id'],
    {
      ...session,
      sampling_session_seq_id: s.integer('Its place among the sampling sessions of the session.', 0),
      base_model,
      model_path,
    },
  ),
  TinkerSampleBody: s.object(
    'The body of `POST /api/v1/asample`. One of `sampling_session_id`, `base_model` and `model_path` is needed.',
    ['prompt'],
    {
      type: noEffect,
      sampling_session_id: s.stringOrNull('Id of a sampling session.', { minLength: 1 }),
      base_model,
      model_path,
      seq_id: s.integerOrNull('Its place in the sampling session. A repeated request gets the first answer.'),
      prompt: s.object('The prompt to continue.', ['chunks'], {
        chunks: s.list('Its pieces, in order.', s.ref('TinkerChunk'), { minItems: 1 }),
      }),
      num_samples: s.integer('Number of answers.', 1, { default: 1 }),
      sampling_params: s.objectOrNull('How the prompt is continued.', {
        max_tokens: s.integerOrNull(
          'Maximum number of tokens of an answer. Absent: the rest of the context.',
          {
            minimum: 1,
          },
        ),
        seed: s.integerOrNull('Seed of the draws.'),
        stop: {
          description: 'A text, texts or tokens that end an answer, which has them as its last tokens.',
          type: ['string', 'array', 'null'],
          items: { type: ['string', 'integer'] },
          tsType: 'string | readonly string[] | readonly number[] | null',
        },
        temperature: s.numberOrNull('Of the distribution.', { default: 1, minimum: 0 }),
        top_k: s.integerOrNull('Number of the likeliest tokens; -1: all.', { default: -1, minimum: -1 }),
        top_p: s.numberOrNull('Mass of the likeliest tokens.', { default: 1, minimum: 0, maximum: 1 }),
      }),
      prompt_logprobs: s.flagOrNull(false, 'Also scores the prompt.'),
      topk_prompt_logprobs: s.integerOrNull('Number of likeliest tokens at each position of the prompt.', {
        default: 0,
        minimum: 0,
        bounds: 'at most `maxLogprobs`',
      }),
    },
  ),
  TinkerChunk: s.object(
    'A piece of a prompt.',
    [],
    {
      type: s.oneOf('Its kind.', ['encoded_text'], {
        expected: '"encoded_text": prompts of tokens have no images and sounds',
      }),
      tokens: s.list('Token ids.', { type: 'integer', minimum: 0 }),
    },
    s.when({ properties: { type: { enum: ['encoded_text'] } } }, { required: ['tokens'] }),
  ),
  TinkerFutureBody: s.object('The body of `POST /api/v1/retrieve_future`.', ['request_id'], {
    request_id: s.string('Id of a request.', { minLength: 1 }),
    allow_metadata_only: noEffect,
  }),
};
