/** Requests of Ollama's API, with its names. */
import { chatFields } from './messages.ts';
import {
  acceptedFrom,
  type Definitions,
  listOrNull,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  string,
  when,
} from './schema.ts';

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

const model = orNull(
  'string',
  'Which model answers; a tag `:latest` may follow. Absent or empty: the default model.',
);
const images = listOrNull('Pictures as Base64. Models that only read text refuse them.', {
  type: 'string',
  minLength: 1,
});
const stream = orNull('boolean', 'Answers in lines of JSON as tokens come.', { default: true });
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
  options: ref('OllamaOptions', 'Sampling and limits.'),
  format: {
    description: '`json`, or a JSON Schema that the answer follows.',
    type: ['string', 'object', 'null'],
    ...when({ type: 'string' }, { enum: ['json', ''] }),
    tsType: "'json' | '' | JsonObject | null",
  },
  think: oneOf(
    'Whether the model thinks before it answers, or how much. Absent: as it does by itself.',
    [true, false, 'low', 'medium', 'high', 'max', null],
    { type: ['boolean', 'string', 'null'] },
  ),
  ...chatFields('logprobs'),
  top_logprobs: orNull('integer', 'With `logprobs`: returns this many best tokens at every position.', {
    minimum: 0,
    bounds: 'at most `maxLogprobs`',
  }),
  truncate: noEffect,
  shift: noEffect,
};

/** Definitions of these requests. */
export const ollamaDefinitions: Definitions = {
  OllamaChatRequest: object('The body of `POST /api/chat`.', [], {
    ...answer,
    messages: listOrNull(
      'The chat so far. Absent or empty: the model is only loaded, or unloaded with `keep_alive: 0`.',
      ref('OllamaMessage'),
    ),
    ...chatFields('tools'),
  }),
  OllamaGenerateRequest: object('The body of `POST /api/generate`.', [], {
    ...answer,
    prompt: orNull(
      'string',
      'The message of the user. Absent or empty: the model is only loaded, or unloaded.',
    ),
    suffix: orNull(
      'string',
      'Text that follows what is written. The prompt is then continued as it is, as with `raw`.',
    ),
    system: orNull('string', 'Instructions before the prompt.'),
    raw: orNull('boolean', 'Continues the prompt as it is, without a chat template.', { default: false }),
    images,
    template: oneOf("Not served: Ollama's templates are not read.", ['', null], {
      expected: 'nothing: the templates of this API are not read',
    }),
    context: noEffect,
  }),
  OllamaEmbedRequest: object('The body of `POST /api/embed`.', ['input'], {
    model,
    input: {
      description: 'A text, or a list of texts, each of which gets a vector.',
      type: ['string', 'array'],
      items: { type: 'string' },
    },
    dimensions: orNull('integer', 'Keeps so many numbers of each vector, from its beginning.', {
      minimum: 1,
      bounds: 'at most those of the model',
    }),
    truncate: orNull('boolean', 'Cuts a text that is too long for the model. False: it is an error.', {
      default: true,
    }),
    keep_alive: keepAlive,
    options: noEffect,
  }),
  OllamaEmbeddingsRequest: object('The body of `POST /api/embeddings`, the older form.', ['prompt'], {
    model,
    prompt: string('A text.'),
    keep_alive: keepAlive,
    options: noEffect,
  }),
  OllamaModelRequest: object('The body of `POST /api/show` and `POST /api/pull`.', [], {
    model,
    name: orNull('string', 'Older name of `model`.'),
    stream,
    insecure: noEffect,
    verbose: noEffect,
    system: noEffect,
    template: noEffect,
    options: noEffect,
  }),
  OllamaMessage: object('A message of the chat.', ['role'], {
    role: oneOf('Who speaks.', ['system', 'user', 'assistant', 'tool']),
    content: orNull('string', 'Text.'),
    thinking: orNull('string', 'Thoughts before the content.'),
    images,
    tool_calls: listOrNull('Calls that the model made in this turn.', ref('OllamaToolCall')),
    tool_name: orNull('string', 'Of a result: what was called.'),
    tool_call_id: orNull(
      'string',
      'Of a result: id of the call. Absent: the first call of `tool_name` without a result.',
    ),
  }),
  OllamaToolCall: object('A call that the model made.', ['function'], {
    id: orNull('string', 'Id that the result refers to.'),
    type: noEffect,
    function: object('What is called.', ['name'], {
      index: noEffect,
      name: string('Its name.', { minLength: 1 }),
      arguments: { description: 'The arguments.', type: ['object', 'null'], tsType: 'JsonObject | null' },
      description: noEffect,
    }),
  }),
  OllamaOptions: object(
    'Sampling and limits.',
    [],
    {
      ...chatFields(...SAME_OPTIONS),
      num_predict: orNull(
        'integer',
        'Most tokens of the answer. 0, negative or absent: what is left of the context.',
      ),
      repeat_penalty: chatFields('repetition_penalty')['repetition_penalty']!,
      ...Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, noEffect])),
    },
    { type: ['object', 'null'] },
  ),
};
