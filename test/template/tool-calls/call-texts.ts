/** The same two calls -> their text in the syntax of each family. */

export const WEATHER = {
  city: 'São "Paulo" {🌦️} \\ back',
  days: 3,
  exact: true,
  limit: null,
  tags: ['a', "b's", 'c"]}'],
  filter: { range: [0.5, -2], deep: { x: '}' } },
};
export const TIME = { zone: 'UTC' };
export const W = JSON.stringify(WEATHER);
export const T = JSON.stringify(TIME);

export const NESTED = ']<]minimax[>[';
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
export const nestedCall = (name: string, args: object): string =>
  `${NESTED}<invoke name="${name}">${nested(args)}${NESTED}</invoke>`;
export const hunyuan = (name: string, parameters: readonly (readonly [string, string])[]): string =>
  `<tool_call:opensource>${name}<tool_sep:opensource>\n${parameters
    .map(
      ([key, value]) =>
        `<arg_key:opensource>${key}</arg_key:opensource>\n<arg_value:opensource>${value}</arg_value:opensource>\n`,
    )
    .join('')}</tool_call:opensource>`;

const json = (args = 'arguments', name = 'name'): [string, string] => [
  `{"${name}": "get_weather", "${args}": ${W}}`,
  `{"${name}": "get_time", "${args}": ${T}}`,
];
export const [w, t] = json();
export const [wp, tp] = json('parameters');
export const [wt, tt] = json('parameters', 'tool_name');

export const qwen = (name: string, parameters: readonly [string, string][]): string =>
  `<function=${name}>\n${parameters.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join('')}</function>`;
export const PARAMETERS: [string, string][] = Object.entries(WEATHER).map(([key, value]) => [
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
export const pythonCall = `get_weather(${Object.entries(WEATHER)
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
export const dsml = (name: string, parameters: Record<string, unknown>): string =>
  `<｜DSML｜invoke name="${name}">\n${Object.entries(parameters)
    .map(([key, value]) =>
      typeof value === 'string'
        ? `<｜DSML｜parameter name="${key}" string="true">${value}</｜DSML｜parameter>\n`
        : `<｜DSML｜parameter name="${key}" string="false">${JSON.stringify(value)}</｜DSML｜parameter>\n`,
    )
    .join('')}</｜DSML｜invoke>\n`;
export const kimi3 = (name: string, index: number, parameters: Record<string, unknown>): string =>
  `<|open|>call tool="${name}" index="${index}"<|sep|>${Object.entries(parameters)
    .map(
      ([key, value]) =>
        `<|open|>argument key="${key}" type="${typeof value}"<|sep|>${typeof value === 'string' ? value : JSON.stringify(value)}<|close|>argument<|sep|>`,
    )
    .join('')}<|close|>call<|sep|>`;
export const atem = (name: string, parameters: Record<string, unknown>): string =>
  `<atem:function_calls>\n<atem:invoke name="${name}">\n${Object.entries(parameters)
    .map(
      ([key, value]) =>
        `<atem:parameter name="${key}">${typeof value === 'string' ? value : JSON.stringify(value)}</atem:parameter>\n`,
    )
    .join('')}</atem:invoke>\n</atem:function_calls>`;
export const minimax = `<invoke name="get_weather">\n${tagged((key) => `<parameter name="${key}">`, '</parameter>\n')}</invoke>\n`;
export const minicpm = `<function name="get_weather">${tagged((key) => `<param name="${key}"><![CDATA[`, ']]></param>')}</function>`;
export const glm = `<tool_call>get_weather\n${tagged((key) => `<arg_key>${key}</arg_key>\n<arg_value>`, '</arg_value>\n')}</tool_call>`;
export const [g4w, g4t] = gemma('<|tool_call>', '<tool_call|>', '<|"|>');
export const [fgw, fgt] = gemma('<start_function_call>', '<end_function_call>', '<escape>');
export const seed = (name: string, parameters: readonly [string, string][]): string =>
  `<seed:tool_call>\n<function=${name}>\n${parameters.map(([key, value]) => `<parameter=${key}>${value}</parameter>\n`).join('')}</function>\n</seed:tool_call>`;
export const solarOpen = (name: string, parameters: readonly (readonly [string, string])[]): string =>
  `<|tool_call:start|>${name}\n${parameters
    .map(([key, value]) => `<|tool_arg:start|>${key}<|tool_arg:value|>${value}<|tool_arg:end|>\n`)
    .join('')}<|tool_call:end|>`;
export const step3 = (name: string, parameters: readonly (readonly [string, string])[]): string =>
  `<｜tool_call_begin｜>function<｜tool_sep｜>${name}\n<steptml:invoke name="${name}">${parameters
    .map(([key, value]) => `<steptml:parameter name="${key}">${value}</steptml:parameter>`)
    .join('')}</steptml:invoke><｜tool_call_end｜>`;
