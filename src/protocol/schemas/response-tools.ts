/** Tools of OpenAI's responses API, and the choice among them. */
import {
  acceptedFrom,
  branch,
  type Definitions,
  kinds,
  list,
  oneOf,
  orNull,
  ref,
  string,
  when,
} from './schema.ts';

/** A field of that API that changes nothing here. */
export const noEffect = acceptedFrom('OpenAI');

/** Where a tool is found. */
export const namespace = orNull('string', 'The namespace of the tool; absent or null: it has none.');

/** Their definitions. */
export const responseToolDefinitions: Definitions = {
  ResponseTool: kinds('What the model may call.', {
    function: 'ResponseFunctionTool',
    custom: 'ResponseCustomTool',
    namespace: 'ResponseNamespaceTool',
  }),
  ResponseNamespaceTool: branch(
    'Tools under a common name. The model sees each as `namespace__tool`; its calls have both names.',
    ['type', 'name', 'tools'],
    {
      type: { description: 'Kind of the tool.', const: 'namespace' },
      name: string('Stands before the names of its tools.', { minLength: 1 }),
      description: noEffect,
      tools: list(
        'Its tools.',
        kinds(null, { function: 'ResponseFunctionTool', custom: 'ResponseCustomTool' }),
      ),
    },
  ),
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
    ...when(
      { required: ['type'], properties: { type: { const: 'grammar' } } },
      { required: ['syntax', 'definition'] },
    ),
    additionalProperties: false,
  },
  ResponseToolChoice: kinds('Which tools the model may or must call.', {
    function: 'ResponseFunctionChoice',
    custom: 'ResponseCustomChoice',
    allowed_tools: 'ResponseAllowedTools',
  }),
  ResponseAllowedTools: branch('Some of the tools.', ['type', 'mode', 'tools'], {
    type: { description: 'Kind of the choice.', const: 'allowed_tools' },
    mode: oneOf('Whether one of them may or must be called.', ['auto', 'required']),
    tools: list(
      'The tools that may be called; calls of others stay text.',
      kinds(null, { function: 'ResponseFunctionChoice', custom: 'ResponseCustomChoice' }),
      { minItems: 1 },
    ),
  }),
  ResponseFunctionChoice: branch('One function.', ['type', 'name'], {
    type: { description: 'Kind of the tool.', const: 'function' },
    name: string('Its name.', { minLength: 1 }),
    namespace,
  }),
  ResponseCustomChoice: branch('One custom tool.', ['type', 'name'], {
    type: { description: 'Kind of the tool.', const: 'custom' },
    name: string('Its name.', { minLength: 1 }),
    namespace,
  }),
};
