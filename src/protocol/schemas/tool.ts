/** Tools that a model may call, the calls it made, and the choice among them. */
import * as s from './schema.ts';

/** Returns an object with the required field `name` and no others. */
function named(description: string): s.Schema {
  return s.object(description, ['name'], { name: s.string('Its name.', { minLength: 1 }) });
}

const calledFunction: s.Schema = s.object('What was called, and with what.', ['name'], {
  name: s.string('Name of the function.', { minLength: 1 }),
  arguments: s.stringOrNull('JSON text of the arguments. Empty, null or absent: no arguments.'),
});

const functionDefinition: s.Schema = s.shape('The function.', ['name'], {
  name: s.string('Name that the model calls it by.', { minLength: 1 }),
  description: s.stringOrNull('What it does, for the model.'),
  parameters: s.jsonSchema('JSON Schema of its arguments.'),
  strict: s.booleanOrNull(
    'Whether the arguments of calls that the model makes by itself must follow the schema; those of forced calls always do.',
  ),
});

const toolKinds: s.Definitions = {
  Tool: s.kinds(
    'What the model may call: a function with arguments in JSON, or a custom tool with one text.',
    {
      function: 'FunctionTool',
      custom: 'CustomTool',
    },
  ),
  FunctionTool: {
    description: 'A function that the model may ask for. Further keys reach the chat template as they are.',
    required: ['type', 'function'],
    properties: {
      type: s.constant('Kind of the tool.', 'function'),
      function: functionDefinition,
    },
  },
  FunctionDefinition: { ...functionDefinition, description: 'A function that the model may ask for.' },
  CustomTool: s.variant(
    'custom',
    'tool',
    'A tool whose input is one text. Chat templates see a function with the one argument `input`; the answer has the text itself.',
    ['custom'],
    {
      custom: s.object('The tool.', ['name'], {
        name: s.string('Name that the model calls it by.', { minLength: 1 }),
        description: s.stringOrNull('What it does, for the model.'),
        format: s.ref('CustomToolFormat', 'Format of its input. Absent or null: any text.'),
      }),
    },
  ),
  CustomToolFormat: s.kinds(
    'What the input of a custom tool may be.',
    { text: 'TextInputFormat', grammar: 'GrammarInputFormat' },
    { type: ['object', 'null'] },
  ),
  TextInputFormat: s.variant('text', 'format', 'The input of a custom tool is any text.', [], {}),
  GrammarInputFormat: s.variant(
    'grammar',
    'format',
    'The input of a custom tool follows a grammar.',
    ['grammar'],
    {
      grammar: s.object('The grammar.', ['syntax', 'definition'], {
        syntax: s.oneOf('Notation of the definition.', ['lark', 'regex']),
        definition: s.string('The grammar itself.', { minLength: 1 }),
      }),
    },
  ),
};

const calls: s.Definitions = {
  ToolCall: {
    description: 'A call that the model made.',
    type: 'object',
    ...s.byField('type', { custom: 'CustomToolCall' }, 'FunctionToolCall'),
  },
  FunctionToolCall: s.branch('A call of a function.', ['function'], {
    id: s.stringOrNull('Id that the result refers to.'),
    type: { description: 'Kind of the tool.', const: 'function', expected: '"function" or "custom"' },
    function: calledFunction,
  }),
  CustomToolCall: s.branch('A call of a custom tool.', ['type', 'custom'], {
    id: s.stringOrNull('Id that the result refers to.'),
    type: s.constant('Kind of the tool.', 'custom'),
    custom: s.object('What was called, and with what.', ['name'], {
      name: s.string('Name of the tool.', { minLength: 1 }),
      input: s.stringOrNull('Its input. Null or absent: none.'),
    }),
  }),
  FunctionCall: {
    ...calledFunction,
    type: ['object', 'null'],
    description: 'A call in the older form, before there were tools.',
  },
};

const choices: s.Definitions = {
  NamedToolChoice: s.variant('function', 'choice', 'The one function that must be called.', ['function'], {
    function: named('The function.'),
  }),
  NamedCustomToolChoice: s.variant(
    'custom',
    'choice',
    'The one custom tool that must be called.',
    ['custom'],
    { custom: named('The tool.') },
  ),
  AllowedToolsChoice: s.variant(
    'allowed_tools',
    'choice',
    'The tools of the request that may be called. The chat template still shows all of them.',
    ['allowed_tools'],
    {
      allowed_tools: s.object('Which, and whether one must be called.', ['mode', 'tools'], {
        mode: s.oneOf('Whether a call is left to the model or forced.', ['auto', 'required']),
        tools: s.list(
          'The tools, named as in a choice of one.',
          s.kinds(null, { function: 'NamedToolChoice', custom: 'NamedCustomToolChoice' }),
          { minItems: 1 },
        ),
      }),
    },
  ),
  ToolChoice: {
    ...s.when(
      { type: 'object' },
      {
        required: ['type'],
        properties: { type: { enum: ['function', 'custom', 'allowed_tools'] } },
        ...s.byField('type', {
          function: 'NamedToolChoice',
          custom: 'NamedCustomToolChoice',
          allowed_tools: 'AllowedToolsChoice',
        }),
      },
      {
        enum: ['none', 'auto', 'required', null],
        expected: 'none, auto, required, a named tool, allowed tools or null',
      },
    ),
    description: 'Which calls the model may or must make.',
    tsType: "'none' | 'auto' | 'required' | NamedToolChoice | NamedCustomToolChoice | AllowedToolsChoice",
  },
  FunctionChoice: {
    ...s.when({ type: 'object' }, named('The one function that must be called.'), {
      enum: ['none', 'auto', null],
      expected: 'none, auto, an object with a name or null',
    }),
    description: 'Whether the model may or must call a function, in the older form.',
    tsType: "'none' | 'auto' | { name: string }",
  },
};

export const toolDefinitions: s.Definitions = { ...toolKinds, ...calls, ...choices };
