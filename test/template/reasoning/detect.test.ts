/** Detection of reasoning markers, on small templates and on real ones. */
import { describe, expect, it } from 'vitest';
import {
  detectReasoning,
  isReasoningOpen,
  REASONING_FORMATS,
} from '../../../src/template/reasoning/index.ts';
import { dataFile, readGolden } from '../helpers.ts';

/** Name of the expected format; a template that is not here marks no reasoning. */
const EXPECTED: Readonly<Record<string, string>> = {
  'llcpp/Apertus-8B-Instruct': 'apertus',
  'llcpp/Apriel-1.6-15b-Thinker-fixed': 'apriel',
  'llcpp/ByteDance-Seed-OSS': 'seed_oss',
  'llcpp/CohereForAI-c4ai-command-r7b-12-2024-tool_use': 'cohere',
  'llcpp/HuggingFaceTB-SmolLM3-3B': 'think',
  'llcpp/LFM2.5-8B-A1B': 'think',
  'llcpp/LFM2.5-Instruct': 'think',
  'llcpp/MiniMax-M3': 'mm:think',
  'llcpp/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16': 'think',
  'llcpp/Qwen-QwQ-32B': 'think',
  'llcpp/Qwen-Qwen3-0.6B': 'think',
  'llcpp/Qwen3.5-4B': 'think',
  'llcpp/Spark2.5': 'think',
  'llcpp/StepFun3.5-Flash': 'think',
  'llcpp/deepseek-ai-DeepSeek-R1-Distill-Llama-8B': 'think',
  'llcpp/deepseek-ai-DeepSeek-V3.1': 'think',
  'llcpp/deepseek-ai-DeepSeek-V3.2': 'think',
  'llcpp/deepseek-ai-DeepSeek-V4-Flash-0731': 'think',
  'llcpp/google-gemma-4-31B-it': 'gemma4',
  'llcpp/google-gemma-4-31B-it-interleaved': 'gemma4',
  'llcpp/ibm-granite-granite-3.3-2B-Instruct': 'think_response',
  'llcpp/llama-cpp-rwkv-world': 'think',
  'llcpp/openai-gpt-oss-120b': 'harmony',
  'llcpp/openbmb-MiniCPM5-1B': 'think',
  'llcpp/poolside-Laguna-XS-2.1': 'think',
};

type Row = {
  readonly template_id: string;
  readonly template: string;
  readonly input_id: string;
  readonly output?: string;
};

const file = dataFile('golden-dev.jsonl');
const rows = file === null ? [] : readGolden<Row>(file);

describe.skipIf(rows.length === 0)('golden templates', () => {
  it('are detected', () => {
    for (const { template_id, template } of new Map(rows.map((row) => [row.template_id, row])).values())
      expect([template_id, detectReasoning(template)?.name]).toEqual([template_id, EXPECTED[template_id]]);
  });

  it.each([
    ['llcpp/Apriel-1.6-15b-Thinker-fixed', true],
    ['llcpp/Qwen3.5-4B', true],
    ['llcpp/deepseek-ai-DeepSeek-R1-Distill-Llama-8B', true],
    ['llcpp/Qwen-Qwen3-0.6B', false],
    ['llcpp/google-gemma-4-31B-it', false], // opened and closed: no thinking
  ])('tell by the prompt of %s whether it opens the reasoning: %s', (id, isOpen) => {
    const row = rows.find((one) => one.template_id === id && one.input_id === 'sys_user_gen')!;
    expect(isReasoningOpen(detectReasoning(row.template)!, row.output!)).toBe(isOpen);
  });
});

describe('small templates', () => {
  it.each([
    ["{{ '<think>' }}", 'think'],
    ["{{ content.split('</think>')[-1] }}", 'think'],
    ["{{ '<reasoning>' + x + '</reasoning>' }}", 'reasoning'],
    ["{{ '<thinking>' + x + '</thinking>' }}", 'thinking'],
    ["{{ '[THINK]' + x + '[/THINK]' }}", 'mistral'],
    ["{{ '<|channel|>' + '<|message|>' }}", 'harmony'],
    ["{{ 'Here is my thought process: ' + x + 'Here is my response: ' }}", 'granite'],
    ['{# <think> #}{{ messages }}', undefined],
    ['{{ messages }}', undefined],
  ])('%s', (template, name) => {
    expect(detectReasoning(template)?.name).toBe(name);
  });

  it('whose markers are built from pieces, by the prompt that they give', () => {
    const template = "{{ '<' + 'think' + ':x>' }}";
    expect(detectReasoning(template, '<|assistant|><think:x>\n')).toEqual({
      kind: 'tags',
      name: 'think:x',
      begin: '<think:x>',
      end: '</think:x>',
    });
    expect(detectReasoning(template, '<|assistant|><think:x></think:x>')).toBeNull();
    expect(detectReasoning('{{ m }}', 'assistant\n<think>\n')).toBe(REASONING_FORMATS.think);
  });
});

it('sees an open marker only at the end of the prompt', () => {
  expect(isReasoningOpen(REASONING_FORMATS.think, 'assistant\n<think>\n')).toBe(true);
  expect(isReasoningOpen(REASONING_FORMATS.think, 'what is <think>?\nassistant\n')).toBe(false);
  expect(isReasoningOpen(REASONING_FORMATS.gemma4, 'model\n<|channel>thought\n')).toBe(true);
  expect(isReasoningOpen(REASONING_FORMATS.harmony, '<|start|>assistant<|channel|>analysis<|message|>')).toBe(
    true,
  );
});
