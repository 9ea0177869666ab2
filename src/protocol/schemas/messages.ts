/** Requests of Anthropic's messages API. Sampling fields of chats may stand beside its own. */
import { chatCompletionDefinitions } from './chat-completion.ts';
import { llamaSamplers } from './llama-samplers.ts';
import {
  acceptedFrom,
  branch,
  byField,
  type Definitions,
  kinds,
  list,
  listOrNull,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  string,
  when,
} from './schema.ts';

/** Fields of a chat completion request that other APIs take as well, with the same meaning. */
export const EXTRA_FIELDS: readonly string[] = [
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'logit_bias',
  'min_p',
  ...Object.keys(llamaSamplers),
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
];

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

const text: Schema = string('The text.');

const blocks: Definitions = {
  MessageBlock: kinds('A piece of a message.', {
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
    properties: { type: oneOf('Kind of the block.', SERVER_BLOCKS) },
    additionalProperties: true,
  },
  MessageResultBlock: kinds('A piece of the result of a call.', {
    text: 'MessageTextBlock',
    image: 'MessageImageBlock',
    document: 'MessageDocumentBlock',
  }),
  MessageTextBlock: block('text', 'Text.', ['text'], { text, citations: noEffect }),
  MessageImageBlock: block('image', 'A picture. Models that only read text refuse it.', ['source'], {
    source: {
      description: 'Where the data lies.',
      type: 'object',
      required: ['type'],
      properties: { type: oneOf('Kind of the source.', ['base64', 'url']) },
      ...byField('type', { base64: 'MessageBase64Source', url: 'MessageUrlSource' }),
    },
    transformations: noEffect,
  }),
  MessageBase64Source: branch('Data in the request itself.', ['type', 'data', 'media_type'], {
    type: { description: 'Kind of the source.', const: 'base64' },
    data: string('The bytes as Base64.'),
    media_type: string('For example `image/png`.'),
  }),
  MessageUrlSource: branch('Data by its address.', ['type', 'url'], {
    type: { description: 'Kind of the source.', const: 'url' },
    url: string('A data URL.', { minLength: 1 }),
  }),
  MessageDocumentBlock: block('document', 'A document of plain text.', ['source'], {
    source: object('The text.', ['type', 'data'], {
      type: { description: 'Kind of the source.', const: 'text' },
      data: text,
      media_type: { description: 'Of the text.', const: 'text/plain' },
    }),
    title: orNull('string', 'Stands before the text.'),
    context: orNull('string', 'Stands before the text, behind the title.'),
    citations: noEffect,
  }),
  MessageThinkingBlock: block('thinking', 'Thoughts of the model.', ['thinking'], {
    thinking: string('The thoughts.'),
    signature: { description: 'No effect: thoughts are not signed here.' },
  }),
  MessageToolUseBlock: block('tool_use', 'A call that the model made.', ['id', 'name', 'input'], {
    id: string('Id that the result refers to.'),
    name: string('What was called.', { minLength: 1 }),
    input: {
      description: 'The arguments.',
      type: 'object',
      tsType: 'JsonObject | unknown',
    },
    caller: noEffect,
    toolset_name: noEffect,
  }),
  MessageToolResultBlock: block('tool_result', 'The result of a call.', ['tool_use_id'], {
    tool_use_id: string('Id of the call.'),
    content: {
      description: 'What came out. Absent: nothing.',
      type: ['string', 'array', 'null'],
      items: ref('MessageResultBlock'),
    },
    is_error: orNull('boolean', 'No effect: the model reads what the content says.'),
    toolset_name: noEffect,
  }),
};

/** Tools that a caller runs and whose schemas Anthropic's models know: `bash_20250124` and so on. */
const CLIENT_TOOL = '^(bash|text_editor|memory)_[0-9]{8}$';

const toolName: Schema = string('Name that the model calls it by.', { minLength: 1 });

const toolExtras: NonNullable<Schema['properties']> = {
  strict: orNull('boolean', 'Whether calls that the model makes by itself must follow the schema.'),
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
  messages: list('The chat so far, oldest message first.', ref('MessageTurn')),
  ...chatFields('model'),
  system,
  ...chatFields('temperature', 'top_p', 'top_k'),
  stop_sequences: listOrNull('Texts that end the answer.', { type: 'string', minLength: 1 }),
  stream: orNull('boolean', 'Answers in events as tokens come.', { default: false }),
  thinking: ref('MessageThinking', 'Whether the model thinks before it answers.'),
  tools: listOrNull('What the model may call; the chat template shows it.', ref('MessageTool')),
  tool_choice: ref('MessageToolChoice', 'Which tools the model may or must call.'),
  output_config: ref('MessageOutputConfig', 'Effort, and the form of the answer.'),
  ...Object.fromEntries(WITHOUT_EFFECT.map((name) => [name, noEffect])),
  ...chatFields(...EXTRA_FIELDS),
};

/** Definitions of these requests. */
export const messagesDefinitions: Definitions = {
  MessageRequest: object(
    'A request of the messages API, the same in process and over HTTP.',
    ['messages', 'max_tokens'],
    {
      ...ownFields,
      max_tokens: {
        description: 'Most tokens of the answer. More than the context has left counts as that.',
        type: 'integer',
        minimum: 1,
      },
    },
  ),
  MessageCountRequest: object(
    'The same request, of which only the tokens of its prompt are counted.',
    ['messages'],
    {
      ...ownFields,
      max_tokens: orNull('integer', 'No effect on the count.', { minimum: 1 }),
    },
  ),
  MessageTurn: object(
    'A message. An assistant message at the end is continued by the answer.',
    ['role', 'content'],
    {
      role: oneOf('Who speaks.', ['user', 'assistant', 'system']),
      content: {
        description: 'Text, or a list of blocks.',
        type: ['string', 'array'],
        items: ref('MessageBlock'),
      },
    },
  ),
  ...blocks,
  MessageThinking: object(
    'Whether the model thinks before it answers.',
    ['type'],
    {
      type: oneOf(
        '`disabled` switches reasoning off; `enabled` and `adaptive` switch it on where the template can. Absent: as the model does by itself.',
        ['enabled', 'adaptive', 'disabled'],
      ),
      budget_tokens: orNull(
        'integer',
        'Tokens of thought at most: then their end is forced, and the answer begins.',
        { minimum: 1 },
      ),
      display: oneOf('`omitted` leaves the thoughts out of the answer.', ['summarized', 'omitted', null]),
    },
    { type: ['object', 'null'] },
  ),
  MessageTool: {
    description: 'A tool of the caller.',
    type: 'object',
    ...when(
      { required: ['type'], properties: { type: { type: 'string', pattern: CLIENT_TOOL } } },
      ref('MessageClientTool'),
      ref('MessageCustomTool'),
    ),
    tsType: 'MessageCustomTool | MessageClientTool',
  },
  MessageClientTool: branch("A tool of the caller whose schema is Anthropic's.", ['type', 'name'], {
    type: string('Kind and version of the tool.', { pattern: CLIENT_TOOL }),
    name: toolName,
    max_characters: noEffect,
    ...toolExtras,
  }),
  MessageCustomTool: branch('A tool with a schema of its own.', ['name', 'input_schema'], {
    type: oneOf('Kind of the tool.', ['custom', null], {
      expected:
        "custom, null, bash_*, text_editor_* or memory_*: tools that run on Anthropic's servers are not served",
    }),
    name: toolName,
    description: orNull('string', 'What it does, for the model.'),
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
      type: oneOf('`auto`: any or none, `any`: at least one, `tool`: the named one, `none`: no call.', [
        'auto',
        'any',
        'tool',
        'none',
      ]),
      name: string('With `tool`: its name.', { minLength: 1 }),
      disable_parallel_tool_use: orNull('boolean', 'Keeps only the first call.', { default: false }),
    },
    ...when({ required: ['type'], properties: { type: { const: 'tool' } } }, { required: ['name'] }),
    additionalProperties: false,
  },
  MessageOutputConfig: object(
    'Effort, and the form of the answer.',
    [],
    {
      effort: oneOf('How much the model should reason; `xhigh` and `max` count as `high`.', [
        'low',
        'medium',
        'high',
        'xhigh',
        'max',
        null,
      ]),
      format: object(
        'A JSON Schema that the answer follows.',
        ['type', 'schema'],
        {
          type: { description: 'Kind of the format.', const: 'json_schema' },
          schema: { description: 'The schema.', type: 'object', tsType: 'JsonObject' },
        },
        { type: ['object', 'null'] },
      ),
    },
    { type: ['object', 'null'] },
  ),
};
