/** A format's name -> the syntax of its calls, one row per family. */
import { OnpolicyError } from '../errors.ts';
import type { Family } from './context.ts';
import { gemmaCalls } from './gemma-calls.ts';
import { harmonyCalls } from './harmony-calls.ts';
import { bareJsonCalls, jsonCalls, readJsonCalls } from './json-calls.ts';
import { llamaCalls } from './llama-calls.ts';
import { functionaryCalls, mistralCalls, namedJson, splitIndexedName } from './named-json.ts';
import { barePythonCalls, fencedPythonCalls, pythonListCalls } from './python-calls.ts';
import { xmlCalls } from './xml-calls.ts';

const QWEN_PARAMETERS = {
  callBegin: '<function=',
  nameEnd: '>',
  callEnd: '</function>',
  parameterBegin: '<parameter=',
  keyEnd: '>',
  hasLineBreak: true,
  valueEnds: ['\n</parameter>', '</parameter>'],
  valueLookahead: ['\n<parameter=', '\n</function>'],
} as const;

/** All families, with the names of vLLM's parsers where it has one. */
const FAMILIES = {
  /** Text only. */
  none: { markers: [], literals: [], *read() {} } satisfies Family,
  /** `{"name": ..., "arguments": {...}}` at the beginning of a line, with the name of a given tool. */
  json: bareJsonCalls({}),
  hermes: jsonCalls({ begins: ['<tool_call>'], ends: ['</tool_call>'] }),
  llama3_json: llamaCalls(),
  granite: jsonCalls({ begins: ['<|tool_call|>', '<tool_call>'], ends: ['</tool_call>'] }),
  phi4_mini_json: jsonCalls({ begins: ['functools', '<|tool_call|>'], ends: ['<|/tool_call|>'] }),
  tool_calls_list: jsonCalls({ begins: ['<tool_calls>'], ends: ['</tool_calls>'] }),
  minimax: jsonCalls({ begins: ['<tool_calls>'], ends: ['</tool_calls>'] }),
  nemotron: jsonCalls({ begins: ['<TOOLCALL>'], ends: ['</TOOLCALL>'] }),
  gigachat: jsonCalls({ begins: ['<|function_call|>'] }),
  apertus: jsonCalls({ begins: ['<|tools_prefix|>'], ends: ['<|tools_suffix|>'], isKeyed: true }),
  cohere: jsonCalls({ begins: ['<|START_ACTION|>'], ends: ['<|END_ACTION|>'], nameKey: 'tool_name' }),
  command_r: jsonCalls({
    begins: ['Action:'],
    fence: '```json',
    ends: ['```'],
    nameKey: 'tool_name',
    isGated: true,
  }),
  /** A JSON list after `[TOOL_CALLS]`; both Mistral formats parse both forms. */
  mistral: mistralCalls((context) => readJsonCalls(context, { begins: [] })),
  /** `[TOOL_CALLS]NAME[ARGS]{...}`. */
  mistral_args: mistralCalls((context) => readJsonCalls(context, { begins: [] })),
  deepseek_v3: namedJson({
    section: { begin: '<｜tool▁calls▁begin｜>', end: '<｜tool▁calls▁end｜>' },
    callBegin: '<｜tool▁call▁begin｜>',
    prefixEnd: '<｜tool▁sep｜>',
    nameEnd: '\n',
    fence: { begin: '```json', end: '```' },
    callEnd: '<｜tool▁call▁end｜>',
  }),
  deepseek_v31: namedJson({
    section: { begin: '<｜tool▁calls▁begin｜>', end: '<｜tool▁calls▁end｜>' },
    callBegin: '<｜tool▁call▁begin｜>',
    nameEnd: '<｜tool▁sep｜>',
    callEnd: '<｜tool▁call▁end｜>',
  }),
  kimi_k2: namedJson({
    section: { begin: '<|tool_calls_section_begin|>', end: '<|tool_calls_section_end|>' },
    callBegin: '<|tool_call_begin|>',
    nameEnd: '<|tool_call_argument_begin|>',
    callEnd: '<|tool_call_end|>',
    splitName: splitIndexedName,
  }),
  solar: namedJson({
    callBegin: '<|tool_call:begin|>',
    prefixEnd: '<|tool_call:name|>',
    nameEnd: '<|tool_call:args|>',
    callEnd: '<|tool_call:end|>',
  }),
  functionary_v31: namedJson({ callBegin: '<function=', nameEnd: '>', callEnd: '</function>' }),
  functionary_v32: functionaryCalls(),
  yandex: namedJson({ callBegin: '[TOOL_CALL_START]', nameEnd: '\n' }),
  harmony: harmonyCalls(),
  qwen3_coder: xmlCalls({
    ...QWEN_PARAMETERS,
    sections: { begins: ['<tool_call>'], ends: ['</tool_call>'] },
  }),
  seed_oss: xmlCalls({
    ...QWEN_PARAMETERS,
    hasLineBreak: false,
    valueEnds: ['</parameter>'],
    sections: { begins: ['<seed:tool_call>'], ends: ['</seed:tool_call>'] },
  }),
  glm45: xmlCalls({
    callBegin: '<tool_call>',
    nameEnd: '\n',
    nameLookahead: ['<arg_key>', '</tool_call>'],
    callEnd: '</tool_call>',
    parameterBegin: '<arg_key>',
    keyEnd: '</arg_key>',
    valueBegin: '<arg_value>',
    valueEnds: ['</arg_value>'],
  }),
  minimax_m2: xmlCalls({
    sections: { begins: ['<minimax:tool_call>'], ends: ['</minimax:tool_call>'] },
    callBegin: '<invoke name="',
    nameEnd: '">',
    callEnd: '</invoke>',
    parameterBegin: '<parameter name="',
    keyEnd: '">',
    valueEnds: ['</parameter>'],
  }),
  deepseek_v32: xmlCalls({
    sections: {
      begins: ['<｜DSML｜function_calls>', '<｜DSML｜tool_calls>'],
      ends: ['</｜DSML｜function_calls>', '</｜DSML｜tool_calls>'],
    },
    callBegin: '<｜DSML｜invoke name="',
    nameEnd: '">',
    callEnd: '</｜DSML｜invoke>',
    parameterBegin: '<｜DSML｜parameter name="',
    keyEnd: '"',
    hasTypeAttribute: true,
    valueEnds: ['</｜DSML｜parameter>'],
  }),
  minicpm: xmlCalls({
    callBegin: '<function name="',
    nameEnd: '">',
    callEnd: '</function>',
    parameterBegin: '<param name="',
    keyEnd: '">',
    valueEnds: ['</param>'],
    hasCdata: true,
  }),
  pythonic: barePythonCalls(),
  lfm2: pythonListCalls('<|tool_call_start|>', '<|tool_call_end|>'),
  gemma_tool_code: fencedPythonCalls('```tool_code', '```'),
  functiongemma: gemmaCalls('<start_function_call>', '<end_function_call>', '<escape>'),
  gemma4: gemmaCalls('<|tool_call>', '<tool_call|>', '<|"|>'),
} as const satisfies Readonly<Record<string, Family>>;

/** How a model writes tool calls. */
export type ToolFormat = keyof typeof FAMILIES;

/** The names of all formats. */
export const TOOL_FORMATS = Object.keys(FAMILIES) as readonly ToolFormat[];

/** The syntax of a format. */
export function familyOf(format: ToolFormat): Family {
  return FAMILIES[format];
}

/** A format by its name, for options; an unknown name is an error that lists the known ones. */
export function toolFormat(name: string): ToolFormat {
  if (Object.hasOwn(FAMILIES, name)) return name as ToolFormat;
  throw new OnpolicyError(
    'INVALID_REQUEST',
    `tool format: expected one of ${TOOL_FORMATS.join(', ')}, got ${JSON.stringify(name)}`,
  );
}

/**
 * The texts with a meaning in a format. A special token whose text is one of these, or a part of one, must stay in the
 * parser's input, regardless of `skip_special_tokens`; the parser removes it.
 */
export function toolCallMarkers(format: ToolFormat): readonly string[] {
  return familyOf(format).literals;
}
