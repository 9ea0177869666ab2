/** What rows of the table of formats share: syntaxes of calls, and rows that differ in a word. */
import type { FormatRow, ToolCallSyntax } from './format-row.ts';
import { xmlRow } from './xml-calls.ts';

/** Parameters in Qwen's tags. */
export const QWEN_PARAMETERS = {
  callBegin: '<function=',
  nameEnd: '>',
  callEnd: '</function>',
  parameterBegin: '<parameter=',
  keyEnd: '>',
  hasLineBreak: true,
  valueEnds: ['\n</parameter>', '</parameter>'],
  valueLookahead: ['\n<parameter=', '\n</function>'],
} as const;

/** `{"name": NAME, "arguments": {...}}`. */
export const JSON_OBJECT = {
  begin: '{"name": ',
  name: 'json',
  middle: [', "arguments": '],
  arguments: 'json',
  end: '}',
  separator: ', ',
} as const;
/** `NAME(KEY=VALUE, ...)`. */
export const PYTHON_CALL = {
  begin: '',
  name: 'plain',
  middle: ['('],
  arguments: 'python',
  textArgument: (name: string) => [`${name}="`, '"'] as const,
  end: ')',
  separator: ', ',
} as const;
/** Parameters in DeepSeek's tags, in a section of this name; those of both names are read. */
export function dsmlRow(section: 'function_calls' | 'tool_calls'): Pick<FormatRow, 'reads' | 'writes'> {
  const names = [section, section === 'tool_calls' ? 'function_calls' : 'tool_calls'];
  return xmlRow(
    {
      sections: {
        begins: names.map((name) => `<｜DSML｜${name}>`),
        ends: names.map((name) => `</｜DSML｜${name}>`),
      },
      callBegin: '<｜DSML｜invoke name="',
      nameEnd: '">',
      callEnd: '</｜DSML｜invoke>',
      parameterBegin: '<｜DSML｜parameter name="',
      keyEnd: '"',
      typeAttribute: { end: '>', string: '"true"' },
      valueEnds: ['</｜DSML｜parameter>'],
    },
    'deepseek_xml',
  );
}

/** A list of calls as JSON objects, between two markers. */
export function inSection(begin: string, end: string): ToolCallSyntax {
  return { ...JSON_OBJECT, section: { begin, end }, trigger: begin };
}
