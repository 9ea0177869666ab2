/** Tools of OpenAI's responses API, and the choice among them. */
import * as s from './schema.ts';

/** A field of that API that is accepted and has no effect. */
export const noEffect = s.acceptedFrom('OpenAI');

/** Field with the namespace of a tool. */
export const namespace = s.stringOrNull('The namespace of the tool; absent or null: it has none.');

/** Fields that both kinds of tools share. */
const described = {
  name: s.string('Name that the model calls it by.', { minLength: 1 }),
  description: s.stringOrNull('What it does, for the model.'),
};
const ignored = { allowed_callers: noEffect, defer_loading: noEffect };
const chosen = { name: s.string('Its name.', { minLength: 1 }), namespace };

export const responseToolDefinitions: s.Definitions = {
  ResponseTool: s.kinds('What the model may call.', {
    function: 'ResponseFunctionTool',
    custom: 'ResponseCustomTool',
    namespace: 'ResponseNamespaceTool',
  }),
  ResponseNamespaceTool: s.variant(
    'namespace',
    'tool',
    'Tools under a common name. The model sees each as `namespace__tool`; its calls have both names.',
    ['name', 'tools'],
    {
      name: s.string('Prefix of the names of its tools.', { minLength: 1 }),
      description: noEffect,
      tools: s.list(
        'Its tools.',
        s.kinds(null, { function: 'ResponseFunctionTool', custom: 'ResponseCustomTool' }),
      ),
    },
  ),
  ResponseFunctionTool: s.variant('function', 'tool', 'A function that the model may call.', ['name'], {
    ...described,
    parameters: s.jsonObject('JSON Schema of its arguments.'),
    strict: s.booleanOrNull('Whether calls that the model makes by itself must follow the schema.'),
    ...ignored,
    output_schema: noEffect,
  }),
  ResponseCustomTool: s.variant('custom', 'tool', 'A tool whose input is one text.', ['name'], {
    ...described,
    format: s.ref('ResponseInputFormat', 'What its input may be. Absent or null: any text.'),
    ...ignored,
  }),
  ResponseInputFormat: {
    description: 'What the input of a custom tool may be.',
    type: ['object', 'null'],
    required: ['type'],
    properties: {
      type: s.oneOf('Kind of the format.', ['text', 'grammar']),
      syntax: s.oneOf('With `grammar`: notation of the definition.', ['lark', 'regex']),
      definition: s.string('With `grammar`: the grammar itself.', { minLength: 1 }),
    },
    ...s.when(
      { required: ['type'], properties: { type: { const: 'grammar' } } },
      { required: ['syntax', 'definition'] },
    ),
    additionalProperties: false,
  },
  ResponseToolChoice: s.kinds('Which tools the model may or must call.', {
    function: 'ResponseFunctionChoice',
    custom: 'ResponseCustomChoice',
    allowed_tools: 'ResponseAllowedTools',
  }),
  ResponseAllowedTools: s.variant('allowed_tools', 'choice', 'Some of the tools.', ['mode', 'tools'], {
    mode: s.oneOf('Whether one of them may or must be called.', ['auto', 'required']),
    tools: s.list(
      'The tools that may be called; calls of others stay text.',
      s.kinds(null, { function: 'ResponseFunctionChoice', custom: 'ResponseCustomChoice' }),
      { minItems: 1 },
    ),
  }),
  ResponseFunctionChoice: s.variant('function', 'tool', 'One function.', ['name'], chosen),
  ResponseCustomChoice: s.variant('custom', 'tool', 'One custom tool.', ['name'], chosen),
};
