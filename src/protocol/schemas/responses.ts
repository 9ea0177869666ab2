/** Requests of OpenAI's responses API. Sampling fields of chats may stand beside its own. */
import { chatFields, EXTRA_FIELDS } from './messages.ts';
import { HISTORY_ITEMS } from './response-history.ts';
import { noEffect } from './response-tools.ts';
import { byField, type Definitions, orNull, ref, type Schema } from './schema.ts';

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
const id: Schema = { description: 'Its id; no effect.', type: ['string', 'null'] };
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
    call_id: { description: 'Id of the call.', type: 'string' },
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
          ...Object.keys(HISTORY_ITEMS),
        ],
      },
    },
    if: { required: ['type'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: byField('type', {
      message: 'ResponseInputMessage',
      function_call: 'ResponseFunctionCallItem',
      function_call_output: 'ResponseFunctionResultItem',
      custom_tool_call: 'ResponseCustomCallItem',
      custom_tool_call_output: 'ResponseCustomResultItem',
      reasoning: 'ResponseReasoningInput',
      ...HISTORY_ITEMS,
    }),
    else: ref('ResponseInputMessage'),
    tsType:
      'ResponseInputMessage | ResponseFunctionCallItem | ResponseFunctionResultItem | ResponseCustomCallItem | ResponseCustomResultItem | ResponseReasoningInput | ResponseHostedCallItem | ResponseHostedResultItem | ResponseMcpCallItem | ResponseCompactionItem | ResponseServerItem',
  },
  ResponseInputMessage: {
    description: 'A message. Those of an answer can be given back as they are.',
    required: ['role', 'content'],
    properties: {
      type: { description: 'Kind of the item; may be absent.', const: 'message' },
      role: { description: 'Who speaks.', enum: ['user', 'assistant', 'system', 'developer'] },
      content: {
        description: 'Text, or a list of parts.',
        type: ['string', 'array'],
        items: ref('ResponseInputPart'),
      },
      id,
      status,
      phase: noEffect,
    },
    additionalProperties: false,
  },
  ResponseInputPart: {
    description: 'A piece of a message.',
    type: 'object',
    required: ['type'],
    properties: { type: { enum: ['input_text', 'output_text', 'refusal', 'input_image', 'input_file'] } },
    ...byField('type', {
      input_text: 'ResponseTextPart',
      output_text: 'ResponseTextPart',
      refusal: 'ResponseRefusalPart',
      input_image: 'ResponseImagePart',
      input_file: 'ResponseFilePart',
    }),
  },
  ResponseTextPart: {
    description: 'Text.',
    required: ['type', 'text'],
    properties: {
      type: { description: 'Kind of the part.', enum: ['input_text', 'output_text'] },
      text: { description: 'The text.', type: 'string' },
      annotations: noEffect,
      logprobs: noEffect,
      prompt_cache_breakpoint: noEffect,
    },
    additionalProperties: false,
  },
  ResponseRefusalPart: {
    description: 'Why a model declined; counts as text.',
    required: ['type', 'refusal'],
    properties: {
      type: { description: 'Kind of the part.', const: 'refusal' },
      refusal: { description: 'The text.', type: 'string' },
    },
    additionalProperties: false,
  },
  ResponseImagePart: {
    description: 'A picture. Models that only read text refuse it.',
    required: ['type', 'image_url'],
    properties: {
      type: { description: 'Kind of the part.', const: 'input_image' },
      image_url: { description: 'A data URL.', type: 'string', minLength: 1 },
      detail: { description: 'How closely to look.', type: ['string', 'null'] },
      file_id: onlyNull('Files are not kept here.'),
      prompt_cache_breakpoint: noEffect,
    },
    additionalProperties: false,
  },
  ResponseFilePart: {
    description:
      'A file. A file of text is text; of others the model gets the name, and that it cannot read them.',
    required: ['type'],
    properties: {
      type: { description: 'Kind of the part.', const: 'input_file' },
      file_data: orNull('string', { description: 'A data URL, or Base64 of text in UTF-8.' }),
      filename: orNull('string', { description: 'Stands before the text.' }),
      file_id: orNull('string', { description: 'Not read: files are not kept here.' }),
      file_url: orNull('string', { description: 'Not read: nothing is downloaded.' }),
      detail: noEffect,
      prompt_cache_breakpoint: noEffect,
    },
    additionalProperties: false,
  },
  ResponseFunctionCallItem: item(
    'function_call',
    'A call that the model made.',
    ['call_id', 'name', 'arguments'],
    {
      call_id: { description: 'Id that the result refers to.', type: 'string' },
      name: { description: 'What was called.', type: 'string', minLength: 1 },
      arguments: { description: 'JSON text of the arguments.', type: 'string' },
      caller: noEffect,
      namespace: noEffect,
    },
  ),
  ResponseFunctionResultItem: resultItem('function_call_output', 'The result of a call.'),
  ResponseCustomCallItem: item(
    'custom_tool_call',
    'A call of a custom tool that the model made.',
    ['call_id', 'name', 'input'],
    {
      call_id: { description: 'Id that the result refers to.', type: 'string' },
      name: { description: 'What was called.', type: 'string', minLength: 1 },
      input: { description: 'The text that it was called with.', type: 'string' },
      caller: noEffect,
      namespace: noEffect,
    },
  ),
  ResponseCustomResultItem: resultItem('custom_tool_call_output', 'The result of a call of a custom tool.'),
  ResponseReasoningInput: item('reasoning', 'Thoughts of an earlier answer.', [], {
    content: {
      description: 'The thoughts.',
      type: ['array', 'null'],
      items: ref('ResponseReasoningText'),
    },
    encrypted_content: orNull('string', {
      description:
        'Without content: the thoughts of an answer of this server. Those of other servers say nothing here.',
    }),
    summary: {
      description: 'Without both: stands for the thoughts.',
      type: ['array', 'null'],
      items: ref('ResponseReasoningText'),
    },
  }),
  ResponseReasoningText: {
    description: 'A piece of thoughts.',
    type: 'object',
    required: ['type', 'text'],
    properties: {
      type: { description: 'Kind of the part.', enum: ['reasoning_text', 'summary_text', 'text'] },
      text: { description: 'The thoughts.', type: 'string' },
    },
    additionalProperties: false,
  },
};

