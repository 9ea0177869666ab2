/** The same calls -> their text in each family. */
import type { ToolFormat } from '../../src/tool-calls/index.ts';

export const WEATHER = {
  city: 'São "Paulo" {🌦️} \\ back',
  days: 3,
  exact: true,
  limit: null,
  tags: ['a', "b's", 'c"]}'],
  filter: { range: [0.5, -2], deep: { x: '}' } },
};
export const TIME = { zone: 'UTC' };
const W = JSON.stringify(WEATHER);
const T = JSON.stringify(TIME);

const NESTED = ']<]minimax[>[';
/** A value as MiniMax M3 nests it. */
function nested(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => element('item', item)).join('');
  if (value === null || typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([key, one]) => element(key, one))
    .join('');
}
const element = (key: string, value: unknown): string =>
  `${NESTED}<${key}>${nested(value)}${NESTED}</${key}>`;
const nestedCall = (name: string, args: object): string =>
  `${NESTED}<invoke name="${name}">${nested(args)}${NESTED}</invoke>`;
const hunyuan = (name: string, parameters: readonly (readonly [string, string])[]): string =>
  `<tool_call:opensource>${name}<tool_sep:opensource>\n${parameters
    .map(
      ([key, value]) =>
        `<arg_key:opensource>${key}</arg_key:opensource>\n<arg_value:opensource>${value}</arg_value:opensource>\n`,
    )
    .join('')}</tool_call:opensource>`;

export type FamilyRow = {
  readonly format: ToolFormat;
  /** get_weather(WEATHER). */
  readonly one: string;
  /** get_weather(WEATHER), then get_time(TIME). */
  readonly two: string;
  /** A call that goes wrong, in a text that stays as it is. */
  readonly malformed: string;
  /** The text up to which nothing of `one` may be reported as a call: where the name ends. */
  readonly nameEnd: string;
  /** White space or a line break has to stand before a call that follows text. */
  readonly textBefore?: string;
};

const json = (args = 'arguments', name = 'name'): [string, string] => [
  `{"${name}": "get_weather", "${args}": ${W}}`,
  `{"${name}": "get_time", "${args}": ${T}}`,
];
const [w, t] = json();
const [wp, tp] = json('parameters');
const [wt, tt] = json('parameters', 'tool_name');

const qwen = (name: string, parameters: readonly [string, string][]): string =>
  `<function=${name}>\n${parameters.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join('')}</function>`;
const PARAMETERS: [string, string][] = Object.entries(WEATHER).map(([key, value]) => [
  key,
  typeof value === 'string' ? value : JSON.stringify(value),
]);
const tagged = (before: (key: string) => string, after: string): string =>
  PARAMETERS.map(([key, value]) => before(key) + value + after).join('');

