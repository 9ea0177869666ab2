/** What rows of the table of formats share: syntaxes of calls, and rows that differ in a word. */
import type { FormatRow, ToolCallSyntax } from './format-row.ts';
import { xmlCalls } from './xml-calls.ts';

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
  end: ')',
  separator: ', ',
} as const;
/** A name, then a JSON object. */
export const NAMED = { name: 'plain', arguments: 'json', separator: '' } as const;

/** Parameters in DeepSeek's tags, in a section of this name. */
export function dsmlCalls(section: string, seenBy: FormatRow['seenBy']): FormatRow {
  const callBegin = '<｜DSML｜invoke name="';
  const callEnd = '</｜DSML｜invoke>';
  return {
    reads: xmlCalls({
      sections: {
        begins: ['<｜DSML｜function_calls>', '<｜DSML｜tool_calls>'],
        ends: ['</｜DSML｜function_calls>', '</｜DSML｜tool_calls>'],
      },
      callBegin,
      nameEnd: '">',
      callEnd,
      parameterBegin: '<｜DSML｜parameter name="',
      keyEnd: '"',
      typeAttribute: { end: '>', string: '"true"' },
      valueEnds: ['</｜DSML｜parameter>'],
    }),
    writes: {
      section: { begin: `<｜DSML｜${section}>\n`, end: `\n</｜DSML｜${section}>` },
      begin: callBegin,
      name: 'plain',
      middle: ['">'],
      arguments: 'deepseek_xml',
      end: callEnd,
      separator: '\n',
      trigger: `<｜DSML｜${section}>`,
    },
    seenBy,
  };
}

/** A list of calls as JSON objects, between two markers. */
export function inSection(begin: string, end: string): ToolCallSyntax {
  return { ...JSON_OBJECT, section: { begin, end }, trigger: begin };
}