/** Definitions of these requests. */
export const responsesDefinitions: Definitions = {
  ResponseRequest: {
    description: 'A request of the responses API, the same in process and over HTTP.',
    type: 'object',
    required: ['input'],
    properties: {
      input: {
        description: 'What is asked: a text of the user, or items.',
        type: ['string', 'array'],
        items: ref('ResponseInputItem'),
      },
      ...chatFields('model'),
      instructions: orNull('string', {
        description:
          'Stands before the input as a message of the system. It is not kept for the next response.',
      }),
      previous_response_id: orNull('string', {
        description: 'A stored response: its input and output stand before this input.',
        minLength: 1,
      }),
      store: orNull('boolean', {
        description:
          'Keeps the response for `previous_response_id`. The store is bounded; the oldest ones give way.',
        default: true,
      }),
      max_output_tokens: orNull('integer', {
        description: 'Most tokens of the answer, thoughts included. Absent: what is left of the context.',
        minimum: 1,
      }),
      stream: orNull('boolean', { description: 'Answers in events as tokens come.', default: false }),
      ...chatFields('temperature', 'top_p', 'top_k'),
      top_logprobs: orNull('integer', {
        description:
          'Reports the log-probability of every token of the text, and of this many best tokens there.',
        minimum: 0,
        bounds: 'at most `maxLogprobs`',
      }),
      include: {
        description:
          '`message.output_text.logprobs` reports log-probabilities, `reasoning.encrypted_content` the thoughts in a form to give back. Others have no effect.',
        type: ['array', 'null'],
        items: { type: 'string' },
      },
      text: { ...ref('ResponseText'), description: 'The form of the answer.' },
      reasoning: { ...ref('ResponseReasoning'), description: 'How much the model should reason.' },
      tools: {
        description: 'Functions and custom tools that the model may call; the chat template shows them.',
        type: ['array', 'null'],
        items: ref('ResponseTool'),
      },
      tool_choice: {
        description: 'Which tools the model may or must call.',
        type: ['string', 'object', 'null'],
        if: { type: 'object' },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: ref('ResponseToolChoice'),
        else: { enum: ['none', 'auto', 'required', null] },
        tsType: "'none' | 'auto' | 'required' | ResponseToolChoice | null",
      },
      ...chatFields('parallel_tool_calls'),
      truncation: {
        description: '`auto` drops the oldest messages where the input does not fit into the context.',
        enum: ['auto', 'disabled', null],
        default: 'disabled',
      },
      metadata: {
        description: 'Texts that the response repeats.',
        type: ['object', 'null'],
        additionalProperties: { type: 'string' },
      },
      user: orNull('string', { description: 'No effect.' }),
      background: { description: 'Not served: false or null.', enum: [false, null] },
      conversation: onlyNull('Not served: null.'),
      prompt: onlyNull('Not served: null.'),
      ...Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, noEffect])),
      ...chatFields('stop', ...EXTRA_FIELDS),
    },
    additionalProperties: false,
  },
  ...items,
  ResponseText: {
    description: 'The form of the answer.',
    type: ['object', 'null'],
    properties: {
      format: { ...ref('ResponseTextFormat'), description: 'What the answer follows.' },
      verbosity: noEffect,
    },
    additionalProperties: false,
  },
  ResponseTextFormat: {
    description: 'What the answer follows.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: { description: 'Kind of the format.', enum: ['text', 'json_object', 'json_schema'] },
      name: { description: 'No effect.', type: ['string', 'null'] },
      description: { description: 'No effect.', type: ['string', 'null'] },
      schema: { description: 'With `json_schema`: the schema.', type: 'object', tsType: 'JsonObject' },
      strict: { description: 'No effect: the answer always follows the schema.', type: ['boolean', 'null'] },
    },
    if: { required: ['type'], properties: { type: { const: 'json_schema' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ['schema'] },
    additionalProperties: false,
  },
  ResponseReasoning: {
    description: 'How much the model should reason.',
    type: ['object', 'null'],
    properties: {
      effort: {
        description: 'As `reasoning_effort` of a chat; `xhigh` and `max` count as `high`.',
        enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', null],
      },
      max_tokens: {
        description: 'Tokens of reasoning at most, as `reasoning.max_tokens` of a chat.',
        type: ['integer', 'null'],
        minimum: 0,
      },
      summary: {
        description: 'Returns the thoughts as the summary of a `reasoning` item, not as its content.',
        enum: ['auto', 'concise', 'detailed', null],
      },
      generate_summary: noEffect,
      context: noEffect,
      mode: noEffect,
    },
    additionalProperties: false,
  },
};
