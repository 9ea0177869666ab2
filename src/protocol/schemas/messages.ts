/** Requests of Anthropic's messages API. Sampling fields of chats are accepted, too. */
import { chatFields, EXTRA_FIELDS } from './chat-completion.ts';
import * as s from './schema.ts';

/** Fields of Anthropic's API that are accepted and have no effect. */
const WITHOUT_EFFECT = [
  ...['metadata', 'service_tier', 'cache_control', 'container', 'context_management', 'diagnostics'],
  ...['inference_geo', 'speed', 'user_profile_id', 'workspace_id'],
];

const noEffect = s.acceptedFrom('Anthropic');

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

/** Returns the schema of one kind of content block, with the fields that every kind may have. */
function block(
  type: string,
  description: string,
  required: readonly string[],
  properties: NonNullable<s.Schema['properties']>,
): s.Schema {
  return s.object(description, ['type', ...required], {
    type: s.constant('Kind of the block.', type),
    ...properties,
    cache_control: { description: 'No effect: every prompt is cached.' },
  });
}

const text: s.Schema = s.string('The text.');

const blocks: s.Definitions = {
  MessageBlock: s.kinds('A piece of a message.', {
    text: 'MessageTextBlock',
    image: 'MessageImageBlock',
    document: 'MessageDocumentBlock',
    thinking: 'MessageThinkingBlock',
    tool_use: 'MessageToolUseBlock',
    tool_result: 'MessageToolResultBlock',
    ...Object.fromEntries(SERVER_BLOCKS.map((type) => [type, 'MessageServerBlock'])),
  }),
  MessageServerBlock: {
    description: "Encrypted thoughts, or what a tool of Anthropic's servers did. The model does not see it.",
    required: ['type'],
    properties: { type: s.oneOf('Kind of the block.', SERVER_BLOCKS) },
    additionalProperties: true,
  },
  MessageResultBlock: s.kinds('A piece of the result of a call.', {
    text: 'MessageTextBlock',
    image: 'MessageImageBlock',
    document: 'MessageDocumentBlock',
  }),
  MessageTextBlock: block('text', 'Text.', ['text'], { text, citations: noEffect }),
  MessageImageBlock: block('image', 'A picture. Models that only read text refuse it.', ['source'], {
    source: {
      description: 'Source of the data.',
      type: 'object',
      required: ['type'],
      properties: { type: s.oneOf('Kind of the source.', ['base64', 'url']) },
      ...s.byField('type', { base64: 'MessageBase64Source', url: 'MessageUrlSource' }),
    },
    transformations: noEffect,
  }),
  MessageBase64Source: s.variant('base64', 'source', 'Data in the request itself.', ['data', 'media_type'], {
    data: s.string('The bytes as Base64.'),
    media_type: s.string('For example `image/png`.'),
  }),
  MessageUrlSource: s.variant('url', 'source', 'Data by its address.', ['url'], {
    url: s.string('A data URL.', { minLength: 1 }),
  }),
  MessageDocumentBlock: block('document', 'A document of plain text.', ['source'], {
    source: s.object('The text.', ['type', 'data'], {
      type: s.constant('Kind of the source.', 'text'),
      data: text,
      media_type: s.constant('Of the text.', 'text/plain'),
    }),
    title: s.stringOrNull('Placed before the text.'),
    context: s.stringOrNull('Placed before the text, after the title.'),
    citations: noEffect,
  }),
  MessageThinkingBlock: block('thinking', 'Thoughts of the model.', ['thinking'], {
    thinking: s.string('The reasoning.'),
    signature: { description: 'No effect: thoughts are not signed here.' },
  }),
  MessageToolUseBlock: block('tool_use', 'A call that the model made.', ['id', 'name', 'input'], {
    id: s.string('Id that the result refers to.'),
    name: s.string('Name of the called tool.', { minLength: 1 }),
    input: {
      description: 'The arguments.',
      type: 'object',
      tsType: 'JsonObject | unknown',
    },
    caller: noEffect,
    toolset_name: noEffect,
  }),
  MessageToolResultBlock: block('tool_result', 'The result of a call.', ['tool_use_id'], {
    tool_use_id: s.string('Id of the call.'),
    content: {
      description: 'The result. Absent: empty.',
      type: ['string', 'array', 'null'],
      items: s.ref('MessageResultBlock'),
    },
    is_error: s.booleanOrNull('No effect: the model reads what the content says.'),
    toolset_name: noEffect,
  }),
};

/** Types of tools that the caller runs and whose schemas Anthropic's models know, for example `bash_20250124`. */
const CLIENT_TOOL = '^(bash|text_editor|memory)_[0-9]{8}$';

const toolName: s.Schema = s.string('Name that the model calls it by.', { minLength: 1 });

const toolExtras: NonNullable<s.Schema['properties']> = {
  strict: s.booleanOrNull('Whether calls that the model makes by itself must follow the schema.'),
  cache_control: noEffect,
  allowed_callers: noEffect,
  defer_loading: noEffect,
  eager_input_streaming: noEffect,
  input_examples: noEffect,
};

