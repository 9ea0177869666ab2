/** Tools that a model may call, the calls it made, and the choice among them. */
import {
  branch,
  byField,
  type Definitions,
  kinds,
  list,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  string,
  when,
} from './schema.ts';

/** An object with one required field `name`, and no others. */
function named(description: string): Schema {
  return {
    description,
    type: 'object',
    required: ['name'],
    properties: { name: string('Its name.', { minLength: 1 }) },
    additionalProperties: false,
  };
}

const calledFunction: Schema = object('What was called, and with what.', ['name'], {
  name: string('Name of the function.', { minLength: 1 }),
  arguments: orNull('string', 'JSON text of the arguments. Empty, null or absent: no arguments.'),
});

const functionDefinition: Schema = {
  description: 'The function.',
  type: 'object',
  required: ['name'],
  properties: {
    name: string('Name that the model calls it by.', { minLength: 1 }),
    description: orNull('string', 'What it does, for the model.'),
    parameters: {
      description: 'JSON Schema of its arguments.',
      type: ['object', 'null'],
      tsType: 'JsonObject | null',
    },
    strict: orNull(
      'boolean',
      'Whether the arguments of calls that the model makes by itself must follow the schema; those of forced calls always do.',
    ),
  },
};

const toolKinds: Definitions = {
  Tool: kinds('What the model may call: a function with arguments in JSON, or a custom tool with one text.', {
    function: 'FunctionTool',
    custom: 'CustomTool',
  }),
  FunctionTool: {
    description: 'A function that the model may ask for. Further keys reach the chat template as they are.',
    required: ['type', 'function'],
    properties: {
      type: { description: 'Kind of the tool.', const: 'function' },
      function: functionDefinition,
    },
  },
  FunctionDefinition: { ...functionDefinition, description: 'A function that the model may ask for.' },
  CustomTool: branch(
    'A tool whose input is one text. Chat templates see a function with the one argument `input`; the answer has the text itself.',
    ['type', 'custom'],
    {
      type: { description: 'Kind of the tool.', const: 'custom' },
      custom: object('The tool.', ['name'], {
        name: string('Name that the model calls it by.', { minLength: 1 }),
        description: orNull('string', 'What it does, for the model.'),
        format: ref('CustomToolFormat', 'What its input may be. Absent or null: any text.'),
      }),
    },
  ),
  CustomToolFormat: kinds(
    'What the input of a custom tool may be.',
    { text: 'TextInputFormat', grammar: 'GrammarInputFormat' },
    { type: ['object', 'null'] },
  ),
  TextInputFormat: branch('The input of a custom tool is any text.', ['type'], {
    type: { description: 'Kind of the format.', const: 'text' },
  }),
  GrammarInputFormat: branch('The input of a custom tool follows a grammar.', ['type', 'grammar'], {
    type: { description: 'Kind of the format.', const: 'grammar' },
    grammar: object('The grammar.', ['syntax', 'definition'], {
      syntax: oneOf('Notation of the definition.', ['lark', 'regex']),
      definition: string('The grammar itself.', { minLength: 1 }),
    }),
  }),
};

const calls: Definitions = {
  ToolCall: {
    description: 'A call that the model made.',
    type: 'object',
    ...byField('type', { custom: 'CustomToolCall' }, 'FunctionToolCall'),
  },
  FunctionToolCall: branch('A call of a function.', ['function'], {
    id: orNull('string', 'Id that the result refers to.'),
    type: { description: 'Kind of the tool.', const: 'function', expected: '"function" or "custom"' },
    function: calledFunction,
  }),
  CustomToolCall: branch('A call of a custom tool.', ['type', 'custom'], {
    id: orNull('string', 'Id that the result refers to.'),
    type: { description: 'Kind of the tool.', const: 'custom' },
    custom: object('What was called, and with what.', ['name'], {
      name: string('Name of the tool.', { minLength: 1 }),
      input: orNull('string', 'Its input. Null or absent: none.'),
    }),
  }),
  FunctionCall: {
    ...calledFunction,
    type: ['object', 'null'],
    description: 'A call in the older form, before there were tools.',
  },
};

const choices: Definitions = {
  NamedToolChoice: branch('The one function that must be called.', ['type', 'function'], {
    type: { description: 'Kind of the choice.', const: 'function' },
    function: named('The function.'),
  }),
  NamedCustomToolChoice: branch('The one custom tool that must be called.', ['type', 'custom'], {
    type: { description: 'Kind of the choice.', const: 'custom' },
    custom: named('The tool.'),
  }),
  AllowedToolsChoice: branch(
    'The tools of the request that may be called. The chat template still shows all of them.',
    ['type', 'allowed_tools'],
    {
      type: { description: 'Kind of the choice.', const: 'allowed_tools' },
      allowed_tools: object('Which, and whether one must be called.', ['mode', 'tools'], {
        mode: oneOf('Whether a call is left to the model or forced.', ['auto', 'required']),
        tools: list(
          'The tools, named as in a choice of one.',
          kinds(null, { function: 'NamedToolChoice', custom: 'NamedCustomToolChoice' }),
          { minItems: 1 },
        ),
      }),
    },
  ),
  ToolChoice: {
    ...when(
      { type: 'object' },
      {
        required: ['type'],
        properties: { type: { enum: ['function', 'custom', 'allowed_tools'] } },
        ...byField('type', {
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
    ...when({ type: 'object' }, named('The one function that must be called.'), {
      enum: ['none', 'auto', null],
      expected: 'none, auto, an object with a name or null',
    }),
    description: 'Whether the model may or must call a function, in the older form.',
    tsType: "'none' | 'auto' | { name: string }",
  },
};

/** Definitions of tools. */
export const toolDefinitions: Definitions = { ...toolKinds, ...calls, ...choices };
