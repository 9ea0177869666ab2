/** Messages of a chat, one definition per variant, and the parts their content is made of. */
import {
  byField,
  type Definitions,
  list,
  listOrNull,
  oneOf,
  orNull,
  ref,
  type Schema,
  string,
} from './schema.ts';

const content: Schema = {
  description: 'Text, or a list of parts. Absent or null counts as empty.',
  type: ['string', 'array', 'null'],
  items: ref('ContentPart'),
};

const name: Schema = orNull('string', 'Name of the participant.');

/** One message variant: `role` and `content`, and what else it has. `role` null: any role. */
function message(description: string, role: string | null, more: Schema['properties'] = {}): Schema {
  return {
    description,
    required: ['role'],
    properties: {
      role:
        role === null
          ? string('Role of the author. Any name that the chat template supports.', { minLength: 1 })
          : { description: 'Role of the author.', const: role },
      content,
      name,
      ...more,
    },
    additionalProperties: false,
  };
}

const toolCallId: Schema = orNull('string', 'Id of the call that this answers.');
const toolCalls: Schema = listOrNull('Calls that the model made in this turn.', ref('ToolCall'));
const reasoning: Schema = orNull('string', 'Reasoning before the content.');
const reasoningContent: Schema = orNull('string', 'Another name of `reasoning`, which takes precedence.');

/** The parts that hold text, by their `type`, and the field that holds it. */
export const TEXT_PART_FIELDS = {
  text: 'text',
  input_text: 'text',
  output_text: 'text',
  refusal: 'refusal',
  thinking: 'thinking',
} as const;

const MEDIA_PART_TYPES = [
  'image_url',
  'input_image',
  'image_pil',
  'image_embeds',
  'audio_url',
  'input_audio',
  'audio_embeds',
  'video_url',
  'video',
  'file',
] as const;

const PART_TYPES = [...Object.keys(TEXT_PART_FIELDS), ...MEDIA_PART_TYPES];

function textPart(description: string, types: readonly string[], field: string): Schema {
  return {
    description,
    required: ['type', field],
    properties: {
      type: oneOf('Kind of the part.', types),
      [field]: orNull('string', 'The text. Null counts as absent.'),
      annotations: { description: 'No effect.' },
    },
    additionalProperties: false,
  };
}

function urlPart(type: string): Schema {
  return {
    description: 'An image, audio clip or video by its address. Text-only models refuse it.',
    required: ['type', type],
    properties: {
      type: { description: 'Kind of the part.', const: type },
      [type]: {
        description: 'Location of the data.',
        type: 'object',
        required: ['url'],
        properties: {
          url: string('A data URL, or in process bytes.', { minLength: 1, tsType: 'string | Uint8Array' }),
          detail: orNull('string', 'Level of detail.'),
        },
      },
    },
  };
}

