/** Requests of Anthropic's messages API. Sampling fields of chats may stand beside its own. */
import { chatCompletionDefinitions } from './chat-completion.ts';
import { LLAMA_SAMPLERS } from './llama-samplers.ts';
import { acceptedFrom, byField, type Definitions, orNull, ref, type Schema } from './schema.ts';

/** Fields of a chat completion request that other APIs take as well, with the same meaning. */
export const EXTRA_FIELDS = [
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'logit_bias',
  'min_p',
  ...LLAMA_SAMPLERS,
  'seed',
  'thinking_token_budget',
  'min_tokens',
  'stop_token_ids',
  'include_stop_str_in_output',
  'ignore_eos',
  'allowed_token_ids',
  'bad_words',
  'structured_outputs',
  'logits_processors',
  'inference_xargs',
  'skip_special_tokens',
  'request_id',
  'documents',
  'chat_template',
  'chat_template_kwargs',
  'truncate_prompt_tokens',
  'priority',
  'speculation',
  'prediction',
  'cache_salt',
  'timeout_ms',
  'keep_alive',
  'adapters',
] as const;

/** Those and others of the chat completion request, by name. */
export function chatFields(...names: readonly string[]): NonNullable<Schema['properties']> {
  const known = chatCompletionDefinitions['ChatCompletionRequest']!.properties!;
  return Object.fromEntries(names.map((name) => [name, known[name]!]));
}

/** Fields of Anthropic's API that change nothing here. */
const WITHOUT_EFFECT = [
  'metadata',
  'service_tier',
  'cache_control',
  'container',
  'context_management',
  'diagnostics',
  'inference_geo',
  'speed',
  'user_profile_id',
  'workspace_id',
] as const;

const noEffect = acceptedFrom('Anthropic');

/** Blocks of conversations with Anthropic's own models that no other model can read. */
const SERVER_BLOCKS = [
  'redacted_thinking',
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
] as const;

/** One kind of content, with what every kind may have. */
function block(
  type: string,
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
): Schema {
  return {
    description,
    type: 'object',
    required: ['type', ...required],
    properties: {
      type: { description: 'Kind of the block.', const: type },
      ...properties,
      cache_control: { description: 'No effect: every prompt is cached.' },
    },
    additionalProperties: false,
  };
}

const text: Schema = { description: 'The text.', type: 'string' };

