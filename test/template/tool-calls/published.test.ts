/** The templates that the engine's sources ship: each renders a tool loop, and the answer in it is read back as it was. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { compileChatTemplate } from '../../../src/template/index.ts';
import {
  createReasoningParser,
  detectReasoning,
  isReasoningOpen,
} from '../../../src/template/reasoning/index.ts';
import { detectToolFormat } from '../../../src/template/tool-calls/index.ts';
import { engineSources } from '../../engine-sources.ts';
import { callsOf, messageOf, TOOLS } from './harness.ts';

const sources = engineSources();
const folder = sources && path.join(sources, 'models', 'templates');
const names = folder ? fs.readdirSync(folder).filter((name) => name.endsWith('.jinja')) : [];

/** Templates that show no calls of earlier answers, or none at all. */
const SHOWS_NONE = [
  'HuggingFaceTB-SmolLM3-3B',
  'LFM2-8B-A1B',
  'LFM2.5-Instruct',
  'deepseek-ai-DeepSeek-R1-Distill-Llama-8B',
  'google-gemma-2-2b-it',
  'ibm-granite-granite-3.3-2B-Instruct',
  'llama-cpp-rwkv-world',
  'microsoft-Phi-3.5-mini-instruct',
];
/** Templates that fail in transformers, too, and why. */
const FAILS: Readonly<Record<string, string>> = {
  'CohereForAI-c4ai-command-r-plus-tool_use': "'dict object' has no attribute 'additionalProperties'",
  'llama-cpp-deepseek-r1': 'Object of type generator is not JSON serializable',
  'fireworks-ai-llama-3-firefunction-v2': "'functions' is undefined",
};

const ARGUMENTS = {
  city: 'São "Paulo" {x} \\ back',
  days: 3,
  exact: true,
  tags: ['a', "b's"],
  filter: { deep: { x: '}' } },
};
const tools = TOOLS.map(({ function: { name, parameters } }) => ({
  type: 'function',
  function: {
    name,
    description: 'd',
    parameters: { additionalProperties: true, required: [], ...(parameters as object) },
  },
}));
const question = { role: 'user', content: 'The weather?' };
const call = (content: string) => ({
  role: 'assistant',
  content,
  tool_calls: [
    {
      id: 'call00000',
      type: 'function',
      function: { name: 'get_weather', arguments: JSON.stringify(ARGUMENTS) },
    },
  ],
});
const result = { role: 'tool', tool_call_id: 'call00000', name: 'get_weather', content: '21 degrees' };

/** The text behind the question up to the result, as a model would have written it, and whether it begins in its reasoning. */
function answerIn(source: string): { text: string; promptTail: string } {
  const template = compileChatTemplate(source);
  const render = (messages: readonly unknown[], addGenerationPrompt: boolean): string =>
    template.render(
      { messages, tools, addGenerationPrompt, bosToken: '<s>', eosToken: '</s>' },
      { parseToolArguments: true, growsLists: true },
    );
  const prompt = render([question], true);
  const whole = render([question, call(''), result], true);
  const start = commonLength(prompt, whole);
  const end = whole.indexOf(result.content, start);
  return {
    text: whole.slice(start, end < 0 ? undefined : end),
    promptTail: prompt.slice(0, start).slice(-200),
  };
}

/** The length of what two texts share, up to the last tag that they share whole. */
function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  if (length === a.length) return length;
  return (
    Math.max(
      a.lastIndexOf('>', length - 1),
      a.lastIndexOf('\n', length - 1),
      a.lastIndexOf(']', length - 1),
    ) + 1
  );
}

describe.skipIf(folder === null)('published templates', () => {
  it.each(names.map((name) => name.replace('.jinja', '')))('%s', (name) => {
    const source = fs.readFileSync(path.join(folder!, `${name}.jinja`), 'utf8');
    if (FAILS[name]) return expect(() => answerIn(source)).toThrow(FAILS[name]);
    if (SHOWS_NONE.includes(name)) {
      expect(() => compileChatTemplate(source)).not.toThrow();
      return;
    }
    const { text, promptTail } = answerIn(source);
    const reasoning = detectReasoning(source, promptTail);
    const startsInside = reasoning !== null && isReasoningOpen(reasoning, promptTail);
    const parser = reasoning && createReasoningParser(reasoning, { startsInside });
    const events = parser ? [...parser.push(text), ...parser.finish()] : [{ kind: 'content', text }];
    const content = events.map((event) => (event.kind === 'content' ? event.text : '')).join('');
    expect(callsOf(messageOf(detectToolFormat(source), content, tools))).toEqual([
      ['get_weather', ARGUMENTS],
    ]);
  });

  it('are many', () => expect(names.length).toBeGreaterThan(60));
});
