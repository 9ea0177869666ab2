/** The fields about tools. */
import { type Row, same } from './field-row.ts';
import { WEATHER } from './request.ts';

const grammar = (syntax: string, definition: string) => ({
  type: 'grammar',
  grammar: { syntax, definition },
});
const allow = (mode: string, name: string) => ({
  type: 'allowed_tools',
  allowed_tools: { mode, tools: [{ type: 'function', function: { name } }] },
});

/** The custom tool `sql` as templates read it. */
const asFunction = (description?: string, input?: string) => ({
  type: 'function',
  function: {
    name: 'sql',
    ...(description === undefined ? {} : { description }),
    parameters: {
      type: 'object',
      properties: { input: { type: 'string', ...(input === undefined ? {} : { description: input }) } },
      required: ['input'],
      additionalProperties: false,
    },
  },
});

/** By field. */
export const TOOL_ROWS: Record<string, Row> = {
  tools: {
    absent: [],
    good: [
      ...same([WEATHER], []),
      [null, []],
      ...same([{ ...WEATHER, extra: { kept: true } }]),
      [[{ type: 'custom', custom: { name: 'sql', description: 'Asks.' } }], [asFunction('Asks.')]],
      [[{ type: 'custom', custom: { name: 'sql', format: { type: 'text' } } }], [asFunction()]],
      [
        [{ type: 'custom', custom: { name: 'sql', format: grammar('regex', 'a+') } }],
        [asFunction(undefined, 'Text that follows this regular expression:\na+')],
      ],
      [
        [{ type: 'custom', custom: { name: 'sql', format: grammar('lark', 'start: "a"') } }],
        [asFunction(undefined, 'Text that follows this Lark grammar:\nstart: "a"')],
      ],
    ],
    bad: [
      [{}, ': expected a list or null, got an object'],
      [[{ type: 'function' }], '.0.function: this field is required, got nothing'],
      [
        [{ type: 'retrieval', function: { name: 'a' } }],
        '.0.type: expected "function" or "custom", got "retrieval"',
      ],
      [[{ type: 'custom' }], '.0.custom: this field is required, got nothing'],
      [[{ type: 'custom', custom: {} }], '.0.custom.name: this field is required, got nothing'],
      [
        [{ type: 'custom', custom: { name: 'a', format: { type: 'json' } } }],
        '.0.custom.format.type: expected "text" or "grammar", got "json"',
      ],
      [
        [{ type: 'custom', custom: { name: 'a', format: grammar('ebnf', 'root ::= "a"') } }],
        '.0.custom.format.grammar.syntax: expected "lark" or "regex", got "ebnf"',
      ],

      [[{ type: 'function', function: { name: 5 } }], '.0.function.name: expected a non-empty string, got 5'],
      [
        [{ type: 'function', function: { name: 'a', parameters: { d: new Date(0) } } }],
        '.0.function.parameters.d: expected JSON data, got a value of type Date',
      ],
    ],
  },
  tool_choice: {
    absent: 'auto',
    beside: { tools: [WEATHER, { type: 'custom', custom: { name: 'sql' } }] },
    good: [
      ...same('none', 'auto', 'required'),
      [{ type: 'function', function: { name: 'weather' } }, { name: 'weather' }],
      [{ type: 'custom', custom: { name: 'sql' } }, { name: 'sql' }],
      [allow('auto', 'weather'), 'auto'],
      [allow('required', 'weather'), 'required'],
      [null, 'auto'],
    ],
    bad: [
      ['always', ': expected none, auto, required, a named tool, allowed tools or null, got "always"'],
      [5, ': expected none, auto, required, a named tool, allowed tools or null, got 5'],
      [{ type: 'function' }, '.function: this field is required, got nothing'],
      [{ type: 'tool' }, '.type: expected "function", "custom" or "allowed_tools", got "tool"'],
      [{ type: 'allowed_tools' }, '.allowed_tools: this field is required, got nothing'],
      [
        { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } },
        '.allowed_tools.tools: expected a non-empty list, got an empty list',
      ],
      [
        {
          type: 'allowed_tools',
          allowed_tools: { mode: 'none', tools: [{ type: 'function', function: { name: 'weather' } }] },
        },
        '.allowed_tools.mode: expected "auto" or "required", got "none"',
      ],
    ],
  },
  functions: {
    as: 'tools',
    absent: [],
    good: [
      [null, []],
      [[WEATHER.function], [WEATHER]],
    ],
    bad: [
      [{}, ': expected a list or null, got an object'],
      [[{}], '.0.name: this field is required, got nothing'],
      [
        [{ name: 'a', parameters: { d: new Date(0) } }],
        '.0.parameters.d: expected JSON data, got a value of type Date',
      ],
    ],
  },
  function_call: {
    as: 'tool_choice',
    absent: 'auto',
    beside: { functions: [WEATHER.function] },
    good: [...same('none', 'auto', { name: 'weather' }), [null, 'auto']],
    bad: [
      ['required', ': expected none, auto, an object with a name or null, got "required"'],
      [{}, '.name: this field is required, got nothing'],
    ],
  },
};
