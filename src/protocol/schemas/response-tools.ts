/** Tools of OpenAI's responses API, and the choice among them. */
import {
  acceptedFrom,
  branch,
  byField,
  type Definitions,
  list,
  oneOf,
  orNull,
  ref,
  string,
} from './schema.ts';

/** A field of that API that changes nothing here. */
export const noEffect = acceptedFrom('OpenAI');

/** Their definitions. */
export const responseToolDefinitions: Definitions = {
  ResponseTool: {
    description: 'What the model may call.',
    type: 'object',
    required: ['type'],
    properties: { type: { enum: ['function', 'custom'] } },
    ...byField('type', { function: 'ResponseFunctionTool', custom: 'ResponseCustomTool' }),
  },
  ResponseFunctionTool: branch('A function that the model may call.', ['type', 'name'], {
    type: { description: 'Kind of the tool.', const: 'function' },
    name: string('Name that the model calls it by.', { minLength: 1 }),
    description: orNull('string', 'What it does, for the model.'),
    parameters: {
      description: 'JSON Schema of its arguments.',
      type: ['object', 'null'],
      tsType: 'JsonObject | null',
    },
    strict: orNull('boolean', 'Whether calls that the model makes by itself must follow the schema.'),
    allowed_callers: noEffect,
    defer_loading: noEffect,
    output_schema: noEffect,
  }),
  ResponseCustomTool: branch('A tool whose input is one text.', ['type', 'name'], {
    type: { description: 'Kind of the tool.', const: 'custom' },
    name: string('Name that the model calls it by.', { minLength: 1 }),
    description: orNull('string', 'What it does, for the model.'),
    format: ref('ResponseInputFormat', 'What its input may be. Absent or null: any text.'),
    allowed_callers: noEffect,
    defer_loading: noEffect,
  }),
  ResponseInputFormat: {
    description: 'What the input of a custom tool may be.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: oneOf('Kind of the format.', ['text', 'grammar']),
      syntax: oneOf('With `grammar`: notation of the definition.', ['lark', 'regex']),
      definition: string('With `grammar`: the grammar itself.', { minLength: 1 }),
    },
    if: { required: ['type'], properties: { type: { const: 'grammar' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ['syntax', 'definition'] },
    additionalProperties: false,
  },
  ResponseToolChoice: {
    description: 'Which tools the model may or must call.',
    type: 'object',
    required: ['type'],
    properties: { type: { enum: ['function', 'custom', 'allowed_tools'] } },
    ...byField('type', {
      function: 'ResponseFunctionChoice',
      custom: 'ResponseCustomChoice',
      allowed_tools: 'ResponseAllowedTools',
    }),
  },
  ResponseAllowedTools: branch('Some of the tools.', ['type', 'mode', 'tools'], {
    type: { description: 'Kind of the choice.', const: 'allowed_tools' },
    mode: oneOf('Whether one of them may or must be called.', ['auto', 'required']),
    tools: list(
      'The tools that may be called; calls of others stay text.',
      {
        type: 'object',
        required: ['type'],
        properties: { type: { enum: ['function', 'custom'] } },
        ...byField('type', { function: 'ResponseFunctionChoice', custom: 'ResponseCustomChoice' }),
      },
      { minItems: 1 },
    ),
  }),
  ResponseFunctionChoice: branch('One function.', ['type', 'name'], {
    type: { description: 'Kind of the tool.', const: 'function' },
    name: string('Its name.', { minLength: 1 }),
  }),
  ResponseCustomChoice: branch('One custom tool.', ['type', 'name'], {
    type: { description: 'Kind of the tool.', const: 'custom' },
    name: string('Its name.', { minLength: 1 }),
  }),
};
