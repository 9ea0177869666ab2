/** Tools that a model may call, the calls it made, and the choice among them. */
import { type Definitions, ref } from './schema.ts';

/** Definitions of tools. */
export const toolDefinitions: Definitions = {
  Tool: {
    description: 'A function that the model may ask for. Further keys reach the chat template as they are.',
    type: 'object',
    required: ['type', 'function'],
    properties: {
      type: { description: 'The only kind there is.', const: 'function' },
      function: {
        description: 'The function.',
        type: 'object',
        required: ['name'],
        properties: {
          name: { description: 'Name that the model calls it by.', type: 'string', minLength: 1 },
          description: { description: 'What it does, for the model.', type: ['string', 'null'] },
          parameters: {
            description: 'JSON Schema of its arguments.',
            type: ['object', 'null'],
            tsType: 'JsonObject | null',
          },
          strict: {
            description:
              'Whether the arguments of calls that the model makes by itself must follow the schema; those of forced calls always do.',
            type: ['boolean', 'null'],
          },
        },
      },
    },
  },
  ToolCall: {
    description: 'A call that the model made.',
    type: 'object',
    required: ['function'],
    properties: {
      id: { description: 'Id that the result refers to.', type: ['string', 'null'] },
      type: { description: 'The only kind there is.', const: 'function' },
      function: {
        description: 'What was called, and with what.',
        type: 'object',
        required: ['name'],
        properties: {
          name: { description: 'Name of the function.', type: 'string', minLength: 1 },
          arguments: {
            description: 'JSON text of the arguments. Empty, null or absent: no arguments.',
            type: ['string', 'null'],
          },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  NamedToolChoice: {
    description: 'The one function that must be called.',
    type: 'object',
    required: ['type', 'function'],
    properties: {
      type: { description: 'The only kind there is.', const: 'function' },
      function: {
        description: 'The function.',
        type: 'object',
        required: ['name'],
        properties: { name: { description: 'Its name.', type: 'string', minLength: 1 } },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  ToolChoice: {
    if: { type: 'object' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: ref('NamedToolChoice'),
    else: {
      enum: ['none', 'auto', 'required', null],
      expected: 'none, auto, required, a named function or null',
    },
    description: 'Which calls the model may or must make.',
    tsType: "'none' | 'auto' | 'required' | NamedToolChoice",
  },
};
