/** Rules about tools and calls. */
import { WEATHER } from './request.ts';
import type { RuleRow } from './rule-rows.ts';

const calls = (text: string | null): Record<string, unknown> => ({
  messages: [
    { role: 'assistant', content: null, tool_calls: [{ id: 'a', function: { name: 'f', arguments: text } }] },
  ],
});

const CALL = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
const old = (function_call: unknown, tool_calls: unknown = null): Record<string, unknown> => ({
  messages: [{ role: 'assistant', content: null, function_call, tool_calls }],
});
const custom = (name: string) => ({ type: 'custom', custom: { name } });
const allowed = (type: string, name: string) => ({
  type: 'allowed_tools',
  allowed_tools: { mode: 'auto', tools: [{ type, [type]: { name } }] },
});

/** By the rule's name. */
export const TOOL_RULE_ROWS: Record<string, RuleRow> = {
  'earlier calls have one form': {
    good: [
      ...[calls('{"a": 1}'), calls(''), calls(null), calls('{"a"'), old({ name: 'f', arguments: '{' })],
      ...[old({ name: 'f', arguments: '{}' }), old(null, [CALL]), old({ name: 'f' }, [])],
    ],
    bad: [
      [
        old({ name: 'f', arguments: '{}' }, [CALL]),
        'messages.0.function_call: expected no value with tool_calls, got an object',
      ],
    ],
  },
  'functions or tools': {
    good: [{ functions: [WEATHER.function] }, { functions: null, tools: [WEATHER] }],
    bad: [
      [
        { functions: [WEATHER.function], tools: [WEATHER] },
        'functions: expected no value with tools, got a list of 1',
      ],
    ],
  },
  'function_call or tool_choice': {
    good: [{ function_call: 'none' }, { function_call: null, tool_choice: 'none' }],
    bad: [
      [
        { function_call: 'none', tool_choice: 'none' },
        'function_call: expected no value with tool_choice, got "none"',
      ],
    ],
  },
  'function_call needs functions': {
    good: [{ function_call: 'none' }, { function_call: 'auto', functions: [] }],
    bad: [[{ function_call: 'auto' }, 'function_call: expected none without functions, got "auto"']],
  },
  'a named function is among the functions': {
    good: [{ function_call: { name: 'weather' }, functions: [WEATHER.function] }],
    bad: [
      [
        { function_call: { name: 'wether' }, functions: [WEATHER.function] },
        'function_call.name: expected the name of one of the functions, got "wether"',
      ],
    ],
  },
  'a custom tool has a name of its own': {
    good: [{ tools: [WEATHER, WEATHER, custom('sql')] }],
    bad: [
      [
        { tools: [WEATHER, custom('weather')] },
        'tools.1.custom.name: expected a name that no other tool has, got "weather"',
      ],
      [
        { tools: [custom('sql'), custom('sql')] },
        'tools.1.custom.name: expected a name that no other tool has, got "sql"',
      ],
    ],
  },
  'tool_choice needs tools': {
    good: [
      { tool_choice: 'none' },
      { tool_choice: null },
      { tool_choice: 'required', tools: [] },
      { tool_choice: 'auto', tools: [WEATHER] },
    ],
    bad: [
      [{ tool_choice: 'auto' }, 'tool_choice: expected none without tools, got "auto"'],
      [{ tool_choice: 'required', tools: null }, 'tool_choice: expected none without tools, got "required"'],
      [
        { tool_choice: { type: 'function', function: { name: 'weather' } } },
        'tool_choice: expected none without tools, got an object',
      ],
    ],
  },
  'a named tool is among the tools': {
    good: [
      { tool_choice: { type: 'function', function: { name: 'weather' } }, tools: [WEATHER] },
      { tool_choice: { type: 'custom', custom: { name: 'sql' } }, tools: [WEATHER, custom('sql')] },
      { tool_choice: allowed('function', 'weather'), tools: [WEATHER] },
    ],
    bad: [
      [
        { tool_choice: { type: 'custom', custom: { name: 'weather' } }, tools: [WEATHER] },
        'tool_choice.custom.name: expected the name of one of the custom tools, got "weather"',
      ],
      [
        { tool_choice: allowed('function', 'wether'), tools: [WEATHER] },
        'tool_choice.allowed_tools.tools.0.function.name: expected the name of one of the tools, got "wether"',
      ],
      [
        { tool_choice: { type: 'function', function: { name: 'wether' } }, tools: [WEATHER] },
        'tool_choice.function.name: expected the name of one of the tools, got "wether"',
      ],
      [
        { tool_choice: { type: 'function', function: { name: 'weather' } }, tools: [] },
        'tool_choice.function.name: expected the name of one of the tools, got "weather"',
      ],
    ],
  },
};
