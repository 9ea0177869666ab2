/** The table of tool-call formats: one row each, which parser, grammar and detection read. */
import { atemRow } from './atem-calls.ts';
import { eitherOf } from './context.ts';
import {
  dsmlRow,
  eachBetween,
  hunyuanParameters,
  inSection,
  JSON_OBJECT,
  PYTHON_CALL,
  QWEN_PARAMETERS,
} from './format-parts.ts';
import type { FormatRow } from './format-row.ts';
import { gemmaCalls } from './gemma-calls.ts';
import { harmonyRow } from './harmony-calls.ts';
import { INKLING, inklingRow } from './inkling-calls.ts';
import { bareJsonCalls, jsonCalls } from './json-calls.ts';
import { llamaCalls } from './llama-calls.ts';
import {
  FUNCTIONARY_TEXT,
  functionaryCalls,
  mistralCalls,
  NAMED,
  namedJson,
  namedRow,
  splitIndexedName,
} from './named-json.ts';
import { nestedCalls } from './nested-calls.ts';
import { barePythonCalls, fencedPythonCalls, pythonLineCalls, pythonListCalls } from './python-calls.ts';
import { step3Calls } from './step3-calls.ts';
import { xmlCalls, xmlRow } from './xml-calls.ts';

const DEEPSEEK_CALL = {
  section: { begin: '<｜tool▁calls▁begin｜>', end: '<｜tool▁calls▁end｜>' },
  callBegin: '<｜tool▁call▁begin｜>',
  callEnd: '<｜tool▁call▁end｜>',
} as const;

/**
 * All formats, named like vLLM's parsers if it has one. Detection takes the first row whose signs the template has, so
 * specific rows come before general ones.
 */
