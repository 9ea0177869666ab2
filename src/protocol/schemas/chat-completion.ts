/** The chat completion request: every field, its type, its default and its bounds. */
import { CONTEXT_SHIFT } from './context-shift.ts';
import { llamaSamplers } from './llama-samplers.ts';
import { repetitionDefinitions, repetitionDetection } from './repetition-detection.ts';
import { MAX_CHOICES, sampling } from './sampling.ts';
import * as s from './schema.ts';

type Fields = Readonly<Record<string, s.Schema>>;

const prompt: Fields = {
  messages: s.list('The chat so far, oldest message first.', s.ref('Message')),
  model: s.stringOrNull(
    'Which model answers: a registered id or name, `name@step` for a checkpoint, a path, an `hf:` URI or an alias. Absent, null or empty: the default model.',
  ),
  documents: {
    description:
      'Documents for the model, for templates that show them: any JSON values, often objects with `title` and `text`. It is an error if the template uses a field that a document lacks.',
    type: ['array', 'null'],
    tsType: 'readonly unknown[] | null',
  },
  chat_template: s.stringOrNull('A Jinja template that replaces the one of the model.', {
    bounds: 'not with `allowRequestTemplate: false`',
  }),
  chat_template_kwargs: {
    ...s.jsonObject('Additional variables for the template.'),
    bounds: 'no `tokenize`; `chat_template` only as text',
  },
  reasoning_effort: s.oneOf(
    'How much the model should reason, in the words and under the name that the template has for it: if it does not know the word, the nearest one, `low` for `minimal` and `high` for `xhigh` and `max`. `none` turns reasoning off: the template is told so in its own variables, open reasoning is closed, and the model cannot start any.',
    ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', null],
  ),
  reasoning: s.ref('ReasoningBudget', 'Limit on the length of reasoning: `{ max_tokens }`.', {
    tsType: 'ReasoningBudget | null',
  }),
  thinking_token_budget: s.integerOrNull(
    "vLLM's name of `reasoning.max_tokens`. After this many reasoning tokens the end of reasoning is forced, and the answer starts; -1: no limit. No effect if the model does not mark reasoning.",
    { minimum: -1, bounds: 'not with another `reasoning.max_tokens`; not with beam search' },
  ),
  reasoning_budget_message: s.stringOrNull(
    "llama.cpp's text that the reasoning ends with where a budget or `endReasoning` ends it: the model reads why it stops. It counts as reasoning.",
    { default: '', bounds: 'not the marker that ends the reasoning; not with beam search' },
  ),
  add_generation_prompt: s.flag(
    true,
    'Ends the prompt with the start of an answer. Turned off by `continue_final_message`.',
  ),
  continue_final_message: s.flag(
    false,
    'Leaves the last message open, so the answer continues it. Not together with `add_generation_prompt: true`.',
  ),
  add_special_tokens: s.flag(
    false,
    'Adds the special tokens of the tokenizer to the rendered prompt. Most chat templates already write them.',
  ),
  truncate_prompt_tokens: s.integerOrNull(
    'Keeps only this many tokens at the end of the prompt. -1 keeps as many as fit into the context together with `max_completion_tokens`; without that, a full context, so a longer prompt leaves no room and is an error. 0 keeps none, and an empty prompt is an error.',
    { minimum: -1 },
  ),
  truncation_side: s.oneOf(
    'The side that `truncate_prompt_tokens` cuts: `left` keeps the end of the prompt, `right` the beginning. Default `left`.',
    ['left', 'right', null],
  ),
  ...CONTEXT_SHIFT,
  mm_processor_kwargs: s.jsonObject(
    'Settings for images. All are refused if a message has media: use `imageTokens` of the model.',
  ),
  media_io_kwargs: s.jsonObject(
    "vLLM's settings for reading media, by kind. All are refused if a message has media: it is read whole.",
  ),
};