const system: s.Schema = {
  description: 'Instructions, as a text or as blocks of text.',
  type: ['string', 'array', 'null'],
  items: s.ref('MessageTextBlock'),
};

const ownFields: NonNullable<s.Schema['properties']> = {
  messages: s.list('The chat so far, oldest message first.', s.ref('MessageTurn')),
  ...chatFields('model'),
  system,
  ...chatFields('temperature', 'top_p', 'top_k'),
  stop_sequences: s.listOrNull('Texts that end the answer.', { type: 'string', minLength: 1 }),
  stream: s.flagOrNull(false, 'Returns events as tokens are generated.'),
  thinking: s.ref('MessageThinking', 'Whether the model thinks before it answers.'),
  tools: s.listOrNull('Tools that the model may call; the chat template shows them.', s.ref('MessageTool')),
  tool_choice: s.ref('MessageToolChoice', 'Which tools the model may or must call.'),
  output_config: s.ref('MessageOutputConfig', 'Reasoning effort, and the format of the answer.'),
  ...s.accepted('Anthropic', ...WITHOUT_EFFECT),
  ...chatFields(...EXTRA_FIELDS),
};

export const messagesDefinitions: s.Definitions = {
  MessageRequest: s.object(
    'A request of the messages API, the same in process and over HTTP.',
    ['messages', 'max_tokens'],
    {
      ...ownFields,
      max_tokens: {
        description: 'Maximum number of tokens of the answer; limited to the remaining context.',
        type: 'integer',
        minimum: 1,
      },
    },
  ),
  MessageCountRequest: s.object(
    'The same request, of which only the tokens of its prompt are counted.',
    ['messages'],
    {
      ...ownFields,
      max_tokens: s.integerOrNull('No effect on the count.', { minimum: 1 }),
    },
  ),
  MessageTurn: s.object(
    'A message. An assistant message at the end is continued by the answer.',
    ['role', 'content'],
    {
      role: s.oneOf('Who speaks.', ['user', 'assistant', 'system']),
      content: {
        description: 'Text, or a list of blocks.',
        type: ['string', 'array'],
        items: s.ref('MessageBlock'),
      },
    },
  ),
  ...blocks,
  MessageThinking: s.object(
    'Whether the model thinks before it answers.',
    ['type'],
    {
      type: s.oneOf(
        "`disabled` turns reasoning off; `enabled` and `adaptive` turn it on if the template supports it. Absent: the model's default.",
        ['enabled', 'adaptive', 'disabled'],
      ),
      budget_tokens: s.integerOrNull(
        'Maximum number of reasoning tokens: after these the end of reasoning is forced, and the answer starts.',
        { minimum: 1 },
      ),
      display: s.oneOf('`omitted` leaves the reasoning out of the answer.', ['summarized', 'omitted', null]),
    },
    { type: ['object', 'null'] },
  ),
  MessageTool: {
    description: 'A tool of the caller.',
    type: 'object',
    ...s.when(
      { required: ['type'], properties: { type: { type: 'string', pattern: CLIENT_TOOL } } },
      s.ref('MessageClientTool'),
      s.ref('MessageCustomTool'),
    ),
    tsType: 'MessageCustomTool | MessageClientTool',
  },
  MessageClientTool: s.branch("A tool of the caller whose schema is Anthropic's.", ['type', 'name'], {
    type: s.string('Kind and version of the tool.', { pattern: CLIENT_TOOL }),
    name: toolName,
    max_characters: noEffect,
    ...toolExtras,
  }),
  MessageCustomTool: s.branch('A tool with a schema of its own.', ['name', 'input_schema'], {
    type: s.oneOf('Kind of the tool.', ['custom', null], {
      expected:
        "custom, null, bash_*, text_editor_* or memory_*: tools that run on Anthropic's servers are not served",
    }),
    name: toolName,
    description: s.stringOrNull('What it does, for the model.'),
    input_schema: {
      description: 'JSON Schema of its input.',
      type: 'object',
      tsType: 'JsonObject | object',
    },
    ...toolExtras,
  }),
  MessageToolChoice: {
    description: 'Which tools the model may or must call.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: s.oneOf('`auto`: any or none, `any`: at least one, `tool`: the named one, `none`: no call.', [
        'auto',
        'any',
        'tool',
        'none',
      ]),
      name: s.string('With `tool`: its name.', { minLength: 1 }),
      disable_parallel_tool_use: s.flagOrNull(false, 'Keeps only the first call.'),
    },
    ...s.when({ required: ['type'], properties: { type: { const: 'tool' } } }, { required: ['name'] }),
    additionalProperties: false,
  },
  MessageOutputConfig: s.objectOrNull('Reasoning effort, and the format of the answer.', {
    effort: s.oneOf('How much the model should reason, as `reasoning_effort` of a chat.', [
      'low',
      'medium',
      'high',
      'xhigh',
      'max',
      null,
    ]),
    format: s.object(
      'A JSON Schema that the answer follows.',
      ['type', 'schema'],
      {
        type: s.constant('Kind of the format.', 'json_schema'),
        schema: { description: 'The schema.', type: 'object', tsType: 'JsonObject' },
      },
      { type: ['object', 'null'] },
    ),
  }),
};
