/** Requests of Ollama's API, with its names. */
import { chatFields } from './messages.ts';
import { acceptedFrom, type Definitions, orNull, ref, type Schema } from './schema.ts';

const noEffect = acceptedFrom('Ollama');

/** Options that mean the same in a chat. */
export const SAME_OPTIONS = [
  'temperature',
  'top_k',
  'top_p',
  'min_p',
  'typical_p',
  'mirostat',
  'mirostat_tau',
  'mirostat_eta',
  'presence_penalty',
  'frequency_penalty',
  'seed',
  'stop',
] as const;

/** Options of how a model is loaded, which is said where it is named, and of steps that do not exist here. */
const WITHOUT_EFFECT = [
  'num_ctx',
  'num_keep',
  'num_batch',
  'num_gpu',
  'num_thread',
  'main_gpu',
  'numa',
  'low_vram',
  'f16_kv',
  'logits_all',
  'vocab_only',
  'use_mmap',
  'use_mlock',
  'embedding_only',
  'repeat_last_n',
  'penalize_newline',
  'tfs_z',
] as const;

const model: Schema = {
  description: 'Which model answers; a tag `:latest` may follow. Absent or empty: the default model.',
  type: ['string', 'null'],
};
const images: Schema = {
  description: 'Pictures as Base64. Models that only read text refuse them.',
  type: ['array', 'null'],
  items: { type: 'string', minLength: 1 },
};
const stream = orNull('boolean', { description: 'Answers in lines of JSON as tokens come.', default: true });
const keepAlive: Schema = {
  description:
    'How long the model stays in memory: seconds, or a text such as `5m` or `1h30m`; 0 unloads it at once, negative values keep it.',
  type: ['number', 'string', 'null'],
  pattern: '^-?[0-9]{1,9}([.][0-9]{1,9})?$|^-?([0-9]{1,9}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,6}$',
  expected: 'a number of seconds, a text such as 5m or 1h30m, or null',
};

/** What both requests for answers have. */
const answer: NonNullable<Schema['properties']> = {
  model,
  stream,
  keep_alive: keepAlive,
  options: { ...ref('OllamaOptions'), description: 'Sampling and limits.' },
  format: {
    description: '`json`, or a JSON Schema that the answer follows.',
    type: ['string', 'object', 'null'],
    if: { type: 'string' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { enum: ['json', ''] },
    tsType: "'json' | '' | JsonObject | null",
  },
  think: {
    description: 'Whether the model thinks before it answers, or how much. Absent: as it does by itself.',
    type: ['boolean', 'string', 'null'],
    enum: [true, false, 'low', 'medium', 'high', 'max', null],
  },
  ...chatFields('logprobs'),
  top_logprobs: orNull('integer', {
    description: 'With `logprobs`: returns this many best tokens at every position.',
    minimum: 0,
    bounds: 'at most `maxLogprobs`',
  }),
  truncate: noEffect,
  shift: noEffect,
};

/** Definitions of these requests. */
export const ollamaDefinitions: Definitions = {
  OllamaChatRequest: {
    description: 'The body of `POST /api/chat`.',
    type: 'object',
    properties: {
      ...answer,
      messages: {
        description:
          'The chat so far. Absent or empty: the model is only loaded, or unloaded with `keep_alive: 0`.',
        type: ['array', 'null'],
        items: ref('OllamaMessage'),
      },
      ...chatFields('tools'),
    },
    additionalProperties: false,
  },
  OllamaGenerateRequest: {
    description: 'The body of `POST /api/generate`.',
    type: 'object',
    properties: {
      ...answer,
      prompt: orNull('string', {
        description: 'The message of the user. Absent or empty: the model is only loaded, or unloaded.',
      }),
      suffix: orNull('string', {
        description:
          'Text that follows what is written. The prompt is then continued as it is, as with `raw`.',
      }),
      system: orNull('string', { description: 'Instructions before the prompt.' }),
      raw: orNull('boolean', {
        description: 'Continues the prompt as it is, without a chat template.',
        default: false,
      }),
      images,
      template: {
        description: "Not served: Ollama's templates are not read.",
        enum: ['', null],
        expected: 'nothing: the templates of this API are not read',
      },
      context: noEffect,
    },
    additionalProperties: false,
  },
  OllamaEmbedRequest: {
    description: 'The body of `POST /api/embed`.',
    type: 'object',
    required: ['input'],
    properties: {
      model,
      input: {
        description: 'A text, or a list of texts, each of which gets a vector.',
        type: ['string', 'array'],
        items: { type: 'string' },
      },
      dimensions: orNull('integer', {
        description: 'Keeps so many numbers of each vector, from its beginning.',
        minimum: 1,
        bounds: 'at most those of the model',
      }),
      truncate: orNull('boolean', {
        description: 'Cuts a text that is too long for the model. False: it is an error.',
        default: true,
      }),
      keep_alive: keepAlive,
      options: noEffect,
    },
    additionalProperties: false,
  },
  OllamaEmbeddingsRequest: {
    description: 'The body of `POST /api/embeddings`, the older form.',
    type: 'object',
    required: ['prompt'],
    properties: {
      model,
      prompt: { description: 'A text.', type: 'string' },
      keep_alive: keepAlive,
      options: noEffect,
    },
    additionalProperties: false,
  },
  OllamaModelRequest: {
    description: 'The body of `POST /api/show` and `POST /api/pull`.',
    type: 'object',
    properties: {
      model,
      name: orNull('string', { description: 'Older name of `model`.' }),
      stream,
      insecure: noEffect,
      verbose: noEffect,
      system: noEffect,
      template: noEffect,
      options: noEffect,
    },
    additionalProperties: false,
  },
  OllamaMessage: {
    description: 'A message of the chat.',
    type: 'object',
    required: ['role'],
    properties: {
      role: { description: 'Who speaks.', enum: ['system', 'user', 'assistant', 'tool'] },
      content: orNull('string', { description: 'Text.' }),
      thinking: orNull('string', { description: 'Thoughts before the content.' }),
      images,
      tool_calls: {
        description: 'Calls that the model made in this turn.',
        type: ['array', 'null'],
        items: ref('OllamaToolCall'),
      },
      tool_name: orNull('string', { description: 'Of a result: what was called.' }),
      tool_call_id: orNull('string', {
        description: 'Of a result: id of the call. Absent: the first call of `tool_name` without a result.',
      }),
    },
    additionalProperties: false,
  },
  OllamaToolCall: {
    description: 'A call that the model made.',
    type: 'object',
    required: ['function'],
    properties: {
      id: orNull('string', { description: 'Id that the result refers to.' }),
      type: noEffect,
      function: {
        description: 'What is called.',
        type: 'object',
        required: ['name'],
        properties: {
          index: noEffect,
          name: { description: 'Its name.', type: 'string', minLength: 1 },
          arguments: { description: 'The arguments.', type: ['object', 'null'], tsType: 'JsonObject | null' },
          description: noEffect,
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  OllamaOptions: {
    description: 'Sampling and limits.',
    type: ['object', 'null'],
    properties: {
      ...chatFields(...SAME_OPTIONS),
      num_predict: orNull('integer', {
        description: 'Most tokens of the answer. 0, negative or absent: what is left of the context.',
      }),
      repeat_penalty: chatFields('repetition_penalty')['repetition_penalty']!,
      ...Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, noEffect])),
    },
    additionalProperties: false,
  },
};