/** A Python or Gemma literal with the given quotes. */
function literal(value: unknown, quote: (text: string) => string, key: (text: string) => string): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, quote, key)).join(',')}]`;
  if (value !== null && typeof value === 'object')
    return `{${Object.entries(value)
      .map(([name, item]) => `${key(name)}:${literal(item, quote, key)}`)
      .join(',')}}`;
  return value === null ? 'None' : value === true ? 'True' : String(value);
}
const python = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
const pythonCall = `get_weather(${Object.entries(WEATHER)
  .map(([key, value]) => `${key}=${literal(value, python, python)}`)
  .join(', ')})`;
const gemma = (begin: string, end: string, mark: string): [string, string] => {
  const quote = (text: string): string => mark + text + mark;
  const bare = (text: string): string => text;
  return [
    `${begin}call:get_weather${literal(WEATHER, quote, bare)}${end}`,
    `${begin}call:get_time${literal(TIME, quote, bare)}${end}`,
  ];
};
const dsml = (name: string, parameters: Record<string, unknown>): string =>
  `<｜DSML｜invoke name="${name}">\n${Object.entries(parameters)
    .map(([key, value]) =>
      typeof value === 'string'
        ? `<｜DSML｜parameter name="${key}" string="true">${value}</｜DSML｜parameter>\n`
        : `<｜DSML｜parameter name="${key}" string="false">${JSON.stringify(value)}</｜DSML｜parameter>\n`,
    )
    .join('')}</｜DSML｜invoke>\n`;
const kimi3 = (name: string, index: number, parameters: Record<string, unknown>): string =>
  `<|open|>call tool="${name}" index="${index}"<|sep|>${Object.entries(parameters)
    .map(
      ([key, value]) =>
        `<|open|>argument key="${key}" type="${typeof value}"<|sep|>${typeof value === 'string' ? value : JSON.stringify(value)}<|close|>argument<|sep|>`,
    )
    .join('')}<|close|>call<|sep|>`;
const atem = (name: string, parameters: Record<string, unknown>): string =>
  `<atem:function_calls>\n<atem:invoke name="${name}">\n${Object.entries(parameters)
    .map(
      ([key, value]) =>
        `<atem:parameter name="${key}">${typeof value === 'string' ? value : JSON.stringify(value)}</atem:parameter>\n`,
    )
    .join('')}</atem:invoke>\n</atem:function_calls>`;
const minimax = `<invoke name="get_weather">\n${tagged((key) => `<parameter name="${key}">`, '</parameter>\n')}</invoke>\n`;
const minicpm = `<function name="get_weather">${tagged((key) => `<param name="${key}"><![CDATA[`, ']]></param>')}</function>`;
const glm = `<tool_call>get_weather\n${tagged((key) => `<arg_key>${key}</arg_key>\n<arg_value>`, '</arg_value>\n')}</tool_call>`;
const [g4w, g4t] = gemma('<|tool_call>', '<tool_call|>', '<|"|>');
const [fgw, fgt] = gemma('<start_function_call>', '<end_function_call>', '<escape>');
const seed = (name: string, parameters: readonly [string, string][]): string =>
  `<seed:tool_call>\n<function=${name}>\n${parameters.map(([key, value]) => `<parameter=${key}>${value}</parameter>\n`).join('')}</function>\n</seed:tool_call>`;

export const FAMILY_ROWS: readonly FamilyRow[] = [
  {
    format: 'json',
    one: w,
    two: `${w}\n${t}`,
    malformed: '{"name": "get_weather", arguments}',
    nameEnd: '"get_weather"',
    textBefore: 'Let me look.\n',
  },
  {
    format: 'hermes',
    one: `<tool_call>\n${w}\n</tool_call>`,
    two: `<tool_call>\n${w}\n</tool_call>\n<tool_call>\n${t}\n</tool_call>`,
    malformed: '<tool_call>\n{"name": "get_weather", arguments: {}}\n</tool_call>',
    nameEnd: '"get_weather"',
  },
  {
    format: 'llama3_json',
    one: `<|python_tag|>${wp}`,
    two: `<|python_tag|>${wp}; ${tp}`,
    malformed: '<|python_tag|>print(1 + 1)',
    nameEnd: '"get_weather"',
  },
  {
    format: 'llama3_json',
    one: wp,
    two: `${wp}; ${tp}`,
    malformed: '{"city": "Paris", "days": 3}',
    nameEnd: '"get_weather"',
    textBefore: 'Let me look.\n\n',
  },
  {
    format: 'granite',
    one: `<|tool_call|>[${w}]`,
    two: `<|tool_call|>[${w}, ${t}]`,
    malformed: '<|tool_call|>[{"name": "get_weather",}]',
    nameEnd: '"get_weather"',
  },
  {
    format: 'phi4_mini_json',
    one: `functools[${w}]`,
    two: `functools[${w}, ${t}]`,
    malformed: 'functools are a Python module',
    nameEnd: '"get_weather"',
  },
  {
    format: 'phi4_mini_json',
    one: `<|tool_call|>[${w}]<|/tool_call|>`,
    two: `<|tool_call|>[${w}, ${t}]<|/tool_call|>`,
    malformed: '<|tool_call|>[1, 2]<|/tool_call|>',
    nameEnd: '"get_weather"',
  },
  {
    format: 'tool_calls_list',
    one: `<tool_calls>[${w}]</tool_calls>`,
    two: `<tool_calls>[\n${w},\n${t}\n]</tool_calls>`,
    malformed: '<tool_calls>[]</tool_calls>',
    nameEnd: '"get_weather"',
  },
  {
    format: 'minimax',
    one: `<tool_calls>\n${w}\n</tool_calls>`,
    two: `<tool_calls>\n${w}\n${t}\n</tool_calls>`,
    malformed: '<tool_calls>none</tool_calls>',
    nameEnd: '"get_weather"',
  },
  {
    format: 'nemotron',
    one: `<TOOLCALL>[${w}]</TOOLCALL>`,
    two: `<TOOLCALL>[${w}, ${t}]</TOOLCALL>`,
    malformed: '<TOOLCALL>["get_weather"]</TOOLCALL>',
    nameEnd: '"get_weather"',
  },
  {
    format: 'gigachat',
    one: `<|function_call|>${w}`,
    two: `<|function_call|>${w}<|function_call|>${t}`,
    malformed: '<|function_call|>get_weather()',
    nameEnd: '"get_weather"',
  },
  {
    format: 'apertus',
    one: `<|tools_prefix|>[{"get_weather": ${W}}]<|tools_suffix|>`,
    two: `<|tools_prefix|>[{"get_weather": ${W}}, {"get_time": ${T}}]<|tools_suffix|>`,
    malformed: '<|tools_prefix|>["get_weather"]<|tools_suffix|>',
    nameEnd: '"get_weather"',
  },
  {
    format: 'cohere',
    one: `<|START_ACTION|>[\n    {"tool_call_id": "0", ${wt.slice(1)}\n]<|END_ACTION|>`,
    two: `<|START_ACTION|>[\n    {"tool_call_id": "0", ${wt.slice(1)},\n    {"tool_call_id": "1", ${tt.slice(1)}\n]<|END_ACTION|>`,
    malformed: '<|START_ACTION|>[{"tool_call_id": 0}]<|END_ACTION|>',
    nameEnd: '"get_weather"',
  },
  {
    format: 'command_r',
    one: `Action:\n\`\`\`json\n[${wt}]\n\`\`\``,
    two: `Action:\n\`\`\`json\n[\n    ${wt},\n    ${tt}\n]\n\`\`\``,
    malformed: 'Action: think it over, then ```json [1]```.',
    nameEnd: '"get_weather"',
  },
  {
    format: 'mistral',
    one: `[TOOL_CALLS] [${w}]`,
    two: `[TOOL_CALLS][${w.slice(0, -1)}, "id": "a1B2c3D4e"}, ${t}]`,
    malformed: '[TOOL_CALLS] [{"name": "get_weather", "arguments": [1]}]',
    nameEnd: '"get_weather"',
  },
  {
    format: 'mistral_args',
    one: `[TOOL_CALLS]get_weather[ARGS]${W}`,
    two: `[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]${W}[TOOL_CALLS]get_time${T}`,
    malformed: '[TOOL_CALLS]get_weather[ARGS]city=Paris',
    nameEnd: 'get_weather[ARGS]',
  },
  {
    format: 'deepseek_v3',
    one: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n\`\`\`json\n${W}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    two: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n\`\`\`json\n${W}\n\`\`\`<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n\`\`\`json\n${T}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    malformed: '<｜tool▁calls▁begin｜>get_weather<｜tool▁calls▁end｜>',
    nameEnd: 'get_weather\n',
  },
  {
    format: 'deepseek_v31',
    one: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>${W}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    two: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>${W}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>${T}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    malformed: '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>Paris<｜tool▁call▁end｜>',
    nameEnd: 'get_weather<｜tool▁sep｜>',
  },
  {
    format: 'deepseek_v32',
    one: `<｜DSML｜function_calls>\n${dsml('get_weather', WEATHER)}</｜DSML｜function_calls>`,
    two: `<｜DSML｜tool_calls>\n${dsml('get_weather', WEATHER)}${dsml('get_time', TIME)}</｜DSML｜tool_calls>`,
    malformed: '<｜DSML｜function_calls>\nget_weather\n</｜DSML｜function_calls>',
    nameEnd: 'get_weather">',
  },
  {
    format: 'deepseek_v4',
    one: `<｜DSML｜tool_calls>\n${dsml('get_weather', WEATHER)}</｜DSML｜tool_calls>`,
    two: `<｜DSML｜tool_calls>\n${dsml('get_weather', WEATHER)}${dsml('get_time', TIME)}</｜DSML｜tool_calls>`,
    malformed: '<｜DSML｜tool_calls>\nget_weather\n</｜DSML｜tool_calls>',
    nameEnd: 'get_weather">',
  },
  {
    format: 'kimi_k2',
    one: `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>${W}<|tool_call_end|><|tool_calls_section_end|>`,
    two: `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>${W}<|tool_call_end|><|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>${T}<|tool_call_end|><|tool_calls_section_end|>`,
    malformed: '<|tool_calls_section_begin|>get_weather<|tool_calls_section_end|>',
    nameEnd: '<|tool_call_argument_begin|>',
  },
  {
    format: 'kimi_k3',
    one: `<|open|>tools<|sep|>${kimi3('get_weather', 1, WEATHER)}<|close|>tools<|sep|>`,
    two: `<|open|>tools<|sep|>${kimi3('get_weather', 1, WEATHER)}${kimi3('get_time', 2, TIME)}<|close|>tools<|sep|>`,
    malformed: '<|open|>tools<|sep|>get_weather<|close|>tools<|sep|>',
    nameEnd: 'get_weather"',
  },
  {
    format: 'muse_glimmer',
    one: `<|start|>assistant to=get_weather<|message|>${atem('get_weather', WEATHER)}`,
    two: `<|start|>assistant to=get_weather<|message|>${atem('get_weather', WEATHER)}<|eom|><|start|>assistant to=get_time<|message|>${atem('get_time', TIME)}`,
    malformed:
      '<|start|>assistant to=get_weather<|message|><atem:function_calls>\nget_weather</atem:function_calls>',
    nameEnd: 'get_weather">',
  },
  {
    format: 'solar',
    one: `<|tool_call:begin|>x1<|tool_call:name|>get_weather<|tool_call:args|>${W}<|tool_call:end|>`,
    two: `<|tool_call:begin|>x1<|tool_call:name|>get_weather<|tool_call:args|>${W}<|tool_call:end|>\n<|tool_call:begin|>x2<|tool_call:name|>get_time<|tool_call:args|>${T}<|tool_call:end|>`,
    malformed: '<|tool_call:begin|>x1<|tool_call:name|>get_weather<|tool_call:args|>Paris<|tool_call:end|>',
    nameEnd: '<|tool_call:args|>',
  },
  {
    format: 'functionary_v31',
    one: `<function=get_weather>${W}</function>`,
    two: `<function=get_weather>${W}</function><function=get_time>${T}</function>`,
    malformed: '<function=get_weather>Paris</function>',
    nameEnd: 'get_weather>',
  },
  {
    format: 'functionary_v32',
    one: `get_weather\n${W}`,
    two: `get_weather\n${W}>>>get_time\n${T}`,
    malformed: 'get_weather\nParis',
    nameEnd: 'get_weather\n',
    textBefore: 'all\nLet me look.>>>',
  },
  {
    format: 'yandex',
    one: `[TOOL_CALL_START]get_weather\n${W}`,
    two: `[TOOL_CALL_START]get_weather\n${W}\n[TOOL_CALL_START]get_time\n${T}`,
    malformed: '[TOOL_CALL_START]get_weather\nParis',
    nameEnd: 'get_weather\n',
  },
  {
    format: 'harmony',
    one: `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${W}<|call|>`,
    two: `<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>${W}<|call|><|start|>assistant<|channel|>commentary to=functions.get_time<|message|>${T}<|call|>`,
    malformed: '<|channel|>commentary to=functions.get_weather<|message|>Paris<|call|>',
    nameEnd: '<|message|>',
  },
  {
    format: 'qwen3_coder',
    one: `<tool_call>\n${qwen('get_weather', PARAMETERS)}\n</tool_call>`,
    two: `<tool_call>\n${qwen('get_weather', PARAMETERS)}\n</tool_call>\n<tool_call>\n${qwen('get_time', [['zone', 'UTC']])}\n</tool_call>`,
    malformed: '<tool_call>\n<function=get_weather>\nParis\n</function>\n</tool_call>',
    nameEnd: 'get_weather>',
  },
  {
    format: 'seed_oss',
    one: seed('get_weather', PARAMETERS),
    two: `${seed('get_weather', PARAMETERS)}\n${seed('get_time', [['zone', 'UTC']])}`,
    malformed: '<seed:tool_call>\nget_weather\n</seed:tool_call>',
    nameEnd: 'get_weather>',
  },
  {
    format: 'glm45',
    one: glm,
    two: `${glm}\n<tool_call>get_time<arg_key>zone</arg_key><arg_value>UTC</arg_value></tool_call>`,
    malformed: '<tool_call>get the weather\nin Paris</tool_call>',
    nameEnd: 'get_weather\n',
  },
  {
    format: 'hy_v3',
    one: `<tool_calls:opensource>\n${hunyuan('get_weather', PARAMETERS)}\n</tool_calls:opensource>`,
    two: `<tool_calls:opensource>\n${hunyuan('get_weather', PARAMETERS)}\n${hunyuan('get_time', [['zone', 'UTC']])}\n</tool_calls:opensource>`,
    malformed: '<tool_calls:opensource>\nget_weather</tool_calls:opensource>',
    nameEnd: '<tool_sep:opensource>',
  },
  {
    format: 'minimax_m3',
    one: `${NESTED}<tool_call>\n${nestedCall('get_weather', WEATHER)}\n${NESTED}</tool_call>`,
    two: `${NESTED}<tool_call>\n${nestedCall('get_weather', WEATHER)}\n${nestedCall('get_time', TIME)}\n${NESTED}</tool_call>`,
    malformed: `${NESTED}<tool_call>\nget_weather${NESTED}</tool_call>`,
    nameEnd: 'get_weather">',
  },
  {
    format: 'minimax_m2',
    one: `<minimax:tool_call>\n${minimax}</minimax:tool_call>`,
    two: `<minimax:tool_call>\n${minimax}<invoke name="get_time">\n<parameter name="zone">UTC</parameter>\n</invoke>\n</minimax:tool_call>`,
    malformed: '<minimax:tool_call>\nget_weather</minimax:tool_call>',
    nameEnd: 'get_weather">',
  },
  {
    format: 'minicpm',
    one: minicpm,
    two: `${minicpm}\n<function name="get_time"><param name="zone">UTC</param></function>`,
    malformed: '<function name="get_weather">Paris</function>',
    nameEnd: 'get_weather">',
  },
  {
    format: 'pythonic',
    one: `[${pythonCall}]`,
    two: `[${pythonCall}, get_time(zone="UTC")]`,
    malformed: '[1, 2, 3]',
    nameEnd: 'get_weather(',
    textBefore: 'Let me look.\n',
  },
  {
    format: 'lfm2',
    one: `<|tool_call_start|>[${pythonCall}]<|tool_call_end|>`,
    two: `<|tool_call_start|>[${pythonCall}, get_time("UTC")]<|tool_call_end|>`,
    malformed: '<|tool_call_start|>[]<|tool_call_end|>',
    nameEnd: 'get_weather(',
  },
  {
    format: 'gemma_tool_code',
    one: `\`\`\`tool_code\n${pythonCall}\n\`\`\``,
    two: `\`\`\`tool_code\nprint(${pythonCall})\nprint(default_api.get_time(zone='UTC'))\n\`\`\``,
    malformed: '```tool_code\n2 * 3\n```',
    nameEnd: 'get_weather(',
  },
  {
    format: 'functiongemma',
    one: fgw,
    two: fgw + fgt,
    malformed: '<start_function_call>get_weather<end_function_call>',
    nameEnd: 'get_weather{',
  },
  {
    format: 'gemma4',
    one: g4w,
    two: g4w + g4t,
    malformed: '<|tool_call>get_weather<tool_call|>',
    nameEnd: 'get_weather{',
  },
];
