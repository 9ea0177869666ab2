/** Requests of OpenAI's responses API. Sampling fields of chats are accepted, too. */
import { chatFields, EXTRA_FIELDS } from './chat-completion.ts';
import { HISTORY_ITEMS } from './response-history.ts';
import { namespace, noEffect } from './response-tools.ts';
import * as s from './schema.ts';

/** Fields of this API that are accepted and have no effect. */
const WITHOUT_EFFECT = [
  ...[
    'context_management',
    'moderation',
    'prompt_cache_key',
    'prompt_cache_options',
    'prompt_cache_retention',
  ],
  ...['safety_identifier', 'service_tier', 'stream_options'],
];

const onlyNull = (description: string): s.Schema => s.oneOf(description, [null]);
const id: s.Schema = s.stringOrNull('Its id; no effect.');
const status: s.Schema = noEffect;

function item(
  type: string,
  description: string,
  required: readonly string[],
  more: s.Schema['properties'],
): s.Schema {
  return s.variant(type, 'item', description, required, { id, status, ...more });
}

/** Returns the schema of a call. `given` is the field with the arguments. */
function callItem(type: string, description: string, given: NonNullable<s.Schema['properties']>): s.Schema {
  return item(type, description, ['call_id', 'name', ...Object.keys(given)], {
    call_id: s.string('Id that the result refers to.'),
    name: s.string('Name of the called tool.', { minLength: 1 }),
    ...given,
    caller: noEffect,
    namespace,
  });
}

function resultItem(type: string, description: string): s.Schema {
  return item(type, description, ['call_id', 'output'], {
    call_id: s.string('Id of the call.'),
    output: {
      description: 'The result: text, or a list of parts.',
      type: ['string', 'array'],
      items: s.ref('ResponseInputPart'),
    },
    caller: noEffect,
  });
}

/** Type of an item -> its definition. An item without a type is a message. */
const KINDS: Readonly<Record<string, string>> = {
  message: 'ResponseInputMessage',
  function_call: 'ResponseFunctionCallItem',
  function_call_output: 'ResponseFunctionResultItem',
  custom_tool_call: 'ResponseCustomCallItem',
  custom_tool_call_output: 'ResponseCustomResultItem',
  reasoning: 'ResponseReasoningInput',
  item_reference: 'ResponseItemReference',
  ...HISTORY_ITEMS,
};

const items: s.Definitions = {
  ResponseInputItem: {
    description: 'An item of the input: a message, a call, its result, or thoughts.',
    type: 'object',
    properties: { type: { enum: Object.keys(KINDS) } },
    ...s.when({ required: ['type'] }, s.byField('type', KINDS), s.ref('ResponseInputMessage')),
    tsType: [...new Set(Object.values(KINDS))].join(' | '),
  },
  ResponseInputMessage: s.branch(
    'A message. Those of an answer can be passed back unchanged.',
    ['role', 'content'],
    {
      type: s.constant('Kind of the item; may be absent.', 'message'),
      role: s.oneOf('Who speaks.', ['user', 'assistant', 'system', 'developer']),
      content: {
        description: 'Text, or a list of parts.',
        type: ['string', 'array'],
        items: s.ref('ResponseInputPart'),
      },
      id,
      status,
      phase: noEffect,
    },
  ),
  ResponseInputPart: s.kinds('A piece of a message.', {
    input_text: 'ResponseTextPart',
    output_text: 'ResponseTextPart',
    refusal: 'ResponseRefusalPart',
    input_image: 'ResponseImagePart',
    input_file: 'ResponseFilePart',
  }),
  ResponseTextPart: s.branch('Text.', ['type', 'text'], {
    type: s.oneOf('Kind of the part.', ['input_text', 'output_text']),
    text: s.string('The text.'),
    annotations: noEffect,
    logprobs: noEffect,
    prompt_cache_breakpoint: noEffect,
  }),
  ResponseRefusalPart: s.variant('refusal', 'part', 'Why a model declined; counts as text.', ['refusal'], {
    refusal: s.string('The text.'),
  }),
  ResponseImagePart: s.variant(
    'input_image',
    'part',
    'A picture. Models that only read text refuse it.',
    ['image_url'],
    {
      image_url: s.string('A data URL.', { minLength: 1 }),
      detail: s.stringOrNull('How closely to look.'),
      file_id: onlyNull('Files are not kept here.'),
      prompt_cache_breakpoint: noEffect,
    },
  ),
  ResponseFilePart: s.variant(
    'input_file',
    'part',
    'A file. A file of text is text; of others the model gets the name, and that it cannot read them.',
    [],
    {
      file_data: s.stringOrNull('A data URL, or Base64 of text in UTF-8.'),
      filename: s.stringOrNull('Placed before the text.'),
      file_id: s.stringOrNull('Not read: files are not kept here.'),
      file_url: s.stringOrNull('Not read: nothing is downloaded.'),
      detail: noEffect,
      prompt_cache_breakpoint: noEffect,
    },
  ),
  ResponseFunctionCallItem: callItem('function_call', 'A call that the model made.', {
    arguments: s.string('JSON text of the arguments.'),
  }),
  ResponseFunctionResultItem: resultItem('function_call_output', 'The result of a call.'),
  ResponseCustomCallItem: callItem('custom_tool_call', 'A call of a custom tool that the model made.', {
    input: s.string('The text that it was called with.'),
  }),
  ResponseCustomResultItem: resultItem('custom_tool_call_output', 'The result of a call of a custom tool.'),
  ResponseReasoningInput: item('reasoning', 'Thoughts of an earlier answer.', [], {
    content: s.listOrNull('The reasoning.', s.ref('ResponseReasoningText')),
    encrypted_content: s.stringOrNull(
      'Without `content`: the reasoning of an answer of this server. That of other servers is ignored.',
    ),
    summary: s.listOrNull('Without both: used as the reasoning.', s.ref('ResponseReasoningText')),
  }),
  ResponseItemReference: s.variant(
    'item_reference',
    'item',
    'An item of a stored response, by its id.',
    ['id'],
    { id: s.string('Its id.', { minLength: 1 }) },
  ),
  ResponseReasoningText: s.object('A piece of thoughts.', ['type', 'text'], {
    type: s.oneOf('Kind of the part.', ['reasoning_text', 'summary_text', 'text']),
    text: s.string('The reasoning.'),
  }),
};