const blocks: Definitions = {
  MessageBlock: {
    description: 'A piece of a message.',
    type: 'object',
    required: ['type'],
    properties: {
      type: {
        enum: ['text', 'image', 'document', 'thinking', 'tool_use', 'tool_result', ...SERVER_BLOCKS],
      },
    },
    ...byField('type', {
      text: 'MessageTextBlock',
      image: 'MessageImageBlock',
      document: 'MessageDocumentBlock',
      thinking: 'MessageThinkingBlock',
      tool_use: 'MessageToolUseBlock',
      tool_result: 'MessageToolResultBlock',
      ...Object.fromEntries(SERVER_BLOCKS.map((type) => [type, 'MessageServerBlock'])),
    }),
  },
  MessageServerBlock: {
    description: "Encrypted thoughts, or what a tool of Anthropic's servers did. The model does not see it.",
    required: ['type'],
    properties: { type: { description: 'Kind of the block.', enum: SERVER_BLOCKS } },
    additionalProperties: true,
  },
  MessageResultBlock: {
    description: 'A piece of the result of a call.',
    type: 'object',
    required: ['type'],
    properties: { type: { enum: ['text', 'image', 'document'] } },
    ...byField('type', {
      text: 'MessageTextBlock',
      image: 'MessageImageBlock',
      document: 'MessageDocumentBlock',
    }),
  },
  MessageTextBlock: block('text', 'Text.', ['text'], { text, citations: noEffect }),
  MessageImageBlock: block('image', 'A picture. Models that only read text refuse it.', ['source'], {
    source: {
      description: 'Where the data lies.',
      type: 'object',
      required: ['type'],
      properties: { type: { description: 'Kind of the source.', enum: ['base64', 'url'] } },
      ...byField('type', { base64: 'MessageBase64Source', url: 'MessageUrlSource' }),
    },
    transformations: noEffect,
  }),
  MessageBase64Source: {
    description: 'Data in the request itself.',
    required: ['type', 'data', 'media_type'],
    properties: {
      type: { description: 'Kind of the source.', const: 'base64' },
      data: { description: 'The bytes as Base64.', type: 'string' },
      media_type: { description: 'For example `image/png`.', type: 'string' },
    },
    additionalProperties: false,
  },
  MessageUrlSource: {
    description: 'Data by its address.',
    required: ['type', 'url'],
    properties: {
      type: { description: 'Kind of the source.', const: 'url' },
      url: { description: 'A data URL.', type: 'string', minLength: 1 },
    },
    additionalProperties: false,
  },
  MessageDocumentBlock: block('document', 'A document of plain text.', ['source'], {
    source: {
      description: 'The text.',
      type: 'object',
      required: ['type', 'data'],
      properties: {
        type: { description: 'Kind of the source.', const: 'text' },
        data: text,
        media_type: { description: 'Of the text.', const: 'text/plain' },
      },
      additionalProperties: false,
    },
    title: orNull('string', { description: 'Stands before the text.' }),
    context: orNull('string', { description: 'Stands before the text, behind the title.' }),
    citations: noEffect,
  }),
  MessageThinkingBlock: block('thinking', 'Thoughts of the model.', ['thinking'], {
    thinking: { description: 'The thoughts.', type: 'string' },
    signature: { description: 'No effect: thoughts are not signed here.' },
  }),
  MessageToolUseBlock: block('tool_use', 'A call that the model made.', ['id', 'name', 'input'], {
    id: { description: 'Id that the result refers to.', type: 'string' },
    name: { description: 'What was called.', type: 'string', minLength: 1 },
    input: {
      description: 'The arguments.',
      type: 'object',
      tsType: 'JsonObject | unknown',
    },
    caller: noEffect,
    toolset_name: noEffect,
  }),
  MessageToolResultBlock: block('tool_result', 'The result of a call.', ['tool_use_id'], {
    tool_use_id: { description: 'Id of the call.', type: 'string' },
    content: {
      description: 'What came out. Absent: nothing.',
      type: ['string', 'array', 'null'],
      items: ref('MessageResultBlock'),
    },
    is_error: { description: 'No effect: the model reads what the content says.', type: ['boolean', 'null'] },
    toolset_name: noEffect,
  }),
};

/** Tools that a caller runs and whose schemas Anthropic's models know: `bash_20250124` and so on. */
const CLIENT_TOOL = '^(bash|text_editor|memory)_[0-9]{8}$';

const toolName: Schema = { description: 'Name that the model calls it by.', type: 'string', minLength: 1 };

const toolExtras: NonNullable<Schema['properties']> = {
  strict: {
    description: 'Whether calls that the model makes by itself must follow the schema.',
    type: ['boolean', 'null'],
  },
  cache_control: noEffect,
  allowed_callers: noEffect,
  defer_loading: noEffect,
  eager_input_streaming: noEffect,
  input_examples: noEffect,
};

const system: Schema = {
  description: 'Instructions, as a text or as blocks of text.',
  type: ['string', 'array', 'null'],
  items: ref('MessageTextBlock'),
};

const ownFields: NonNullable<Schema['properties']> = {
  messages: {
    description: 'The chat so far, oldest message first.',
    type: 'array',
    items: ref('MessageTurn'),
  },
  ...chatFields('model'),
  system,
  ...chatFields('temperature', 'top_p', 'top_k'),
  stop_sequences: {
    description: 'Texts that end the answer.',
    type: ['array', 'null'],
    items: { type: 'string', minLength: 1 },
  },
  stream: orNull('boolean', { description: 'Answers in events as tokens come.', default: false }),
  thinking: { ...ref('MessageThinking'), description: 'Whether the model thinks before it answers.' },
  tools: {
    description: 'What the model may call; the chat template shows it.',
    type: ['array', 'null'],
    items: ref('MessageTool'),
  },
  tool_choice: { ...ref('MessageToolChoice'), description: 'Which tools the model may or must call.' },
  output_config: { ...ref('MessageOutputConfig'), description: 'Effort, and the form of the answer.' },
  ...Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, noEffect])),
  ...chatFields(...EXTRA_FIELDS),
};