const FORMATS = {
  harmony: harmonyRow,
  gemma4: {
    reads: gemmaCalls('<|tool_call>', '<tool_call|>', '<|"|>'),
    writes: {
      begin: '<|tool_call>call:',
      name: 'plain',
      middle: ['{'],
      arguments: 'gemma',
      textArgument: (name) => [`${name}:<|"|>`, '<|"|>'],
      end: '}<tool_call|>',
      separator: '',
      trigger: '<|tool_call>',
    },
    seenBy: [['<|tool_call>']],
  },
  functiongemma: {
    reads: gemmaCalls('<start_function_call>', '<end_function_call>', '<escape>'),
    seenBy: [['<start_function_call>']],
  },
  gemma_tool_code: {
    reads: fencedPythonCalls('```tool_code', '```'),
    writes: {
      ...PYTHON_CALL,
      section: { begin: '```tool_code\n', end: '\n```' },
      separator: '\n',
      trigger: '```tool_code',
    },
    seenBy: [['```tool_code']],
  },
  kimi_k2: {
    ...namedRow(
      {
        section: { begin: '<|tool_calls_section_begin|>', end: '<|tool_calls_section_end|>' },
        callBegin: '<|tool_call_begin|>',
        nameEnd: '<|tool_call_argument_begin|>',
        callEnd: '<|tool_call_end|>',
        splitName: splitIndexedName,
      },
      {
        begin: '<|tool_call_begin|>functions.',
        middle: [':', { pattern: '[0-9]+' }, '<|tool_call_argument_begin|>'],
      },
    ),
    seenBy: [['<|tool_call_begin|>']],
  },
  kimi_k3: {
    reads: xmlCalls({
      sections: { begins: ['<|open|>tools<|sep|>'], ends: ['<|close|>tools<|sep|>'] },
      callBegin: '<|open|>call tool="',
      nameEnd: '"',
      attributesEnd: '<|sep|>',
      hasEscapes: true,
      callEnd: '<|close|>call<|sep|>',
      parameterBegin: '<|open|>argument key="',
      keyEnd: '"',
      typeAttribute: { end: '<|sep|>', string: '"string"' },
      valueEnds: ['<|close|>argument<|sep|>'],
    }),
    seenBy: [['<|open|>', '<|end_of_msg|>']],
  },
  muse_glimmer: { ...atemRow, seenBy: [['<atem:function_calls>', '<|message|>']] },
  solar: {
    reads: namedJson({
      callBegin: '<|tool_call:begin|>',
      prefixEnd: '<|tool_call:name|>',
      nameEnd: '<|tool_call:args|>',
      callEnd: '<|tool_call:end|>',
    }),
    seenBy: [['<|tool_call:begin|>']],
  },
  solar_open2: {
    reads: xmlCalls({
      callBegin: '<|tool_call:start|>',
      nameEnd: '\n',
      nameLookahead: ['<|tool_arg:start|>', '<|tool_call:end|>'],
      callEnd: '<|tool_call:end|>',
      parameterBegin: '<|tool_arg:start|>',
      keyEnd: '<|tool_arg:value|>',
      valueEnds: ['<|tool_arg:end|>'],
      valueLookahead: ['<|tool_call:end|>', '<|tool_call:start|>', '<|tool_arg:start|>'],
    }),
    seenBy: [['<|tool_call:start|>']],
  },
  step3: { reads: step3Calls(), seenBy: [['<steptml:invoke'], ['steptml', '<｜tool_calls_begin｜>']] },
  inkling: { ...inklingRow, seenBy: [[INKLING.call], [INKLING.message, INKLING.text]] },
  deepseek_v4: { ...dsmlRow('tool_calls'), seenBy: [['｜DSML｜', 'tool_calls>']] },
  deepseek_v32: { ...dsmlRow('function_calls'), seenBy: [['｜DSML｜']] },
  deepseek_v3: {
    ...namedRow(
      {
        ...DEEPSEEK_CALL,
        prefixEnd: '<｜tool▁sep｜>',
        nameEnd: '\n',
        fence: { begin: '```json', end: '```' },
      },
      {
        begin: '<｜tool▁call▁begin｜>function<｜tool▁sep｜>',
        middle: ['\n```json\n'],
        end: '\n```<｜tool▁call▁end｜>',
        separator: '\n',
      },
    ),
    seenBy: [['<｜tool▁call▁begin｜>', '```json']],
  },
  deepseek_v31: {
    ...namedRow({ ...DEEPSEEK_CALL, nameEnd: '<｜tool▁sep｜>' }),
    seenBy: [['<｜tool▁call▁begin｜>']],
  },
  /** `[TOOL_CALLS]NAME[ARGS]{...}`. */
  mistral_args: {
    reads: mistralCalls(),
    writes: { ...NAMED, begin: '[TOOL_CALLS]', middle: ['[ARGS]'], end: '', trigger: '[TOOL_CALLS]' },
    seenBy: [['[TOOL_CALLS]', '[ARGS]']],
  },
  /** A JSON list after `[TOOL_CALLS]`; both Mistral formats parse both forms. */
  mistral: {
    reads: mistralCalls(),
    writes: inSection('[TOOL_CALLS] [', ']'),
    seenBy: [['[TOOL_CALLS]']],
  },
  yandex: {
    ...namedRow({ callBegin: '[TOOL_CALL_START]', nameEnd: '\n' }),
    seenBy: [['[TOOL_CALL_START]']],
  },
  functionary_v32: {
    reads: functionaryCalls(),
    writes: {
      ...NAMED,
      begin: '',
      middle: ['\n'],
      end: '',
      separator: '>>>',
      trigger: null,
      textBegin: `${FUNCTIONARY_TEXT}\n`,
    },
    framesText: true,
    seenBy: [['>>>', /recipient|functionary/]],
  },
  seed_oss: {
    ...xmlRow(
      {
        ...QWEN_PARAMETERS,
        hasLineBreak: false,
        valueEnds: ['</parameter>'],
        sections: { begins: ['<seed:tool_call>'], ends: ['</seed:tool_call>'] },
      },
      'seed_xml',
      { isEachInSection: true },
    ),
    seenBy: [['<seed:tool_call>']],
  },
  qwen3_coder: {
    ...xmlRow(
      { ...QWEN_PARAMETERS, sections: { begins: ['<tool_call>'], ends: ['</tool_call>'] } },
      'qwen_xml',
      { isEachInSection: true },
    ),
    seenBy: [['<function=', '<parameter=']],
  },
  functionary_v31: {
    ...namedRow({ callBegin: '<function=', nameEnd: '>', callEnd: '</function>' }),
    seenBy: [['<function=']],
  },
  minicpm: {
    ...xmlRow(
      {
        callBegin: '<function name="',
        nameEnd: '">',
        callEnd: '</function>',
        parameterBegin: '<param name="',
        keyEnd: '">',
        valueEnds: ['</param>'],
        hasCdata: true,
      },
      'minicpm_xml',
    ),
    seenBy: [['<function name=', '<param name=']],
  },
  minimax_m2: {
    ...xmlRow(
      {
        sections: { begins: ['<minimax:tool_call>'], ends: ['</minimax:tool_call>'] },
        callBegin: '<invoke name="',
        nameEnd: '">',
        callEnd: '</invoke>',
        parameterBegin: '<parameter name="',
        keyEnd: '">',
        valueEnds: ['</parameter>'],
      },
      'minimax_xml',
    ),
    seenBy: [['<minimax:tool_call>', '<invoke name=']],
  },
  /** Hunyuan 3, with tags that have a suffix or none. */
  hy_v3: {
    ...xmlRow(hunyuanParameters(':opensource'), 'hunyuan_xml', { middle: ['<tool_sep:opensource>\n'] }),
    reads: eitherOf(xmlCalls(hunyuanParameters(':opensource')), xmlCalls(hunyuanParameters(''))),
    seenBy: [[/<tool_sep(?:\{\})?(?::opensource)?>/]],
  },
  /** MiniMax M3: nested elements. */
  minimax_m3: { reads: nestedCalls(), seenBy: [[']<]minimax[>[']] },
  glm45: {
    ...xmlRow(
      {
        callBegin: '<tool_call>',
        nameEnd: '\n',
        nameLookahead: ['<arg_key>', '</tool_call>'],
        callEnd: '</tool_call>',
        parameterBegin: '<arg_key>',
        keyEnd: '</arg_key>',
        valueBegin: '<arg_value>',
        valueEnds: ['</arg_value>'],
      },
      'glm_xml',
      { middle: [] },
    ),
    seenBy: [['<tool_call>', '<arg_key>', '<arg_value>']],
  },
  cohere: {
    reads: jsonCalls({ begins: ['<|START_ACTION|>'], ends: ['<|END_ACTION|>'], nameKey: 'tool_name' }),
    seenBy: [['<|START_ACTION|>']],
  },
  command_r: {
    reads: jsonCalls({
      begins: ['Action:'],
      nameKey: 'tool_name',
      isGated: true,
    }),
    seenBy: [['Action:', '```json', 'tool_name']],
  },
  apertus: {
    reads: jsonCalls({ begins: ['<|tools_prefix|>'], ends: ['<|tools_suffix|>'], isKeyed: true }),
    writes: { ...inSection('<|tools_prefix|>[', ']<|tools_suffix|>'), begin: '{', middle: [': '] },
    seenBy: [['<|tools_prefix|>']],
  },
  phi4_mini_json: {
    reads: jsonCalls({ begins: ['functools', '<|tool_call|>'], ends: ['<|/tool_call|>'] }),
    writes: inSection('functools[', ']'),
    seenBy: [['functools['], ['<|tool|>', '<|/tool|>']],
  },
  granite: {
    reads: jsonCalls({ begins: ['<|tool_call|>', '<tool_call>'], ends: ['</tool_call>'] }),
    writes: inSection('<|tool_call|>[', ']'),
    seenBy: [['<|tool_call|>']],
  },
  lfm2: {
    reads: pythonListCalls('<|tool_call_start|>', '<|tool_call_end|>'),
    writes: {
      ...PYTHON_CALL,
      section: { begin: '<|tool_call_start|>[', end: ']<|tool_call_end|>' },
      trigger: '<|tool_call_start|>',
    },
    seenBy: [[/<\|tool_call_start\|>|<\|tool_list_start\|>|List of tools: \[/]],
  },
  nemotron: {
    reads: jsonCalls({ begins: ['<TOOLCALL>'], ends: ['</TOOLCALL>'] }),
    writes: inSection('<TOOLCALL>[', ']</TOOLCALL>'),
    seenBy: [['<TOOLCALL>']],
  },
  tool_calls_list: {
    reads: jsonCalls({ begins: ['<tool_calls>'], ends: ['</tool_calls>'] }),
    writes: inSection('<tool_calls>[', ']</tool_calls>'),
    seenBy: [[/<tool_calls>\s*\[/]],
  },
  minimax: {
    reads: jsonCalls({ begins: ['<tool_calls>'], ends: ['</tool_calls>'] }),
    writes: { ...inSection('<tool_calls>\n', '\n</tool_calls>'), separator: '\n' },
    seenBy: [['<tool_calls>']],
  },
  internlm: {
    reads: jsonCalls({ begins: ['<|action_start|>'], prefix: '<|plugin|>', ends: ['<|action_end|>'] }),
    writes: eachBetween('<|action_start|><|plugin|>', '<|action_end|>', {
      middle: [', "parameters": '],
      trigger: '<|action_start|>',
    }),
    seenBy: [['<|action_start|>'], ['<|plugin|>']],
  },
  longcat: {
    reads: jsonCalls({ begins: ['<longcat_tool_call>'], ends: ['</longcat_tool_call>'] }),
    writes: eachBetween('<longcat_tool_call>\n', '\n</longcat_tool_call>', { separator: '' }),
    seenBy: [['<longcat_tool_call>']],
  },
  'granite-20b-fc': {
    reads: jsonCalls({ begins: ['<function_call>'], ends: ['</function_call>'] }),
    writes: eachBetween('<function_call> ', ''),
    seenBy: [['<function_call>']],
  },
  olmo3: {
    reads: pythonLineCalls('<function_calls>', '</function_calls>'),
    writes: {
      ...PYTHON_CALL,
      section: { begin: '<function_calls>', end: '</function_calls>' },
      separator: '\n',
      trigger: '<function_calls>',
    },
    seenBy: [['<function_calls>']],
  },
  gigachat: {
    reads: jsonCalls({
      begins: [
        '<|function_call|>',
        '<|message_sep|>\n\nfunction call<|role_sep|>',
        'function call<|role_sep|>',
      ],
      ends: ['<|message_sep|>'],
    }),
    writes: eachBetween('<|function_call|>', '', { separator: '' }),
    seenBy: [[/<\|function_call\|>|<\|role_sep\|>/, /\btools\b/]],
  },
  hermes: {
    reads: jsonCalls({ begins: ['<tool_call>'], ends: ['</tool_call>'] }),
    writes: eachBetween('<tool_call>\n', '\n</tool_call>'),
    seenBy: [['<tool_call>']],
  },
  pythonic: {
    reads: barePythonCalls(),
    writes: { ...PYTHON_CALL, section: { begin: '[', end: ']' }, trigger: null },
    seenBy: [[/\[func_name1?\(/]],
  },
  llama3_json: {
    reads: llamaCalls(),
    writes: { ...JSON_OBJECT, middle: [', "parameters": '], separator: '; ', trigger: null },
    seenBy: [[/<\|python_tag\|>|"name": ?function name/]],
  },
  /** `{"name": ..., "arguments": {...}}` at the beginning of a line, with the name of a given tool. */
  json: {
    reads: bareJsonCalls({}),
    writes: { ...JSON_OBJECT, separator: '\n', trigger: null },
    seenBy: [[/\btools\b/]],
  },
  /** Text only. */
  none: {
    reads: { markers: [], literals: [], *read() {} },
    seenBy: [],
  },
} as const satisfies Readonly<Record<string, FormatRow>>;

/** How a model writes tool calls. */
export type ToolFormat = keyof typeof FORMATS;

/** The names of all formats. */
export const TOOL_FORMATS = Object.keys(FORMATS) as readonly ToolFormat[];

/** The row of a format. */
export function formatRow(format: ToolFormat): FormatRow {
  return FORMATS[format];
}
