/** Tools that a model may call, the calls it made, and the choice among them. */
import { byField, type Definitions, ref, type Schema } from './schema.ts';

/** An object with one required field `name`, and no others. */
function named(description: string): Schema {
  return {
    description,
    type: 'object',
    required: ['name'],
    properties: { name: { description: 'Its name.', type: 'string', minLength: 1 } },
    additionalProperties: false,
  };
}

const calledFunction: Schema = {
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
};

const functionDefinition: Schema = {
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
};

const toolKinds: Definitions = {
  Tool: {
    description:
      'What the model may call: a function with arguments in JSON, or a custom tool with one text.',
    type: 'object',
    required: ['type'],
    properties: { type: { enum: ['function', 'custom'] } },
    ...byField('type', { function: 'FunctionTool', custom: 'CustomTool' }),
  },
  FunctionTool: {
    description: 'A function that the model may ask for. Further keys reach the chat template as they are.',
    required: ['type', 'function'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'function' },
      function: functionDefinition,
    },
  },
  FunctionDefinition: { ...functionDefinition, description: 'A function that the model may ask for.' },
  CustomTool: {
    description:
      'A tool whose input is one text. Chat templates see a function with the one argument `input`; the answer has the text itself.',
    required: ['type', 'custom'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'custom' },
      custom: {
        description: 'The tool.',
        type: 'object',
        required: ['name'],
        properties: {
          name: { description: 'Name that the model calls it by.', type: 'string', minLength: 1 },
          description: { description: 'What it does, for the model.', type: ['string', 'null'] },
          format: {
            ...ref('CustomToolFormat'),
            description: 'What its input may be. Absent or null: any text.',
          },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  CustomToolFormat: {
    description: 'What the input of a custom tool may be.',
    type: ['object', 'null'],
    required: ['type'],
    properties: { type: { enum: ['text', 'grammar'] } },
    ...byField('type', { text: 'TextInputFormat', grammar: 'GrammarInputFormat' }),
  },
  TextInputFormat: {
    description: 'The input of a custom tool is any text.',
    required: ['type'],
    properties: { type: { description: 'Kind of the format.', const: 'text' } },
    additionalProperties: false,
  },
  GrammarInputFormat: {
    description: 'The input of a custom tool follows a grammar.',
    required: ['type', 'grammar'],
    properties: {
      type: { description: 'Kind of the format.', const: 'grammar' },
      grammar: {
        description: 'The grammar.',
        type: 'object',
        required: ['syntax', 'definition'],
        properties: {
          syntax: { description: 'Notation of the definition.', enum: ['lark', 'regex'] },
          definition: { description: 'The grammar itself.', type: 'string', minLength: 1 },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
};

const calls: Definitions = {
  ToolCall: {
    description: 'A call that the model made.',
    type: 'object',
    ...byField('type', { custom: 'CustomToolCall' }, 'FunctionToolCall'),
  },
  FunctionToolCall: {
    description: 'A call of a function.',
    required: ['function'],
    properties: {
      id: { description: 'Id that the result refers to.', type: ['string', 'null'] },
      type: { description: 'Kind of the tool.', const: 'function', expected: '"function" or "custom"' },
      function: calledFunction,
    },
    additionalProperties: false,
  },
  CustomToolCall: {
    description: 'A call of a custom tool.',
    required: ['type', 'custom'],
    properties: {
      id: { description: 'Id that the result refers to.', type: ['string', 'null'] },
      type: { description: 'Kind of the tool.', const: 'custom' },
      custom: {
        description: 'What was called, and with what.',
        type: 'object',
        required: ['name'],
        properties: {
          name: { description: 'Name of the tool.', type: 'string', minLength: 1 },
          input: { description: 'Its input. Null or absent: none.', type: ['string', 'null'] },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  FunctionCall: {
    ...calledFunction,
    type: ['object', 'null'],
    description: 'A call in the older form, before there were tools.',
  },
};

const choices: Definitions = {
  NamedToolChoice: {
    description: 'The one function that must be called.',
    required: ['type', 'function'],
    properties: {
      type: { description: 'Kind of the choice.', const: 'function' },
      function: named('The function.'),
    },
    additionalProperties: false,
  },
  NamedCustomToolChoice: {
    description: 'The one custom tool that must be called.',
    required: ['type', 'custom'],
    properties: {
      type: { description: 'Kind of the choice.', const: 'custom' },
      custom: named('The tool.'),
    },
    additionalProperties: false,
  },
  AllowedToolsChoice: {
    description: 'The tools of the request that may be called. The chat template still shows all of them.',
    required: ['type', 'allowed_tools'],
    properties: {
      type: { description: 'Kind of the choice.', const: 'allowed_tools' },
      allowed_tools: {
        description: 'Which, and whether one must be called.',
        type: 'object',
        required: ['mode', 'tools'],
        properties: {
          mode: { description: 'Whether a call is left to the model or forced.', enum: ['auto', 'required'] },
          tools: {
            description: 'The tools, named as in a choice of one.',
            type: 'array',
            minItems: 1,
            items: {
              type: 'object',
              required: ['type'],
              properties: { type: { enum: ['function', 'custom'] } },
              ...byField('type', { function: 'NamedToolChoice', custom: 'NamedCustomToolChoice' }),
            },
          },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  ToolChoice: {
    if: { type: 'object' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {
      required: ['type'],
      properties: { type: { enum: ['function', 'custom', 'allowed_tools'] } },
      ...byField('type', {
        function: 'NamedToolChoice',
        custom: 'NamedCustomToolChoice',
        allowed_tools: 'AllowedToolsChoice',
      }),
    },
    else: {
      enum: ['none', 'auto', 'required', null],
      expected: 'none, auto, required, a named tool, allowed tools or null',
    },
    description: 'Which calls the model may or must make.',
    tsType: "'none' | 'auto' | 'required' | NamedToolChoice | NamedCustomToolChoice | AllowedToolsChoice",
  },
  FunctionChoice: {
    if: { type: 'object' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: named('The one function that must be called.'),
    else: { enum: ['none', 'auto', null], expected: 'none, auto, an object with a name or null' },
    description: 'Whether the model may or must call a function, in the older form.',
    tsType: "'none' | 'auto' | { name: string }",
  },
};

/** Definitions of tools. */
export const toolDefinitions: Definitions = { ...toolKinds, ...calls, ...choices };
