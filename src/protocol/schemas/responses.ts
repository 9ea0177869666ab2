/** Requests of OpenAI's responses API. Sampling fields of chats may stand beside its own. */
import { chatFields, EXTRA_FIELDS } from './messages.ts';
import { HISTORY_ITEMS } from './response-history.ts';
import { namespace, noEffect } from './response-tools.ts';
import {
  branch,
  byField,
  type Definitions,
  kinds,
  listOrNull,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  string,
  when,
} from './schema.ts';

/** Fields of this API that change nothing here. */
const WITHOUT_EFFECT = [
  'context_management',
  'moderation',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'stream_options',
] as const;

const onlyNull = (description: string): Schema => ({ description, enum: [null] });
const id: Schema = orNull('string', 'Its id; no effect.');
const status: Schema = noEffect;

function item(
  type: string,
  description: string,
  required: readonly string[],
  more: Schema['properties'],
): Schema {
  return {
    description,
    required: ['type', ...required],
    properties: { type: { description: 'Kind of the item.', const: type }, id, status, ...more },
    additionalProperties: false,
  };
}

function resultItem(type: string, description: string): Schema {
  return item(type, description, ['call_id', 'output'], {
    call_id: string('Id of the call.'),
    output: {
      description: 'What came out: text, or a list of parts.',
      type: ['string', 'array'],
      items: ref('ResponseInputPart'),
    },
    caller: noEffect,
  });
}

const items: Definitions = {
  ResponseInputItem: {
    description: 'An item of the input: a message, a call, its result, or thoughts.',
    type: 'object',
    properties: {
      type: {
        enum: [
          'message',
          'function_call',
          'function_call_output',
          'custom_tool_call',
          'custom_tool_call_output',
          'reasoning',
          'item_reference',
          ...Object.keys(HISTORY_ITEMS),
        ],
      },
    },
    ...when(
      { required: ['type'] },
      byField('type', {
        message: 'ResponseInputMessage',
        function_call: 'ResponseFunctionCallItem',
        function_call_output: 'ResponseFunctionResultItem',
        custom_tool_call: 'ResponseCustomCallItem',
        custom_tool_call_output: 'ResponseCustomResultItem',
        reasoning: 'ResponseReasoningInput',
        item_reference: 'ResponseItemReference',
        ...HISTORY_ITEMS,
      }),
      ref('ResponseInputMessage'),
    ),
    tsType:
      'ResponseInputMessage | ResponseFunctionCallItem | ResponseFunctionResultItem | ResponseCustomCallItem | ResponseCustomResultItem | ResponseReasoningInput | ResponseHostedCallItem | ResponseHostedResultItem | ResponseMcpCallItem | ResponseCompactionItem | ResponseServerItem | ResponseItemReference',
  },
  ResponseInputMessage: branch(
    'A message. Those of an answer can be given back as they are.',
    ['role', 'content'],
    {
      type: { description: 'Kind of the item; may be absent.', const: 'message' },
      role: oneOf('Who speaks.', ['user', 'assistant', 'system', 'developer']),
      content: {
        description: 'Text, or a list of parts.',
        type: ['string', 'array'],
        items: ref('ResponseInputPart'),
      },
      id,
      status,
      phase: noEffect,
    },
  ),
  ResponseInputPart: kinds('A piece of a message.', {
    input_text: 'ResponseTextPart',
    output_text: 'ResponseTextPart',
    refusal: 'ResponseRefusalPart',
    input_image: 'ResponseImagePart',
    input_file: 'ResponseFilePart',
  }),
  ResponseTextPart: branch('Text.', ['type', 'text'], {
    type: oneOf('Kind of the part.', ['input_text', 'output_text']),
    text: string('The text.'),
    annotations: noEffect,
    logprobs: noEffect,
    prompt_cache_breakpoint: noEffect,
  }),
  ResponseRefusalPart: branch('Why a model declined; counts as text.', ['type', 'refusal'], {
    type: { description: 'Kind of the part.', const: 'refusal' },
    refusal: string('The text.'),
  }),
  ResponseImagePart: branch('A picture. Models that only read text refuse it.', ['type', 'image_url'], {
    type: { description: 'Kind of the part.', const: 'input_image' },
    image_url: string('A data URL.', { minLength: 1 }),
    detail: orNull('string', 'How closely to look.'),
    file_id: onlyNull('Files are not kept here.'),
    prompt_cache_breakpoint: noEffect,
  }),
  ResponseFilePart: branch(
    'A file. A file of text is text; of others the model gets the name, and that it cannot read them.',
    ['type'],
    {
      type: { description: 'Kind of the part.', const: 'input_file' },
      file_data: orNull('string', 'A data URL, or Base64 of text in UTF-8.'),
      filename: orNull('string', 'Stands before the text.'),
      file_id: orNull('string', 'Not read: files are not kept here.'),
      file_url: orNull('string', 'Not read: nothing is downloaded.'),
      detail: noEffect,
      prompt_cache_breakpoint: noEffect,
    },
  ),
  ResponseFunctionCallItem: item(
    'function_call',
    'A call that the model made.',
    ['call_id', 'name', 'arguments'],
    {
      call_id: string('Id that the result refers to.'),
      name: string('What was called.', { minLength: 1 }),
      arguments: string('JSON text of the arguments.'),
      caller: noEffect,
      namespace,
    },
  ),
  ResponseFunctionResultItem: resultItem('function_call_output', 'The result of a call.'),
  ResponseCustomCallItem: item(
    'custom_tool_call',
    'A call of a custom tool that the model made.',
    ['call_id', 'name', 'input'],
    {
      call_id: string('Id that the result refers to.'),
      name: string('What was called.', { minLength: 1 }),
      input: string('The text that it was called with.'),
      caller: noEffect,
      namespace,
    },
  ),
  ResponseCustomResultItem: resultItem('custom_tool_call_output', 'The result of a call of a custom tool.'),
  ResponseReasoningInput: item('reasoning', 'Thoughts of an earlier answer.', [], {
    content: listOrNull('The thoughts.', ref('ResponseReasoningText')),
    encrypted_content: orNull(
      'string',
      'Without content: the thoughts of an answer of this server. Those of other servers say nothing here.',
    ),
    summary: listOrNull('Without both: stands for the thoughts.', ref('ResponseReasoningText')),
  }),
  ResponseItemReference: branch('An item of a stored response, by its id.', ['type', 'id'], {
    type: { description: 'Kind of the item.', const: 'item_reference' },
    id: string('Its id.', { minLength: 1 }),
  }),
  ResponseReasoningText: object('A piece of thoughts.', ['type', 'text'], {
    type: oneOf('Kind of the part.', ['reasoning_text', 'summary_text', 'text']),
    text: string('The thoughts.'),
  }),
};

