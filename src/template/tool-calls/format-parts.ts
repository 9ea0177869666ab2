/** Parts shared by rows of the table of formats: syntaxes of calls, and rows that differ in one word. */
import type { FormatRow, ToolCallSyntax } from './format-row.ts';
import { type XmlCalls, xmlRow } from './xml-calls.ts';

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

/** Syntax of `{"name": NAME, "arguments": {...}}`. */
export const JSON_OBJECT = {
  begin: '{"name": ',
  name: 'json',
  middle: [', "arguments": '],
  arguments: 'json',
  end: '}',
  separator: ', ',
} as const;
/** Syntax of `NAME(KEY=VALUE, ...)`. */
export const PYTHON_CALL = {
  begin: '',
  name: 'plain',
  middle: ['('],
  arguments: 'python',
  textArgument: (name: string) => [`${name}="`, '"'] as const,
  end: ')',
  separator: ', ',
} as const;
/** Returns a row for parameters in DeepSeek's tags, in a section of this name. Sections of both names are read. */
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
      emptyEnds: ['"/>', '" />'],
      callEnd: '</｜DSML｜invoke>',
      parameterBegin: '<｜DSML｜parameter name="',
      keyEnd: '"',
      typeAttribute: { end: '>', string: '"true"' },
      valueEnds: ['</｜DSML｜parameter>'],
    },
    'deepseek_xml',
  );
}

/** Returns the syntax of parameters in Hunyuan 3's tags, whose names end with `suffix`. */
export function hunyuanParameters(suffix: string): XmlCalls {
  return {
    sections: { begins: [`<tool_calls${suffix}>`], ends: [`</tool_calls${suffix}>`] },
    callBegin: `<tool_call${suffix}>`,
    nameEnd: `<tool_sep${suffix}>`,
    callEnd: `</tool_call${suffix}>`,
    parameterBegin: `<arg_key${suffix}>`,
    keyEnd: `</arg_key${suffix}>`,
    valueBegin: `<arg_value${suffix}>`,
    valueEnds: [`</arg_value${suffix}>`],
  };
}

/** Returns the syntax of calls as JSON objects, each between two markers. */
export function eachBetween(
  begin: string,
  end: string,
  layout: Partial<ToolCallSyntax> = {},
): ToolCallSyntax {
  const trigger = begin.trimEnd();
  return { ...JSON_OBJECT, begin: `${begin}{"name": `, end: `}${end}`, separator: '\n', trigger, ...layout };
}

/** Returns the syntax of a list of calls as JSON objects, between two markers. */
export function inSection(begin: string, end: string): ToolCallSyntax {
  return { ...JSON_OBJECT, section: { begin, end }, trigger: begin };
}