const output: Fields = {
  n: s.integerOrNull('Number of choices; with beam search also the number of beams.', {
    default: 1,
    minimum: 1,
    maximum: MAX_CHOICES,
    bounds: '1 with temperature 0',
  }),
  max_completion_tokens: s.integerOrNull(
    'Maximum number of tokens of one choice. Absent: the rest of the context.',
    { minimum: 1 },
  ),
  max_tokens: s.integerOrNull('Older name of `max_completion_tokens`, which takes precedence.', {
    minimum: 1,
  }),
  min_tokens: {
    description: 'Minimum number of tokens of each choice.',
    type: 'integer',
    default: 0,
    minimum: 0,
    bounds: 'at most `max_completion_tokens`',
  },
  stop: {
    description: 'Strings that end the answer. A single string counts as a list of one.',
    type: ['string', 'array', 'null'],
    items: { type: 'string', minLength: 1 },
    minLength: 1,
    default: [],
  },
  stop_token_ids: s.listOrNull(
    'Token ids that end the answer.',
    { type: 'integer', minimum: 0 },
    { default: [], bounds: 'ids of the vocabulary' },
  ),
  include_stop_str_in_output: s.flag(
    false,
    'Keeps the stop string, or the text of the stop token, in the answer.',
  ),
  ignore_eos: s.flag(false, 'Continues after the end-of-sequence token.'),
  repetition_detection: repetitionDetection,
  stream: s.flagOrNull(false, 'Returns the answer in chunks as it is generated.'),
  stream_interval: s.integerOrNull(
    'In a stream: a chunk of a choice comes when it has this many new tokens, and at its begin and end.',
    { default: 1, minimum: 1 },
  ),
  stream_options: s.ref(
    'StreamOptions',
    'What a stream returns in addition to the answer. Only with `stream`.',
  ),
  logprobs: s.flagOrNull(false, 'Returns the log-probability of every token of the answer.'),
  top_logprobs: s.integerOrNull(
    'With `logprobs`: returns this many best tokens at every position; -1 for the whole vocabulary.',
    {
      default: 0,
      minimum: -1,
      bounds:
        'needs `logprobs` when not 0; at most `maxLogprobs`; above 20, at most 4194304 for all tokens of an answer that is no stream',
    },
  ),
  logprob_token_ids: s.listOrNull(
    'With `logprobs`: reports these tokens at every position, in this order, in place of the `top_logprobs` best ones. An empty list changes nothing.',
    { type: 'integer', minimum: 0 },
    {
      maxItems: 1024,
      bounds: 'ids of the vocabulary; needs `logprobs` when not empty; not with `use_beam_search`',
    },
  ),
  prompt_logprobs: s.integerOrNull(
    'Returns the log-probability of every prompt token, and of this many best tokens at its position; -1 for the whole vocabulary.',
    { minimum: -1, bounds: 'not with `stream`, except 0; at most `maxLogprobs`' },
  ),
  return_token_ids: s.flagOrNull(false, 'Returns the token ids of the prompt and of each choice.'),
  return_prompt_text: s.flagOrNull(
    false,
    'Returns the prompt as the chat template writes it, `prompt_text`; in a stream with the first chunk.',
  ),
  return_token_offsets: s.flagOrNull(
    false,
    'Only for prompts that are rendered: returns in `token_offsets` the first character of each token, and the one behind it. Null if the prompt was cut, has media, or has tokens that spell another text.',
  ),
  return_assistant_tokens_mask: s.flagOrNull(
    false,
    'Only for prompts that are rendered: returns in `assistant_tokens_mask` a 1 for each token of an answer in the messages, else 0. Null without `token_offsets`, or if the template does not mark answers by `{% generation %}`.',
  ),
  return_timings: s.flagOrNull(
    false,
    'Returns how long the request waited, how long its prompt and its answer took, and tokens per second: `metrics` with the names of vLLM, `timings` with those of llama.cpp. In a stream in the last chunk.',
  ),
  timings_per_token: s.flagOrNull(
    false,
    'As `return_timings`; in a stream every chunk with new tokens has the `timings` so far.',
  ),
  return_progress: s.booleanOrNull(
    'In a stream: chunks without choices report in `prompt_progress` how much of the prompt is computed, from its start until the first token.',
    { default: false, bounds: 'only with `stream`' },
  ),
  return_routed_experts: s.booleanOrNull(
    'Returns which experts the tokens of the prompt and of each choice took, for training with `routing: "replay"`.',
    {
      default: false,
      bounds: 'only models with experts; not with beam search or `context_shift`',
    },
  ),
  return_tokens_as_token_ids: s.flagOrNull(
    false,
    'Log-probabilities show tokens as `token_id:N` instead of their text.',
  ),
  skip_special_tokens: s.flag(true, 'Omits the text of special tokens from the answer.'),
  spaces_between_special_tokens: s.flag(
    true,
    'With `skip_special_tokens` off: false writes adjacent special tokens without spaces between them.',
  ),
  include_reasoning: s.flag(true, 'False omits the reasoning from the response. The model still reasons.'),
  echo: s.flag(false, 'Puts the content of the last message before the answer if both have the same role.'),
  request_id: s.string(
    'Id of the request; the id of the response is `chatcmpl-` and this. It is an error if a running request has the same id. Absent: a random UUID.',
    { minLength: 1 },
  ),
};