export const responsesDefinitions: s.Definitions = {
  ResponseRequest: s.object('A request of the responses API, the same in process and over HTTP.', ['input'], {
    input: {
      description: 'The input: a text of the user, or items.',
      type: ['string', 'array'],
      items: s.ref('ResponseInputItem'),
    },
    ...chatFields('model'),
    instructions: s.stringOrNull(
      'Placed before the input as a system message. It is not kept for the next response.',
    ),
    previous_response_id: s.stringOrNull('A stored response: its input and output come before this input.', {
      minLength: 1,
    }),
    store: s.flagOrNull(
      true,
      'Keeps the response for `previous_response_id`. The store is limited; the oldest responses are removed.',
    ),
    max_output_tokens: s.integerOrNull(
      'Maximum number of tokens of the answer, including reasoning. Absent: the rest of the context.',
      { minimum: 1 },
    ),
    stream: s.flagOrNull(false, 'Returns events as tokens are generated.'),
    ...chatFields('temperature', 'top_p', 'top_k'),
    top_logprobs: s.integerOrNull(
      'Returns the log-probability of every token of the text, and of this many best tokens at its position.',
      { minimum: 0, bounds: 'at most `maxLogprobs`' },
    ),
    include: s.listOrNull(
      '`message.output_text.logprobs` returns log-probabilities, `reasoning.encrypted_content` the reasoning in a form to pass back. Others have no effect.',
      { type: 'string' },
    ),
    text: s.ref('ResponseText', 'The format of the answer.'),
    reasoning: s.ref('ResponseReasoning', 'How much the model should reason.'),
    tools: s.listOrNull(
      'Functions and custom tools that the model may call; the chat template shows them.',
      s.ref('ResponseTool'),
    ),
    tool_choice: {
      description: 'Which tools the model may or must call.',
      type: ['string', 'object', 'null'],
      ...s.when({ type: 'object' }, s.ref('ResponseToolChoice'), {
        enum: ['none', 'auto', 'required', null],
      }),
      tsType: "'none' | 'auto' | 'required' | ResponseToolChoice | null",
    },
    ...chatFields('parallel_tool_calls'),
    truncation: s.oneOf(
      '`auto` drops the oldest messages if the input does not fit into the context.',
      ['auto', 'disabled', null],
      { default: 'disabled' },
    ),
    metadata: {
      description: 'Texts that the response returns.',
      type: ['object', 'null'],
      additionalProperties: { type: 'string' },
    },
    user: s.stringOrNull('No effect.'),
    background: s.oneOf('Not supported: only false or null.', [false, null]),
    conversation: onlyNull('Not supported: only null.'),
    prompt: onlyNull('Not supported: only null.'),
    ...s.accepted('OpenAI', ...WITHOUT_EFFECT),
    ...chatFields('stop', ...EXTRA_FIELDS),
  }),
  ...items,
  ResponseText: s.objectOrNull('The format of the answer.', {
    format: s.ref('ResponseTextFormat', 'The format that the answer follows.'),
    verbosity: noEffect,
  }),
  ResponseTextFormat: {
    description: 'The format that the answer follows.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: s.oneOf('Kind of the format.', ['text', 'json_object', 'json_schema']),
      name: s.stringOrNull('No effect.'),
      description: s.stringOrNull('No effect.'),
      schema: {
        description: 'The schema. Required with `json_schema`.',
        type: 'object',
        tsType: 'JsonObject',
      },
      strict: s.booleanOrNull('No effect: the answer always follows the schema.'),
    },
    ...s.when(
      { required: ['type'], properties: { type: { const: 'json_schema' } } },
      { required: ['schema'] },
    ),
    additionalProperties: false,
  },
  ResponseReasoning: s.objectOrNull('How much the model should reason.', {
    effort: s.oneOf('As `reasoning_effort` of a chat.', [
      'none',
      'minimal',
      'low',
      'medium',
      'high',
      'xhigh',
      'max',
      null,
    ]),
    max_tokens: s.integerOrNull('Maximum number of reasoning tokens, as `reasoning.max_tokens` of a chat.', {
      minimum: 0,
    }),
    summary: s.oneOf('Returns the reasoning as the summary of a `reasoning` item, not as its content.', [
      'auto',
      'concise',
      'detailed',
      null,
    ]),
    generate_summary: noEffect,
    context: noEffect,
    mode: noEffect,
  }),
};
