/** Tools of OpenAI's responses API, and the choice among them. */
import { acceptedFrom, byField, type Definitions, ref, type Schema } from './schema.ts';

/** A field of that API that changes nothing here. */
export const noEffect = acceptedFrom('OpenAI');

/** Where a tool is found. */
export const namespace: Schema = {
  description: 'The namespace of the tool; absent or null: it has none.',
  type: ['string', 'null'],
};

/** Their definitions. */
export const responseToolDefinitions: Definitions = {
  ResponseTool: {
    description: 'What the model may call.',
    type: 'object',
    required: ['type'],
    properties: { type: { enum: ['function', 'custom', 'namespace'] } },
    ...byField('type', {
      function: 'ResponseFunctionTool',
      custom: 'ResponseCustomTool',
      namespace: 'ResponseNamespaceTool',
    }),
  },
  ResponseNamespaceTool: {
    description:
      'Tools under a common name. The model sees each as `namespace__tool`; its calls have both names.',
    required: ['type', 'name', 'tools'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'namespace' },
      name: { description: 'Stands before the names of its tools.', type: 'string', minLength: 1 },
      description: noEffect,
      tools: {
        description: 'Its tools.',
        type: 'array',
        items: {
          type: 'object',
          required: ['type'],
          properties: { type: { enum: ['function', 'custom'] } },
          ...byField('type', { function: 'ResponseFunctionTool', custom: 'ResponseCustomTool' }),
        },
      },
    },
    additionalProperties: false,
  },
  ResponseFunctionTool: {
    description: 'A function that the model may call.',
    required: ['type', 'name'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'function' },
      name: { description: 'Name that the model calls it by.', type: 'string', minLength: 1 },
      description: { description: 'What it does, for the model.', type: ['string', 'null'] },
      parameters: {
        description: 'JSON Schema of its arguments.',
        type: ['object', 'null'],
        tsType: 'JsonObject | null',
      },
      strict: {
        description: 'Whether calls that the model makes by itself must follow the schema.',
        type: ['boolean', 'null'],
      },
      allowed_callers: noEffect,
      defer_loading: noEffect,
      output_schema: noEffect,
    },
    additionalProperties: false,
  },
  ResponseCustomTool: {
    description: 'A tool whose input is one text.',
    required: ['type', 'name'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'custom' },
      name: { description: 'Name that the model calls it by.', type: 'string', minLength: 1 },
      description: { description: 'What it does, for the model.', type: ['string', 'null'] },
      format: {
        ...ref('ResponseInputFormat'),
        description: 'What its input may be. Absent or null: any text.',
      },
      allowed_callers: noEffect,
      defer_loading: noEffect,
    },
    additionalProperties: false,
  },
  ResponseInputFormat: {
    description: 'What the input of a custom tool may be.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: { description: 'Kind of the format.', enum: ['text', 'grammar'] },
      syntax: { description: 'With `grammar`: notation of the definition.', enum: ['lark', 'regex'] },
      definition: { description: 'With `grammar`: the grammar itself.', type: 'string', minLength: 1 },
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
  ResponseAllowedTools: {
    description: 'Some of the tools.',
    required: ['type', 'mode', 'tools'],
    properties: {
      type: { description: 'Kind of the choice.', const: 'allowed_tools' },
      mode: { description: 'Whether one of them may or must be called.', enum: ['auto', 'required'] },
      tools: {
        description: 'The tools that may be called; calls of others stay text.',
        type: 'array',
        items: {
          type: 'object',
          required: ['type'],
          properties: { type: { enum: ['function', 'custom'] } },
          ...byField('type', { function: 'ResponseFunctionChoice', custom: 'ResponseCustomChoice' }),
        },
        minItems: 1,
      },
    },
    additionalProperties: false,
  },
  ResponseFunctionChoice: {
    description: 'One function.',
    required: ['type', 'name'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'function' },
      name: { description: 'Its name.', type: 'string', minLength: 1 },
      namespace,
    },
    additionalProperties: false,
  },
  ResponseCustomChoice: {
    description: 'One custom tool.',
    required: ['type', 'name'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'custom' },
      name: { description: 'Its name.', type: 'string', minLength: 1 },
      namespace,
    },
    additionalProperties: false,
  },
};