const structure: Fields = {
  response_format: s.ref(
    'ResponseFormat',
    'The format of the answer. Not together with `structured_outputs`, except `{ type: "text" }`.',
  ),
  structured_outputs: s.ref(
    'StructuredOutputs',
    'A constraint on the answer. Not together with `response_format`, unless that is `{ type: "text" }`.',
  ),
};

const tools: Fields = {
  tools: s.listOrNull(
    'Tools that the model may call; the chat template shows them to the model.',
    s.ref('Tool'),
    { bounds: 'a custom tool has a name of its own' },
  ),
  tool_choice: s.ref(
    'ToolChoice',
    '`none` leaves calls as text, `auto` parses the calls that the model makes, `required` forces at least one call, a named tool forces a call of that tool, `allowed_tools` is `auto` or `required` for some of the tools: calls of others stay text. Absent: `auto` with tools, otherwise `none`.',
    { tsType: 'ToolChoice | null', bounds: 'needs `tools` unless `none`; a named tool must be among them' },
  ),
  parallel_tool_calls: s.flagOrNull(true, 'False or null keeps only the first tool call.'),
  functions: s.listOrNull(
    'The older form of `tools`: functions become tools, and a call is returned as `function_call` of the message, with the finish reason `function_call`. Only the first call is returned.',
    s.ref('FunctionDefinition'),
    { bounds: 'not with `tools`' },
  ),
  function_call: s.ref(
    'FunctionChoice',
    'The older form of `tool_choice`: `none`, `auto`, or the function that must be called.',
    {
      tsType: 'FunctionChoice | null',
      bounds: 'needs `functions` unless `none`; a named function must be among them; not with `tool_choice`',
    },
  ),
};

const scheduling: Fields = {
  priority: {
    description: 'Requests with lower values run first, with the option `scheduling: priority`.',
    type: 'integer',
    default: 0,
    bounds: '0 under `fcfs`',
  },
  speculation: s.ref(
    'Speculation',
    'Verifies several draft tokens in one step, which changes no token: false, `auto`, or one method with its settings. Absent or null: the option of the runtime.',
    { tsType: 'Speculation | null' },
  ),
  prediction: s.ref(
    'Prediction',
    'The expected answer, for example a file with small changes: its tokens become draft tokens. No effect with `speculation: false`.',
  ),
  cache_salt: s.stringOrNull(
    'Requests share cached prompt prefixes only with requests that have the same salt.',
    { minLength: 1 },
  ),
  session_id: s.stringOrNull(
    'A pool gives requests of a session to the member that has answered one of them, unless it is much busier than others. No effect elsewhere.',
    { minLength: 1 },
  ),
  skip_reading_prefix_cache: s.flagOrNull(
    false,
    'Computes the whole prompt, whatever is cached of it. Later requests may use its cache.',
  ),
  timeout_ms: s.integerOrNull(
    'Milliseconds until the answer must be complete, including waiting. A longer request ends with `TIMEOUT`, over HTTP 408. Absent or null: no limit.',
    { minimum: 1, maximum: 2 ** 31 - 1 },
  ),
  keep_alive: {
    description:
      'How long the model stays in memory after this request: seconds, or a text such as `5m` with `ms`, `s`, `m` or `h`; 0 unloads it at once, -1 keeps it. Other models that need the memory take precedence. Absent or null: `memory.idleMs` of the runtime.',
    type: ['number', 'string', 'null'],
    minimum: -1,
    pattern: '^(-1|[0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))$',
    expected: 'a number of seconds, -1, a text such as 5m, or null',
  },
  adapters: s.listOrNull(
    'LoRA adapters to use in addition to those of `model`; their outputs are summed. Prompts share cached prefixes only with requests that have the same adapters.',
    s.ref('Adapter'),
    { default: [], bounds: 'at most 16', tsType: 'readonly Adapter[] | null' },
  ),
  kv_transfer_params: s.jsonObject(
    'Hands a processed prompt from one process to another: `{ do_remote_decode: true }` processes the prompt and returns a handle; a request with that handle continues from there.',
  ),
};

