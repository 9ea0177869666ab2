/** Calls in words, for templates that show none: the parser of the format reads them back. */
import { expect, it } from 'vitest';
import { callsText, formatRow, TOOL_FORMATS } from '../../../src/template/tool-calls/index.ts';
import { answerOf, callsOf } from './harness.ts';

const CALLS = [
  {
    name: 'get_weather',
    arguments: '{"city": "L\'Aquila \\"1\\"", "days": [1, null, true], "at": {"x": false}}',
  },
  { name: 'get_time', arguments: '{}' },
];

it.each(TOOL_FORMATS.filter((format) => format !== 'none'))('%s', (format) => {
  const style = formatRow(format).writes?.arguments;
  const reader = style === 'json' || style === 'python' ? format : 'json';
  const count = formatRow(format).writes?.separator === null ? 1 : 2;
  const calls = CALLS.slice(0, count);
  const message = answerOf(reader, callsText(format, calls));
  expect(callsOf(message)).toEqual(calls.map((call) => [call.name, JSON.parse(call.arguments)]));
  expect(message.content).toBe('');
});

it.each([
  ['json', '{"name": "f", "arguments": {"a": "b}'],
  ['lfm2', '<|tool_call_start|>[f(arguments="{\\"a\\": \\"b")]<|tool_call_end|>'],
] as const)('%s keeps arguments that are no JSON', (format, text) => {
  expect(callsText(format, [{ name: 'f', arguments: '{"a": "b' }])).toBe(text);
});