/** Definitions of messages. */
export const messageDefinitions: Definitions = {
  Message: {
    description: 'A message of the chat. Every role is accepted; the chat template decides how it is used.',
    type: 'object',
    ...byField(
      'role',
      {
        developer: 'DeveloperMessage',
        system: 'SystemMessage',
        user: 'UserMessage',
        assistant: 'AssistantMessage',
        tool: 'ToolMessage',
        function: 'FunctionMessage',
      },
      'CustomMessage',
    ),
  },
  DeveloperMessage: message('Instructions that take precedence over the user.', 'developer', {
    tools: listOrNull('Tools for the template.', ref('Tool')),
  }),
  SystemMessage: message('Instructions.', 'system'),
  UserMessage: message("The user's input.", 'user'),
  AssistantMessage: message(
    "The model's output. The message of a response can be sent back unchanged.",
    'assistant',
    {
      tool_calls: toolCalls,
      reasoning,
      reasoning_content: reasoningContent,
      refusal: orNull('string', 'Why the model declined.'),
      annotations: { description: 'No effect.' },
      audio: { description: 'No effect.' },
      function_call: ref(
        'FunctionCall',
        'The single call of this turn, in the older form. Not together with `tool_calls`.',
      ),
    },
  ),
  ToolMessage: message('The result of a tool call.', 'tool', { tool_call_id: toolCallId }),
  FunctionMessage: message(
    'The result of a function call, in the older form: `name` is the function. Templates get a message with the role `tool`.',
    'function',
  ),
  CustomMessage: message('A message with any other role.', null, {
    tool_calls: toolCalls,
    tool_call_id: toolCallId,
    reasoning,
    reasoning_content: reasoningContent,
  }),
  ContentPart: {
    description: 'A piece of content. A bare string is a text part.',
    type: ['string', 'object'],
    required: ['type'],
    properties: { type: { enum: PART_TYPES } },
    ...byField('type', {
      text: 'TextPart',
      input_text: 'TextPart',
      output_text: 'TextPart',
      refusal: 'RefusalPart',
      thinking: 'ThinkingPart',
      image_url: 'ImageUrlPart',
      audio_url: 'AudioUrlPart',
      video_url: 'VideoUrlPart',
      video: 'VideoPart',
      input_audio: 'InputAudioPart',
      file: 'FilePart',
    }),
    tsType:
      'string | TextPart | RefusalPart | ThinkingPart | ImageUrlPart | AudioUrlPart | VideoUrlPart | VideoPart | InputAudioPart | FilePart | OtherMediaPart',
  },
  TextPart: textPart('Text.', ['text', 'input_text', 'output_text'], 'text'),
  RefusalPart: textPart('Why the model declined; counts as text.', ['refusal'], 'refusal'),
  ThinkingPart: textPart('Reasoning; counts as text.', ['thinking'], 'thinking'),
  ImageUrlPart: urlPart('image_url'),
  AudioUrlPart: urlPart('audio_url'),
  VideoUrlPart: urlPart('video_url'),
  VideoPart: {
    description: 'Frames of a video, each an image. Text-only models refuse it.',
    required: ['type', 'video'],
    properties: {
      type: { description: 'Kind of the part.', const: 'video' },
      video: list(
        'The frames in order: data URLs; in process also bytes of files, or decoded pixels.',
        { type: 'string', minLength: 1 },
        { minItems: 1, tsType: 'readonly (string | Uint8Array | Pixels)[]' },
      ),
    },
  },
  InputAudioPart: {
    description: 'Audio in the request itself. Text-only models refuse it.',
    required: ['type', 'input_audio'],
    properties: {
      type: { description: 'Kind of the part.', const: 'input_audio' },
      input_audio: {
        description: 'The audio clip.',
        type: 'object',
        required: ['data', 'format'],
        properties: {
          data: string('Base64 text, or in process bytes.', { tsType: 'string | Uint8Array' }),
          format: string('For example `wav`.'),
        },
      },
    },
  },
  FilePart: {
    description: 'A text file, which counts as text, or an image file, which text-only models refuse.',
    required: ['type', 'file'],
    properties: {
      type: { description: 'Kind of the part.', const: 'file' },
      file: {
        description: 'The file.',
        type: 'object',
        required: ['file_data'],
        properties: {
          file_data: string(
            'A data URL, base64 of text in UTF-8, or in process bytes. It is text if its type is `text/...`, or if it is UTF-8 and its type is not a media type.',
            { minLength: 1, tsType: 'string | Uint8Array' },
          ),
          filename: orNull(
            'string',
            'Written before the text, with a colon and a line break. No effect on media.',
          ),
        },
      },
    },
  },
  OtherMediaPart: {
    description: 'Media in another form. Text-only models refuse it.',
    required: ['type'],
    properties: {
      type: oneOf('Kind of the part.', ['input_image', 'image_pil', 'image_embeds', 'audio_embeds']),
    },
    additionalProperties: true,
  },
};