/** Definitions of these requests. */
export const messagesDefinitions: Definitions = {
  MessageRequest: {
    description: 'A request of the messages API, the same in process and over HTTP.',
    type: 'object',
    required: ['messages', 'max_tokens'],
    properties: {
      ...ownFields,
      max_tokens: {
        description: 'Most tokens of the answer. More than the context has left counts as that.',
        type: 'integer',
        minimum: 1,
      },
    },
    additionalProperties: false,
  },
  MessageCountRequest: {
    description: 'The same request, of which only the tokens of its prompt are counted.',
    type: 'object',
    required: ['messages'],
    properties: {
      ...ownFields,
      max_tokens: orNull('integer', { description: 'No effect on the count.', minimum: 1 }),
    },
    additionalProperties: false,
  },
  MessageTurn: {
    description: 'A message. An assistant message at the end is continued by the answer.',
    type: 'object',
    required: ['role', 'content'],
    properties: {
      role: { description: 'Who speaks.', enum: ['user', 'assistant', 'system'] },
      content: {
        description: 'Text, or a list of blocks.',
        type: ['string', 'array'],
        items: ref('MessageBlock'),
      },
    },
    additionalProperties: false,
  },
  ...blocks,
  MessageThinking: {
    description: 'Whether the model thinks before it answers.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: {
        description:
          '`disabled` switches reasoning off; `enabled` and `adaptive` switch it on where the template can. Absent: as the model does by itself.',
        enum: ['enabled', 'adaptive', 'disabled'],
      },
      budget_tokens: {
        description: 'Tokens of thought at most: then their end is forced, and the answer begins.',
        type: ['integer', 'null'],
        minimum: 1,
      },
      display: {
        description: '`omitted` leaves the thoughts out of the answer.',
        enum: ['summarized', 'omitted', null],
      },
    },
    additionalProperties: false,
  },
  MessageTool: {
    description: 'A tool of the caller.',
    type: 'object',
    if: { required: ['type'], properties: { type: { type: 'string', pattern: CLIENT_TOOL } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: ref('MessageClientTool'),
    else: ref('MessageCustomTool'),
    tsType: 'MessageCustomTool | MessageClientTool',
  },
  MessageClientTool: {
    description: "A tool of the caller whose schema is Anthropic's.",
    required: ['type', 'name'],
    properties: {
      type: {
        description: 'Kind and version of the tool.',
        type: 'string',
        pattern: CLIENT_TOOL,
      },
      name: toolName,
      max_characters: noEffect,
      ...toolExtras,
    },
    additionalProperties: false,
  },
  MessageCustomTool: {
    description: 'A tool with a schema of its own.',
    required: ['name', 'input_schema'],
    properties: {
      type: {
        description: 'Kind of the tool.',
        enum: ['custom', null],
        expected:
          "custom, null, bash_*, text_editor_* or memory_*: tools that run on Anthropic's servers are not served",
      },
      name: toolName,
      description: { description: 'What it does, for the model.', type: ['string', 'null'] },
      input_schema: {
        description: 'JSON Schema of its input.',
        type: 'object',
        tsType: 'JsonObject | object',
      },
      ...toolExtras,
    },
    additionalProperties: false,
  },
  MessageToolChoice: {
    description: 'Which tools the model may or must call.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: {
        description: '`auto`: any or none, `any`: at least one, `tool`: the named one, `none`: no call.',
        enum: ['auto', 'any', 'tool', 'none'],
      },
      name: { description: 'With `tool`: its name.', type: 'string', minLength: 1 },
      disable_parallel_tool_use: {
        description: 'Keeps only the first call.',
        type: ['boolean', 'null'],
        default: false,
      },
    },
    if: { required: ['type'], properties: { type: { const: 'tool' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ['name'] },
    additionalProperties: false,
  },
  MessageOutputConfig: {
    description: 'Effort, and the form of the answer.',
    type: ['object', 'null'],
    properties: {
      effort: {
        description: 'How much the model should reason; `xhigh` and `max` count as `high`.',
        enum: ['low', 'medium', 'high', 'xhigh', 'max', null],
      },
      format: {
        description: 'A JSON Schema that the answer follows.',
        type: ['object', 'null'],
        required: ['type', 'schema'],
        properties: {
          type: { description: 'Kind of the format.', const: 'json_schema' },
          schema: { description: 'The schema.', type: 'object', tsType: 'JsonObject' },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
};
