/** Chat template text -> tool format, by the markers that the template writes or describes. */
import type { ToolFormat } from './formats.ts';
import { withoutComments } from './template-text.ts';

type Rule = { readonly format: ToolFormat; readonly all: readonly (string | RegExp)[] };

/** The first rule that matches applies; specific rules come before general ones. */
const RULES: readonly Rule[] = [
  { format: 'harmony', all: ['<|channel|>', '<|message|>'] },
  { format: 'gemma4', all: ['<|tool_call>'] },
  { format: 'functiongemma', all: ['<start_function_call>'] },
  { format: 'gemma_tool_code', all: ['```tool_code'] },
  { format: 'kimi_k2', all: ['<|tool_call_begin|>'] },
  { format: 'solar', all: ['<|tool_call:begin|>'] },
  { format: 'deepseek_v32', all: ['｜DSML｜'] },
  { format: 'deepseek_v3', all: ['<｜tool▁call▁begin｜>', '```json'] },
  { format: 'deepseek_v31', all: ['<｜tool▁call▁begin｜>'] },
  { format: 'mistral_args', all: ['[TOOL_CALLS]', '[ARGS]'] },
  { format: 'mistral', all: ['[TOOL_CALLS]'] },
  { format: 'yandex', all: ['[TOOL_CALL_START]'] },
  { format: 'functionary_v32', all: ['>>>', /recipient|functionary/] },
  { format: 'seed_oss', all: ['<seed:tool_call>'] },
  { format: 'qwen3_coder', all: ['<function=', '<parameter='] },
  { format: 'functionary_v31', all: ['<function='] },
  { format: 'minicpm', all: ['<function name=', '<param name='] },
  { format: 'minimax_m2', all: ['<minimax:tool_call>', '<invoke name='] },
  { format: 'json', all: [']<]minimax[>['] }, // nested tags after `<tool_call>`, which no parser here supports
  { format: 'glm45', all: ['<tool_call>', '<arg_key>', '<arg_value>'] },
  { format: 'cohere', all: ['<|START_ACTION|>'] },
  { format: 'command_r', all: ['Action:', '```json', 'tool_name'] },
  { format: 'apertus', all: ['<|tools_prefix|>'] },
  { format: 'phi4_mini_json', all: ['functools['] },
  { format: 'phi4_mini_json', all: ['<|tool|>', '<|/tool|>'] },
  { format: 'granite', all: ['<|tool_call|>'] },
  { format: 'lfm2', all: [/<\|tool_call_start\|>|<\|tool_list_start\|>|List of tools: \[/] },
  { format: 'nemotron', all: ['<TOOLCALL>'] },
  { format: 'tool_calls_list', all: [/<tool_calls>\s*\[/] },
  { format: 'minimax', all: ['<tool_calls>'] },
  { format: 'gigachat', all: [/<\|function_call\|>|<\|role_sep\|>/, /\btools\b/] },
  { format: 'hermes', all: ['<tool_call>'] },
  { format: 'pythonic', all: [/\[func_name1?\(/] },
  { format: 'llama3_json', all: [/<\|python_tag\|>|"name": ?function name/] },
  { format: 'json', all: [/\btools\b/] },
];

/**
 * The format of models trained with this template. `json` for a template with tools in no known format; `none` for a
 * template without tools.
 */
export function detectToolFormat(template: string): ToolFormat {
  const text = withoutComments(template);
  const holds = (part: string | RegExp): boolean =>
    typeof part === 'string' ? text.includes(part) : part.test(text);
  return RULES.find((rule) => rule.all.every(holds))?.format ?? 'none';
}
