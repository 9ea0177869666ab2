/** Messages of a chat, one definition per variant, and the parts of their content. */
import * as s from './schema.ts';

const content: s.Schema = {
  description: 'Text, or a list of parts. Absent or null counts as empty.',
  type: ['string', 'array', 'null'],
  items: s.ref('ContentPart'),
};

const name: s.Schema = s.stringOrNull('Name of the participant.');

/** Returns the schema of a message variant: `role`, `content` and `more`. `role` null means any role. */
function message(description: string, role: string | null, more: s.Schema['properties'] = {}): s.Schema {
  return s.branch(description, ['role'], {
    role:
      role === null
        ? s.string('Role of the author. Any name that the chat template supports.', { minLength: 1 })
        : s.constant('Role of the author.', role),
    content,
    name,
    ...more,
  });
}

const toolCallId: s.Schema = s.stringOrNull('Id of the call that this answers.');
const toolCalls: s.Schema = s.listOrNull('Calls that the model made in this turn.', s.ref('ToolCall'));
const reasoning: s.Schema = s.stringOrNull('Reasoning before the content.');
const reasoningContent: s.Schema = s.stringOrNull(
  'Another name of `reasoning`, which takes precedence unless it is empty.',
);

/** Type of each part that holds text -> the field with the text. */
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

function textPart(description: string, types: readonly string[], field: string): s.Schema {
  return s.branch(description, ['type', field], {
    type: s.oneOf('Kind of the part.', types),
    [field]: s.stringOrNull('The text. Null counts as absent.'),
    annotations: { description: 'No effect.' },
  });
}

function urlPart(type: string): s.Schema {
  return {
    description: 'An image, audio clip or video by its address. Text-only models refuse it.',
    required: ['type', type],
    properties: {
      type: s.constant('Kind of the part.', type),
      [type]: s.shape('Location of the data.', ['url'], {
        url: s.string('A data URL, or in process bytes.', { minLength: 1, tsType: 'string | Uint8Array' }),
        detail: s.stringOrNull('Level of detail.'),
      }),
    },
  };
}

export const messageDefinitions: s.Definitions = {
  Message: {
    description:
      'A message of the chat. Every role is accepted but a misspelt one of those known here; the chat template decides how it is used.',
    type: 'object',
    ...s.byField(
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
    tools: s.listOrNull('Tools for the template.', s.ref('Tool')),
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
      refusal: s.stringOrNull('Why the model declined.'),
      annotations: { description: 'No effect.' },
      audio: { description: 'No effect.' },
      function_call: s.ref(
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
    ...s.byField('type', {
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
      type: s.constant('Kind of the part.', 'video'),
      video: s.list(
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
      type: s.constant('Kind of the part.', 'input_audio'),
      input_audio: s.shape('The audio clip.', ['data', 'format'], {
        data: s.string('Base64 text, or in process bytes.', { tsType: 'string | Uint8Array' }),
        format: s.string('For example `wav`.'),
      }),
    },
  },
  FilePart: {
    description: 'A text file, which counts as text, or an image file, which text-only models refuse.',
    required: ['type', 'file'],
    properties: {
      type: s.constant('Kind of the part.', 'file'),
      file: s.shape('The file.', ['file_data'], {
        file_data: s.string(
          'A data URL, base64 of text in UTF-8, or in process bytes. It is text if its type is `text/...`, or if it is UTF-8 and its type is not a media type.',
          { minLength: 1, tsType: 'string | Uint8Array' },
        ),
        filename: s.stringOrNull(
          'Written before the text, with a colon and a line break. No effect on media.',
        ),
      }),
    },
  },
  OtherMediaPart: {
    description: 'Media in another form. Text-only models refuse it.',
    required: ['type'],
    properties: {
      type: s.oneOf('Kind of the part.', ['input_image', 'image_pil', 'image_embeds', 'audio_embeds']),
    },
    additionalProperties: true,
  },
};
