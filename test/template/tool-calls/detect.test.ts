/** Real templates -> the detected format, whose parser reads what they render. */
import { describe, expect, it } from 'vitest';
import {
  detectToolFormat,
  type ToolDefinition,
  type ToolFormat,
} from '../../../src/template/tool-calls/index.ts';
import { dataFile, readGolden } from '../helpers.ts';
import { callsOf, messageOf } from './harness.ts';

type Row = {
  readonly template_id: string;
  readonly template: string;
  readonly input_id: string;
  readonly args: {
    readonly messages: readonly {
      role: string;
      content: unknown;
      tool_calls?: { function: { name: string; arguments: unknown } }[];
    }[];
    readonly tools: readonly ToolDefinition[] | null;
    readonly documents?: unknown;
  };
  readonly output?: string;
};

const EXPECTED: Readonly<Record<string, ToolFormat>> = {
  'llcpp/Apertus-8B-Instruct': 'apertus',
  'llcpp/Apriel-1.6-15b-Thinker-fixed': 'tool_calls_list',
  'llcpp/ByteDance-Seed-OSS': 'seed_oss',
  'llcpp/CohereForAI-c4ai-command-r-plus-tool_use': 'command_r',
  'llcpp/CohereForAI-c4ai-command-r7b-12-2024-tool_use': 'cohere',
  'llcpp/GigaChat3.1-10B-A1.8B': 'gigachat',
  'llcpp/Kimi-K2-Instruct': 'kimi_k2',
  'llcpp/LFM2-8B-A1B': 'lfm2',
  'llcpp/LFM2.5-8B-A1B': 'lfm2',
  'llcpp/LFM2.5-Instruct': 'lfm2',
  'llcpp/MiMo-VL': 'hermes',
  'llcpp/MiniMax-M1': 'minimax',
  'llcpp/MiniMax-M3': 'minimax_m3',
  'llcpp/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16': 'qwen3_coder',
  'llcpp/NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use': 'hermes',
  'llcpp/Qwen-QwQ-32B': 'hermes',
  'llcpp/Qwen-Qwen2.5-7B-Instruct': 'hermes',
  'llcpp/Qwen-Qwen3-0.6B': 'hermes',
  'llcpp/Qwen3.5-4B': 'qwen3_coder',
  'llcpp/Spark2.5': 'glm45',
  'llcpp/StepFun3.5-Flash': 'qwen3_coder',
  'llcpp/deepseek-ai-DeepSeek-R1-Distill-Llama-8B': 'deepseek_v3',
  'llcpp/deepseek-ai-DeepSeek-V3.1': 'deepseek_v31',
  'llcpp/deepseek-ai-DeepSeek-V3.2': 'deepseek_v32',
  'llcpp/deepseek-ai-DeepSeek-V4-Flash-0731': 'deepseek_v4',
  'llcpp/google-gemma-4-31B-it': 'gemma4',
  'llcpp/google-gemma-4-31B-it-interleaved': 'gemma4',
  'llcpp/ibm-granite-granite-3.3-2B-Instruct': 'granite',
  'llcpp/ibm-granite-granite-4.0': 'hermes',
  'llcpp/ibm-granite-granite-4.1': 'hermes',
  'llcpp/meetkai-functionary-medium-v3.1': 'functionary_v31',
  'llcpp/meta-llama-Llama-3.1-8B-Instruct': 'llama3_json',
  'llcpp/meta-llama-Llama-3.2-3B-Instruct': 'llama3_json',
  'llcpp/moonshotai-Kimi-K2': 'kimi_k2',
  'llcpp/openai-gpt-oss-120b': 'harmony',
  'llcpp/openbmb-MiniCPM5-1B': 'minicpm',
  'llcpp/poolside-Laguna-XS-2.1': 'glm45',
  'llcpp/unsloth-mistral-Devstral-Small-2507': 'mistral_args',
  'llcpp-tests/ibm-granite_granite-3.0-8b-instruct': 'granite',
  'llcpp-tests/ibm-granite_granite-4.0_tool_call': 'granite',
  'llcpp-tests/Mistral-Large-Instruct-2407_mistralai_v3_template_modified_to_have_sys': 'mistral',
  'llcpp-tests/yandex_YandexGPT-5-Lite-8B-instruct': 'yandex',
};

