/** Messages and tools of every kind through the templates that the engine's sources ship: each text is in the prompt once. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderMessages } from '../../src/answer/prompt.ts';
import { callPlan } from '../../src/answer/render-prompt.ts';
import { detectMessageFormat } from '../../src/template/chat-format/message-format.ts';
import { compileChatTemplate } from '../../src/template/index.ts';
import { engineSources } from '../engine-sources.ts';
import { byteTokenizer } from '../fakes/byte-tokenizer.ts';
import { valid } from '../protocol/request.ts';

const sources = engineSources();
const folder = sources && path.join(sources, 'models', 'templates');
const names = folder ? fs.readdirSync(folder).filter((name) => name.endsWith('.jinja')) : [];

/** Templates that need variables of their authors' servers. */
const NEEDS_VARIABLES: Readonly<Record<string, Record<string, unknown>>> = {
  'fireworks-ai-llama-3-firefunction-v2': { functions: 'FindsCity FindsWeather', datetime: 'today' },
};
/** A template that fails in Jinja2 with tools: it writes a generator as JSON. */
const FAILS_WITH_TOOLS = 'llama-cpp-deepseek-r1';
/** A template that reads reasoning has one of these names in its source. */
const READS_REASONING =
  /(\.|\[['"]|get\(['"])(reasoning|reasoning_content|thinking)\b|'type'\] == 'thinking'/;
/** It shows the reasoning of the last message only. */
const SHOWS_NO_REASONING = ['Apriel-1.6-15b-Thinker-fixed'];

const user = (content: unknown) => ({ role: 'user', content });
const system = (content: unknown) => ({ role: 'system', content });
const developer = (content: unknown) => ({ role: 'developer', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });
const call = (more: object = {}) => ({
  role: 'assistant',
  content: null,
  tool_calls: [
    { id: 'call00001', type: 'function', function: { name: 'weather', arguments: '{"city": "SaysCity"}' } },
  ],
  ...more,
});
const result = (content: unknown) => ({ role: 'tool', tool_call_id: 'call00001', content });
const parts = (...texts: readonly string[]) => texts.map((text) => ({ type: 'text', text }));
const PARAMETERS = {
  type: 'object',
  properties: { city: { type: 'string', description: 'FindsCity' } },
  required: ['city'],
};
const tool = (more: object) => [{ type: 'function', function: { name: 'weather', ...more } }];
const TOOLS = tool({ description: 'FindsWeather', parameters: PARAMETERS });

type Case = { readonly messages: readonly object[]; readonly tools?: readonly object[] };

const MESSAGES: Readonly<Record<string, Case>> = {
  system: { messages: [system('SaysFirst'), user('SaysUser')] },
  developer: { messages: [developer('SaysFirst'), user('SaysUser')] },
  'system in the middle': {
    messages: [
      system('SaysFirst'),
      user('SaysUser'),
      assistant('SaysAnswer'),
      system('SaysMore'),
      user('SaysLast'),
    ],
  },
  'system in the middle only': {
    messages: [user('SaysUser'), assistant('SaysAnswer'), system('SaysMore'), user('SaysLast')],
  },
  'system at the end': { messages: [user('SaysUser'), assistant('SaysAnswer'), system('SaysMore')] },
  'two systems': { messages: [system('SaysFirst'), system('SaysMore'), user('SaysUser')] },
  'system and developer': { messages: [system('SaysFirst'), developer('SaysMore'), user('SaysUser')] },
  'lists of texts': {
    messages: [system(parts('SaysFirst', 'SaysMore')), user(parts('SaysUser', 'SaysLast'))],
  },
};
const TOOL_MESSAGES: Readonly<Record<string, Case>> = {
  'system beside tools': { messages: [system('SaysFirst'), user('SaysUser')], tools: TOOLS },
  'a result': { messages: [user('SaysUser'), call({ content: '' }), result('SaysResult')], tools: TOOLS },
  'a result in parts': {
    messages: [user('SaysUser'), call(), result(parts('SaysResult', 'SaysMore'))],
    tools: TOOLS,
  },
  'two calls': {
    messages: [
      user('SaysUser'),
      call(),
      result('SaysResult'),
      call({
        tool_calls: [{ id: 'call00002', type: 'function', function: { name: 'weather', arguments: '{}' } }],
      }),
      { ...result('SaysMore'), tool_call_id: 'call00002' },
      assistant('SaysAnswer'),
      user('SaysLast'),
    ],
    tools: TOOLS,
  },
  'a call with null content': { messages: [user('SaysUser'), call(), result('SaysResult')], tools: TOOLS },
  'ids of another form': {
    messages: [
      user('SaysUser'),
      call({ tool_calls: [{ ...call().tool_calls[0], id: 'call_AbC-0123456789' }] }),
      { ...result('SaysResult'), tool_call_id: 'call_AbC-0123456789' },
    ],
    tools: TOOLS,
  },
  'no ids': {
    messages: [
      user('SaysUser'),
      call({ tool_calls: [{ ...call().tool_calls[0], id: null }] }),
      { ...result('SaysResult'), tool_call_id: null },
    ],
    tools: TOOLS,
  },
  'no description': { messages: [user('SaysUser')], tools: tool({ parameters: PARAMETERS }) },
  'description null': {
    messages: [user('SaysUser')],
    tools: tool({ description: null, parameters: PARAMETERS }),
  },
  'no parameters': { messages: [user('SaysUser')], tools: tool({ description: 'FindsWeather' }) },
  'parameters null': {
    messages: [user('SaysUser')],
    tools: tool({ description: 'FindsWeather', parameters: null }),
  },
  'no description and parameters': { messages: [user('SaysUser')], tools: tool({}) },
};
const REASONING: Case = {
  messages: [user('SaysUser'), call({ reasoning: 'SaysThought' }), result('SaysResult')],
  tools: TOOLS,
};

function contextOf(name: string) {
  const source = fs.readFileSync(path.join(folder!, name), 'utf8');
  const calls = callPlan(detectMessageFormat(source, byteTokenizer, undefined));
  return { template: compileChatTemplate(source), tokenizer: byteTokenizer, calls };
}

function problemsOf(name: string, { messages, tools }: Case, kwargs: Record<string, unknown> = {}): string {
  const context = contextOf(name);
  const id = name.replace('.jinja', '');
  let text: string;
  try {
    const fields = { messages, ...(tools ? { tools } : {}) };
    const request = valid({ ...fields, chat_template_kwargs: { ...NEEDS_VARIABLES[id], ...kwargs } });
    text = renderMessages(request, context);
  } catch (error) {
    return String(error);
  }
  const countOf = (mark: string) => text.split(mark).length - 1;
  const said = JSON.stringify(messages).match(/\bSays\w+/g) ?? [];
  const described = JSON.stringify(tools ?? []).match(/\bFinds\w+/g) ?? [];
  return [
    ...said.filter((mark) => countOf(mark) !== 1).map((mark) => `${mark} ${countOf(mark)} times`),
    ...described.filter((mark) => countOf(mark) === 0).map((mark) => `no ${mark}`),
    ...(/["']type["']: ?["'](text|thinking)["']/.test(text) ? ['parts'] : []),
    ...(/\bNone\b|\bUndefined\b/.test(text) ? ['None'] : []),
  ].join(', ');
}

describe.skipIf(folder === null)('messages through published templates', () => {
  it.each(names.map((name) => name.replace('.jinja', '')))('%s', (id) => {
    const cases = { ...MESSAGES, ...(id === FAILS_WITH_TOOLS ? {} : TOOL_MESSAGES) };
    const problems = Object.entries(cases).map(([what, one]) => [what, problemsOf(`${id}.jinja`, one)]);
    expect(problems.filter(([, problem]) => problem !== '')).toEqual([]);
  });

  const reading = names.filter((name) =>
    READS_REASONING.test(fs.readFileSync(path.join(folder!, name), 'utf8')),
  );
  it.each(reading.map((name) => name.replace('.jinja', '')))('reasoning in a tool loop: %s', (id) => {
    const problem = problemsOf(`${id}.jinja`, REASONING, { enable_thinking: true, thinking: true });
    if (SHOWS_NO_REASONING.includes(id)) expect(problem).toBe('SaysThought 0 times');
    else expect(problem).toBe('');
  });

  it.each([
    ['MiniMax-M3', 'none', 'Current thinking mode: disabled.'],
    ['MiniMax-M3', 'low', 'Current thinking mode: enabled.'],
    ['muse-glimmer', 'low', 'Reasoning strength: low.'],
    ['muse-glimmer', 'medium', 'Reasoning strength: medium.'],
  ])('%s is told the effort %s', (id, reasoning_effort, expected) => {
    const request = valid({ messages: [user('SaysUser')], reasoning_effort });
    expect(renderMessages(request, contextOf(`${id}.jinja`))).toContain(expected);
  });

  it('are many', () => {
    expect(names.length).toBeGreaterThan(60);
    expect(reading.length).toBeGreaterThan(25);
  });
});
