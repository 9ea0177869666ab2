/** The chat completion request: every field, its type, its default and its bounds. */
import { CONTEXT_SHIFT } from './context-shift.ts';
import { llamaSamplers } from './llama-samplers.ts';
import { sampling } from './sampling.ts';
import { acceptedFrom, type Definitions, flag, orNull, ref, type Schema } from './schema.ts';

function jsonObject(description: string): Schema {
  return { description, type: ['object', 'null'], tsType: 'JsonObject | null' };
}

const messages: Schema = {
  description: 'The chat so far, oldest message first.',
  type: 'array',
  items: ref('Message'),
};

const stopping: Schema['properties'] = {
  max_tokens: orNull('integer', {
    description: 'Older name of `max_completion_tokens`, which takes precedence.',
    minimum: 1,
  }),
  max_completion_tokens: orNull('integer', {
    description: 'Maximum number of tokens of one choice. Absent: the rest of the context.',
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
  stop_token_ids: {
    description: 'Token ids that end the answer.',
    type: ['array', 'null'],
    items: { type: 'integer', minimum: 0 },
    default: [],
    bounds: 'ids of the vocabulary',
  },
  include_stop_str_in_output: flag(
    false,
    'Keeps the stop string, or the text of the stop token, in the answer.',
  ),
  ignore_eos: flag(false, 'Continues after the end-of-sequence token.'),
};

const masks: Schema['properties'] = {
  allowed_token_ids: {
    description: 'Samples only these tokens. The end-of-sequence token is not added.',
    type: ['array', 'null'],
    items: { type: 'integer', minimum: 0 },
    minItems: 1,
    bounds: 'ids of the vocabulary',
  },
  bad_words: {
    description:
      'Strings that the answer must not contain, in any tokenization. Leading white space of a string is ignored. A match that starts in the prompt does not count.',
    type: 'array',
    items: { type: 'string' },
    default: [],
    bounds: 'no blank text',
  },
  response_format: {
    ...ref('ResponseFormat'),
    description:
      'The format of the answer. Not together with `structured_outputs`, except `{ type: "text" }`.',
  },
  structured_outputs: {
    ...ref('StructuredOutputs'),
    description:
      'A constraint on the answer. Not together with `response_format`, unless that is `{ type: "text" }`.',
  },
  logits_processors: {
    description:
      'Custom steps on the logits, in this order, after the masks and before the penalties: registered names, `{ qualname, args, kwargs }` for a processor built per request, or plain functions (in process only).',
    type: ['array', 'null'],
    items: ref('LogitsProcessorItem'),
    default: [],
    tsType: 'readonly (string | LogitsProcessorConstructor | LogitsProcessor)[] | null',
  },
  inference_xargs: {
    description: 'Values for logits processors that use them.',
    type: ['object', 'null'],
    additionalProperties: {
      type: ['string', 'number', 'array'],
      items: { type: ['string', 'number'] },
    },
  },
};

const reporting: Schema['properties'] = {
  logprobs: orNull('boolean', {
    description: 'Returns the log-probability of every token of the answer.',
    default: false,
  }),
  top_logprobs: orNull('integer', {
    description:
      'With `logprobs`: returns this many best tokens at every position; -1 for the whole vocabulary.',
    default: 0,
    minimum: -1,
    bounds: 'needs `logprobs` when not 0; at most `maxLogprobs`',
  }),
  prompt_logprobs: orNull('integer', {
    description:
      'Returns the log-probability of every prompt token, and of this many best tokens at its position; -1 for the whole vocabulary.',
    minimum: -1,
    bounds: 'not with `stream`, except 0; at most `maxLogprobs`',
  }),
  return_tokens_as_token_ids: orNull('boolean', {
    description: 'Log-probabilities show tokens as `token_id:N` instead of their text.',
    default: false,
  }),
  return_token_ids: orNull('boolean', {
    description: 'Returns the token ids of the prompt and of each choice.',
    default: false,
  }),
  stream: orNull('boolean', {
    description: 'Returns the answer in chunks as it is generated.',
    default: false,
  }),
  stream_options: {
    ...ref('StreamOptions'),
    description: 'What a stream returns in addition to the answer. Only with `stream`.',
  },
  skip_special_tokens: flag(true, 'Omits the text of special tokens from the answer.'),
  spaces_between_special_tokens: flag(
    true,
    'With `skip_special_tokens` off: false writes adjacent special tokens without spaces between them.',
  ),
  include_reasoning: flag(true, 'False omits the reasoning from the response. The model still reasons.'),
  echo: flag(false, 'Puts the content of the last message before the answer if both have the same role.'),
  request_id: {
    description:
      'Id of the request; the id of the response is `chatcmpl-` and this. It is an error if a running request has the same id. Absent: a random UUID.',
    type: 'string',
    minLength: 1,
  },
  user: orNull('string', { description: 'No effect.' }),
};

const prompt: Schema['properties'] = {
  tools: {
    description: 'Tools that the model may call; the chat template shows them to the model.',
    type: ['array', 'null'],
    items: ref('Tool'),
    bounds: 'a custom tool has a name of its own',
  },
  tool_choice: {
    ...ref('ToolChoice'),
    tsType: 'ToolChoice | null',
    description:
      '`none` leaves calls as text, `auto` parses the calls that the model makes, `required` forces at least one call, a named tool forces a call of that tool, `allowed_tools` is `auto` or `required` for some of the tools: calls of others stay text. Absent: `auto` with tools, otherwise `none`.',
    bounds: 'needs `tools` unless `none`; a named tool must be among them',
  },
  parallel_tool_calls: orNull('boolean', {
    description: 'False or null keeps only the first tool call.',
    default: true,
  }),
  functions: {
    description:
      'The older form of `tools`: functions become tools, and a call is returned as `function_call` of the message, with the finish reason `function_call`. Only the first call is returned.',
    type: ['array', 'null'],
    items: ref('FunctionDefinition'),
    bounds: 'not with `tools`',
  },
  function_call: {
    ...ref('FunctionChoice'),
    tsType: 'FunctionChoice | null',
    description: 'The older form of `tool_choice`: `none`, `auto`, or the function that must be called.',
    bounds: 'needs `functions` unless `none`; a named function must be among them; not with `tool_choice`',
  },
  reasoning_effort: {
    description:
      'How much the model should reason. `low`, `medium` and `high` are passed to the template; `minimal` too if the template knows it, otherwise as `low`. `none` turns reasoning off: the template is told so in its own variables, open reasoning is closed, and the model cannot start any.',
    enum: ['none', 'minimal', 'low', 'medium', 'high', null],
  },
  reasoning: {
    ...ref('ReasoningBudget'),
    tsType: 'ReasoningBudget | null',
    description: 'Limit on the length of reasoning: `{ max_tokens }`.',
  },
  thinking_token_budget: orNull('integer', {
    description:
      "vLLM's name of `reasoning.max_tokens`. After this many reasoning tokens the end of reasoning is forced, and the answer starts. No effect if the model does not mark reasoning.",
    minimum: 0,
    bounds: 'not with another `reasoning.max_tokens`; not with beam search',
  }),
  add_generation_prompt: flag(
    true,
    'Ends the prompt with the start of an answer. Turned off by `continue_final_message`.',
  ),
  continue_final_message: flag(
    false,
    'Leaves the last message open, so the answer continues it. Not together with `add_generation_prompt: true`.',
  ),
  add_special_tokens: flag(
    false,
    'Adds the special tokens of the tokenizer to the rendered prompt. Most chat templates already write them.',
  ),
  documents: {
    description:
      'Documents for the model, for templates that show them: any JSON values, often objects with `title` and `text`. It is an error if the template uses a field that a document lacks.',
    type: ['array', 'null'],
    tsType: 'readonly unknown[] | null',
  },
  chat_template: orNull('string', {
    description: 'A Jinja template that replaces the one of the model.',
    bounds: 'not with `allowRequestTemplate: false`',
  }),
  chat_template_kwargs: {
    ...jsonObject('Additional variables for the template.'),
    bounds: 'no `tokenize`; `chat_template` only as text',
  },
  truncate_prompt_tokens: orNull('integer', {
    description:
      'Keeps only this many tokens at the end of the prompt. -1 keeps as many as fit into the context together with `max_completion_tokens`; without that, a full context, so a longer prompt leaves no room and is an error. 0 keeps none, and an empty prompt is an error.',
    minimum: -1,
  }),
  mm_processor_kwargs: jsonObject(
    'Settings for images: each one is refused if a message has media. Use `imageTokens` of the model.',
  ),
};

const serving: Schema['properties'] = {
  priority: {
    description: 'Requests with lower values run first, under the `priority` scheduling policy.',
    type: 'integer',
    default: 0,
    bounds: '0 under `fcfs`',
  },
  speculation: {
    ...ref('Speculation'),
    tsType: 'Speculation | null',
    description:
      'Verifies several draft tokens in one step, which changes no token: false, `auto`, or one method with its settings. Absent or null: the option of the runtime.',
  },
  prediction: {
    ...ref('Prediction'),
    description:
      'The expected answer, for example a file of which a part is changed: its tokens become draft tokens. No effect with `speculation: false`.',
  },
  cache_salt: orNull('string', {
    description: 'Requests share cached prompt prefixes only with requests that have the same salt.',
    minLength: 1,
  }),
  timeout_ms: orNull('integer', {
    description:
      'Milliseconds until the answer must be complete, including waiting. A longer request ends with `TIMEOUT`, over HTTP 408. Absent or null: no limit.',
    minimum: 1,
    maximum: 2 ** 31 - 1,
  }),
  keep_alive: {
    description:
      'How long the model stays in memory after this request: seconds, or a text such as `5m` with `ms`, `s`, `m` or `h`; 0 unloads it at once, -1 keeps it. Other models that need the memory take precedence. Absent or null: `memory.idleMs` of the runtime.',
    type: ['number', 'string', 'null'],
    minimum: -1,
    pattern: '^(-1|[0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))$',
    expected: 'a number of seconds, -1, a text such as 5m, or null',
  },
  adapters: {
    description:
      'LoRA adapters to use in addition to those of `model`; their outputs are summed. Prompts share cached prefixes only with requests that have the same adapters.',
    type: ['array', 'null'],
    items: ref('Adapter'),
    default: [],
    bounds: 'at most 16',
    tsType: 'readonly Adapter[] | null',
  },
  kv_transfer_params: jsonObject(
    'Hands a processed prompt from one process to another: `{ do_remote_decode: true }` processes the prompt and returns a handle; a request with that handle continues from there.',
  ),
};

/** Fields of the OpenAI API that a request may carry and that change nothing. */
export const IGNORED_FIELDS = [
  'audio',
  'metadata',
  'modalities',
  'moderation',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'store',
  'verbosity',
  'web_search_options',
] as const;

const ignored = Object.fromEntries(IGNORED_FIELDS.map((field) => [field, acceptedFrom('OpenAI')]));

/** Definitions of the chat completion request. */
export const chatCompletionDefinitions: Definitions = {
  ChatCompletionRequest: {
    description:
      'A chat completion request, the same in process and over HTTP. `undefined` counts as absent everywhere.',
    type: 'object',
    required: ['messages'],
    properties: {
      messages,
      ...sampling,
      ...llamaSamplers,
      ...stopping,
      ...masks,
      ...reporting,
      ...prompt,
      ...CONTEXT_SHIFT,
      ...serving,
      ...ignored,
    },
    additionalProperties: false,
  },
  ReasoningBudget: {
    description: 'Limit on the length of reasoning.',
    type: ['object', 'null'],
    properties: {
      max_tokens: orNull('integer', {
        description: 'Maximum number of reasoning tokens, over all reasoning sections. Null: no limit.',
        minimum: 0,
      }),
    },
    additionalProperties: false,
  },
  StreamOptions: {
    description: 'What a stream returns in addition to the answer.',
    type: ['object', 'null'],
    properties: {
      include_usage: orNull('boolean', {
        description: 'Sends a last chunk with the usage. Null turns it off.',
        default: true,
      }),
      continuous_usage_stats: orNull('boolean', {
        description: 'Sends the usage so far in every chunk. Needs `include_usage`.',
        default: false,
      }),
      include_obfuscation: acceptedFrom('OpenAI'),
    },
    additionalProperties: false,
  },
};