/** Templates whose rendered history differs from the model's own output, and why. */
const NOT_RENDERED: Readonly<Record<string, string>> = {
  'llcpp/MiniMax-M3': 'omits arguments that are null',
  'llcpp/LFM2-8B-A1B': 'drops calls',
  'llcpp/LFM2.5-Instruct': 'drops calls',
  'llcpp/deepseek-ai-DeepSeek-R1-Distill-Llama-8B': 'drops calls',
  'llcpp/ibm-granite-granite-3.3-2B-Instruct': 'drops calls',
  'llcpp-tests/ibm-granite_granite-3.0-8b-instruct': 'drops calls',
  'llcpp-tests/ibm-granite_granite-4.0_tool_call': 'drops calls',
  'llcpp-tests/yandex_YandexGPT-5-Lite-8B-instruct': 'drops calls',
};
/** Templates that render only the first call of a message. */
const FIRST_CALL_ONLY = ['llcpp/GigaChat3.1-10B-A1.8B', 'llcpp/openai-gpt-oss-120b'];

const file = dataFile('golden-dev.jsonl');
const rows = file === null ? [] : readGolden<Row>(file);

describe.skipIf(rows.length === 0)('golden templates', () => {
  const templates = new Map(rows.map((row) => [row.template_id, row.template]));

  it('are detected', () => {
    for (const [id, template] of templates)
      expect([id, detectToolFormat(template)]).toEqual([id, EXPECTED[id] ?? 'none']);
  });

  it('give the same calls back that they render', () => {
    let readCount = 0;
    for (const { template_id, template, args, output } of rows) {
      const format = detectToolFormat(template);
      const calls = args.messages.flatMap((message) => message.tool_calls ?? []);
      if (args.documents) continue; // rendered as results of calls that are not in the messages
      // string arguments are rendered as a string by templates that expect objects
      if (format === 'none' || NOT_RENDERED[template_id] || output === undefined || calls.length === 0)
        continue;
      if (calls.some((call) => typeof call.function.arguments === 'string')) continue;
      const user = String(args.messages.find((message) => message.role === 'user')!.content);
      if (user.length < 4) continue; // found in other places too
      const tail = output.slice(output.lastIndexOf(user) + user.length);
      const expected = calls.map((call) => [call.function.name, call.function.arguments]);
      const read = callsOf(messageOf(format, tail, args.tools ?? []));
      const shown = FIRST_CALL_ONLY.includes(template_id) ? expected.slice(0, read.length) : expected;
      expect([template_id, read]).toEqual([template_id, shown]);
      readCount++;
    }
    expect(readCount).toBeGreaterThan(60);
  });
});

describe('markers', () => {
  it.each<[ToolFormat, string]>([
    ['none', '{{ messages }}'],
    ['none', '{# <tool_call> #}{{ messages }}'],
    ['json', '{% for tool in tools %}{{ tool }}{% endfor %}'],
    ['phi4_mini_json', "{{ '<|tool|>' + message['tools'] + '<|/tool|>' }}"],
    ['phi4_mini_json', 'write functools[{"name": ...}]'],
    ['functionary_v32', '>>>{recipient} {{ tools }}'],
    ['functiongemma', '<start_function_call>call: {{ tools }}'],
    ['gemma_tool_code', '```tool_code {{ tools }}'],
    ['pythonic', 'the format [func_name1(params_name1=1)] {{ tools }}'],
    ['minimax_m2', '<minimax:tool_call><invoke name="x"> {{ tools }}'],
    ['nemotron', '<TOOLCALL>[{{ tools }}]</TOOLCALL>'],
    ['mistral', '[TOOL_CALLS][{{ tools }}]'],
  ])('of %s', (format, template) => {
    expect(detectToolFormat(template)).toBe(format);
  });
});