/** Definitions of these requests. */
export const responsesDefinitions: Definitions = {
  ResponseRequest: object('A request of the responses API, the same in process and over HTTP.', ['input'], {
    input: {
      description: 'What is asked: a text of the user, or items.',
      type: ['string', 'array'],
      items: ref('ResponseInputItem'),
    },
    ...chatFields('model'),
    instructions: orNull(
      'string',
      'Stands before the input as a message of the system. It is not kept for the next response.',
    ),
    previous_response_id: orNull(
      'string',
      'A stored response: its input and output stand before this input.',
      { minLength: 1 },
    ),
    store: orNull(
      'boolean',
      'Keeps the response for `previous_response_id`. The store is bounded; the oldest ones give way.',
      { default: true },
    ),
    max_output_tokens: orNull(
      'integer',
      'Most tokens of the answer, thoughts included. Absent: what is left of the context.',
      { minimum: 1 },
    ),
    stream: orNull('boolean', 'Answers in events as tokens come.', { default: false }),
    ...chatFields('temperature', 'top_p', 'top_k'),
    top_logprobs: orNull(
      'integer',
      'Reports the log-probability of every token of the text, and of this many best tokens there.',
      { minimum: 0, bounds: 'at most `maxLogprobs`' },
    ),
    include: listOrNull(
      '`message.output_text.logprobs` reports log-probabilities, `reasoning.encrypted_content` the thoughts in a form to give back. Others have no effect.',
      { type: 'string' },
    ),
    text: ref('ResponseText', 'The form of the answer.'),
    reasoning: ref('ResponseReasoning', 'How much the model should reason.'),
    tools: listOrNull(
      'Functions and custom tools that the model may call; the chat template shows them.',
      ref('ResponseTool'),
    ),
    tool_choice: {
      description: 'Which tools the model may or must call.',
      type: ['string', 'object', 'null'],
      ...when({ type: 'object' }, ref('ResponseToolChoice'), { enum: ['none', 'auto', 'required', null] }),
      tsType: "'none' | 'auto' | 'required' | ResponseToolChoice | null",
    },
    ...chatFields('parallel_tool_calls'),
    truncation: oneOf(
      '`auto` drops the oldest messages where the input does not fit into the context.',
      ['auto', 'disabled', null],
      { default: 'disabled' },
    ),
    metadata: {
      description: 'Texts that the response repeats.',
      type: ['object', 'null'],
      additionalProperties: { type: 'string' },
    },
    user: orNull('string', 'No effect.'),
    background: oneOf('Not served: false or null.', [false, null]),
    conversation: onlyNull('Not served: null.'),
    prompt: onlyNull('Not served: null.'),
    ...Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, noEffect])),
    ...chatFields('stop', ...EXTRA_FIELDS),
  }),
  ...items,
  ResponseText: object(
    'The form of the answer.',
    [],
    {
      format: ref('ResponseTextFormat', 'What the answer follows.'),
      verbosity: noEffect,
    },
    { type: ['object', 'null'] },
  ),
  ResponseTextFormat: {
    description: 'What the answer follows.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: oneOf('Kind of the format.', ['text', 'json_object', 'json_schema']),
      name: orNull('string', 'No effect.'),
      description: orNull('string', 'No effect.'),
      schema: {
        description: 'The schema. Required with `json_schema`.',
        type: 'object',
        tsType: 'JsonObject',
      },
      strict: orNull('boolean', 'No effect: the answer always follows the schema.'),
    },
    ...when({ required: ['type'], properties: { type: { const: 'json_schema' } } }, { required: ['schema'] }),
    additionalProperties: false,
  },
  ResponseReasoning: object(
    'How much the model should reason.',
    [],
    {
      effort: oneOf('As `reasoning_effort` of a chat; `xhigh` and `max` count as `high`.', [
        'none',
        'minimal',
        'low',
        'medium',
        'high',
        'xhigh',
        'max',
        null,
      ]),
      max_tokens: orNull('integer', 'Tokens of reasoning at most, as `reasoning.max_tokens` of a chat.', {
        minimum: 0,
      }),
      summary: oneOf('Returns the thoughts as the summary of a `reasoning` item, not as its content.', [
        'auto',
        'concise',
        'detailed',
        null,
      ]),
      generate_summary: noEffect,
      context: noEffect,
      mode: noEffect,
    },
    { type: ['object', 'null'] },
  ),
};