const OPENAI_FIELDS = [
  ...['audio', 'metadata', 'modalities', 'moderation', 'prompt_cache_key', 'prompt_cache_options'],
  ...['prompt_cache_retention', 'safety_identifier', 'service_tier', 'store', 'verbosity'],
  'web_search_options',
];
const LLAMA_FIELDS = ['reasoning_control']; // every stream can be controlled

/** Fields of other APIs that are accepted and have no effect. */
export const IGNORED_FIELDS = [...OPENAI_FIELDS, ...LLAMA_FIELDS];

const refused: Fields = {
  watermarking: s.refused('answers have no watermarks'),
  ec_transfer_params: s.refused('pictures and sounds are read by the process that answers'),
  flat_logprobs: s.refused('no server returns this form, which vLLM has in its own process'),
};

/** The fields by subject, as in the sections of docs/request-fields.md. */
export const FIELD_GROUPS: Readonly<Record<string, Fields>> = {
  Prompt: prompt,
  Output: output,
  Sampling: { ...sampling, ...llamaSamplers },
  Structure: structure,
  Tools: tools,
  Scheduling: scheduling,
  Refused: refused,
  'Accepted without effect': {
    ...s.accepted('OpenAI', ...OPENAI_FIELDS),
    ...s.accepted('llama.cpp', ...LLAMA_FIELDS),
    user: s.stringOrNull('No effect.'),
  },
};

export const chatCompletionDefinitions: s.Definitions = {
  ChatCompletionRequest: s.object(
    'A chat completion request, the same in process and over HTTP. `undefined` counts as absent everywhere.',
    ['messages'],
    Object.assign({ messages: prompt['messages'] }, sampling, ...Object.values(FIELD_GROUPS)),
  ),
  ...repetitionDefinitions,
  ChatControlBody: s.object('An action on a running stream.', ['id', 'action'], {
    id: s.string('The id in the chunks of the stream.', { minLength: 1 }),
    action: s.oneOf('What to do.', ['reasoning_end']),
    model: s.stringOrNull('Ignored: the id names the stream.'),
  }),
  ReasoningBudget: s.objectOrNull('Limit on the length of reasoning.', {
    max_tokens: s.integerOrNull(
      'Maximum number of reasoning tokens, over all reasoning sections. Null: no limit.',
      { minimum: 0 },
    ),
  }),
  StreamOptions: s.objectOrNull('What a stream returns in addition to the answer.', {
    include_usage: s.flagOrNull(true, 'Sends a last chunk with the usage. Null turns it off.'),
    continuous_usage_stats: s.flagOrNull(
      false,
      'Sends the usage so far in every chunk. Needs `include_usage`.',
    ),
    include_obfuscation: s.acceptedFrom('OpenAI'),
  }),
};

/** Sampling and scheduling fields that other APIs define themselves or do not accept. */
const OWN = ['temperature', 'top_p', 'top_k', 'use_beam_search', 'length_penalty', 'kv_transfer_params'];

/** Fields of a chat completion request that other APIs accept with the same meaning. */
export const EXTRA_FIELDS: readonly string[] = [
  ...Object.keys({ ...FIELD_GROUPS['Sampling'], ...FIELD_GROUPS['Scheduling'] }).filter(
    (field) => !OWN.includes(field),
  ),
  ...['thinking_token_budget', 'reasoning_budget_message'],
  ...['min_tokens', 'stop_token_ids', 'include_stop_str_in_output', 'ignore_eos'],
  ...['structured_outputs', 'skip_special_tokens', 'request_id', 'documents', 'truncate_prompt_tokens'],
  ...['truncation_side', 'chat_template', 'chat_template_kwargs'],
];

/** Returns {@link EXTRA_FIELDS} and the named fields of the chat completion request. */
export function chatFields(...names: readonly string[]): NonNullable<s.Schema['properties']> {
  const known = chatCompletionDefinitions['ChatCompletionRequest']!.properties!;
  return Object.fromEntries(names.map((name) => [name, known[name]!]));
}
