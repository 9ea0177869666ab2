/** Requests of Ollama's API, with its names. */
import { chatFields } from './chat-completion.ts';
import * as s from './schema.ts';

const noEffect = s.acceptedFrom('Ollama');

/** Options that have the same meaning in a chat. */
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

/** Options without effect: how a model is loaded (set where the model is configured), and steps that do not exist here. */
const WITHOUT_EFFECT = [
  ...[
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
  ],
  ...['vocab_only', 'use_mmap', 'use_mlock', 'embedding_only', 'repeat_last_n', 'penalize_newline', 'tfs_z'],
];

const model = s.stringOrNull(
  'Which model answers; a tag `:latest` may follow. Absent or empty: the default model.',
);
const images = s.listOrNull('Pictures as Base64. Models that only read text refuse them.', {
  type: 'string',
  minLength: 1,
});
const stream = s.flagOrNull(true, 'Returns lines of JSON as tokens are generated.');
const keepAlive: s.Schema = {
  description:
    'How long the model stays in memory: seconds, or a text such as `5m` or `1h30m`; 0 unloads it at once, negative values keep it.',
  type: ['number', 'string', 'null'],
  pattern: '^-?[0-9]{1,9}([.][0-9]{1,9})?$|^-?([0-9]{1,9}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,6}$',
  expected: 'a number of seconds, a text such as 5m or 1h30m, or null',
};

/** Fields of both requests for answers. */
const answer: NonNullable<s.Schema['properties']> = {
  model,
  stream,
  keep_alive: keepAlive,
  options: s.ref('OllamaOptions', 'Sampling and limits.'),
  format: {
    description: '`json`, or a JSON Schema that the answer follows.',
    type: ['string', 'object', 'null'],
    ...s.when({ type: 'string' }, { enum: ['json', ''] }),
    tsType: "'json' | '' | JsonObject | null",
  },
  think: s.oneOf(
    "Whether the model thinks before it answers, or how much. Absent: the model's default.",
    [true, false, 'low', 'medium', 'high', 'max', null],
    { type: ['boolean', 'string', 'null'] },
  ),
  ...chatFields('logprobs'),
  top_logprobs: s.integerOrNull('With `logprobs`: returns this many best tokens at every position.', {
    minimum: 0,
    bounds: 'at most `maxLogprobs`',
  }),
  truncate: noEffect,
  shift: noEffect,
};

export const ollamaDefinitions: s.Definitions = {
  OllamaChatRequest: s.object('The body of `POST /api/chat`.', [], {
    ...answer,
    messages: s.listOrNull(
      'The chat so far. Absent or empty: the model is only loaded, or unloaded with `keep_alive: 0`.',
      s.ref('OllamaMessage'),
    ),
    ...chatFields('tools'),
  }),
  OllamaGenerateRequest: s.object('The body of `POST /api/generate`.', [], {
    ...answer,
    prompt: s.stringOrNull(
      'The message of the user. Absent or empty: the model is only loaded, or unloaded.',
    ),
    suffix: s.stringOrNull('Text after the answer. The prompt is then continued unchanged, as with `raw`.'),
    system: s.stringOrNull('Instructions before the prompt.'),
    raw: s.flagOrNull(false, 'Continues the prompt as it is, without a chat template.'),
    images,
    template: s.oneOf("Not supported: Ollama's templates are not read.", ['', null], {
      expected: 'no value: the templates of this API are not read',
    }),
    context: noEffect,
  }),
  OllamaEmbedRequest: s.object('The body of `POST /api/embed`.', ['input'], {
    model,
    input: {
      description: 'A text, or a list of texts, each of which gets a vector.',
      type: ['string', 'array'],
      items: { type: 'string' },
    },
    dimensions: s.integerOrNull('Truncates each vector to this many numbers.', {
      minimum: 1,
      bounds: 'at most those of the model',
    }),
    truncate: s.flagOrNull(true, 'Cuts a text that is too long for the model. False: it is an error.'),
    keep_alive: keepAlive,
    options: noEffect,
  }),
  OllamaEmbeddingsRequest: s.object('The body of `POST /api/embeddings`, the older form.', ['prompt'], {
    model,
    prompt: s.string('A text.'),
    keep_alive: keepAlive,
    options: noEffect,
  }),
  OllamaModelRequest: s.object('The body of `POST /api/show` and `POST /api/pull`.', [], {
    model,
    name: s.stringOrNull('Older name of `model`.'),
    stream,
    insecure: noEffect,
    verbose: noEffect,
    system: noEffect,
    template: noEffect,
    options: noEffect,
  }),
  OllamaMessage: s.object('A message of the chat.', ['role'], {
    role: s.oneOf('Who speaks.', ['system', 'user', 'assistant', 'tool']),
    content: s.stringOrNull('Text.'),
    thinking: s.stringOrNull('Thoughts before the content.'),
    images,
    tool_calls: s.listOrNull('Calls that the model made in this turn.', s.ref('OllamaToolCall')),
    tool_name: s.stringOrNull('Of a result: what was called.'),
    tool_call_id: s.stringOrNull(
      'Of a result: id of the call. Absent: the first call of `tool_name` without a result.',
    ),
  }),
  OllamaToolCall: s.object('A call that the model made.', ['function'], {
    id: s.stringOrNull('Id that the result refers to.'),
    type: noEffect,
    function: s.object('What is called.', ['name'], {
      index: noEffect,
      name: s.string('Its name.', { minLength: 1 }),
      arguments: s.jsonObject('The arguments.'),
      description: noEffect,
    }),
  }),
  OllamaOptions: s.objectOrNull('Sampling and limits.', {
    ...chatFields(...SAME_OPTIONS),
    num_predict: s.integerOrNull(
      'Maximum number of tokens of the answer. 0, negative or absent: the rest of the context.',
    ),
    repeat_penalty: chatFields('repetition_penalty')['repetition_penalty']!,
    ...s.accepted('Ollama', ...WITHOUT_EFFECT),
  }),
};
