import { describe, expect, it } from 'vitest';
import { buildPrompt, renderMessages } from '../../src/answer/prompt.ts';
import type { Tokenizer } from '../../src/engine/tokenizer/index.ts';
import { compileChatTemplate } from '../../src/template/index.ts';
import { REASONING_FORMATS } from '../../src/template/reasoning/index.ts';
import { bytes, byteTokenizer, EOS, SPECIAL } from '../fakes/byte-tokenizer.ts';
import { valid, WEATHER } from '../protocol/request.ts';

/** Writes each message, and `>` where the answer begins. */
const CHAT = compileChatTemplate(
  '{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}',
);

const EFFORT = '{{ reasoning_effort }}';

/** Puts a special token before each text and the end token after it. */
const wrapping: Tokenizer = {
  ...byteTokenizer,
  encode: async (text, { addSpecial }) =>
    Int32Array.from(addSpecial ? [SPECIAL, ...bytes(text), EOS] : bytes(text)),
};

const build = (fields: Record<string, unknown>, contextSize = 20) =>
  buildPrompt(valid(fields), {
    template: CHAT,
    tokenizer: wrapping,
    contextSize,
    media: null,
    reasoning: null,
  });

describe('buildPrompt', () => {
  it.each<[string, Record<string, unknown>, number[], number]>([
    ['all that the context holds is left for the answer', {}, bytes('Hi>'), 17],
    ['max_completion_tokens', { max_completion_tokens: 4 }, bytes('Hi>'), 4],
    ['as many as are left', { max_completion_tokens: 17 }, bytes('Hi>'), 17],
    ['special tokens around the text', { add_special_tokens: true }, [SPECIAL, ...bytes('Hi>'), EOS], 15],
    ['the last tokens', { truncate_prompt_tokens: 2 }, bytes('i>'), 18],
    ['more tokens than there are', { truncate_prompt_tokens: 9 }, bytes('Hi>'), 17],
    [
      'what leaves room for the answer',
      { truncate_prompt_tokens: -1, max_completion_tokens: 18 },
      bytes('i>'),
      18,
    ],
    ['all that the context holds', { truncate_prompt_tokens: -1 }, bytes('Hi>'), 17],
    [
      'the special token before the text stays when it is cut',
      { add_special_tokens: true, truncate_prompt_tokens: 3 },
      [SPECIAL, ...bytes('>'), EOS],
      17,
    ],
    ['the first tokens', { truncate_prompt_tokens: 2, truncation_side: 'right' }, bytes('Hi'), 18],
    [
      'the special token behind the text stays when its end is cut',
      { add_special_tokens: true, truncate_prompt_tokens: 3, truncation_side: 'right' },
      [SPECIAL, ...bytes('H'), EOS],
      17,
    ],
    ['a message to continue', { continue_final_message: true }, bytes('Hi'), 18],
  ])('%s', async (_, fields, ids, maxTokens) => {
    const prompt = await build(fields);
    expect([...prompt.ids]).toEqual(ids);
    expect(prompt.maxTokens).toBe(maxTokens);
  });

  it.each<[string, Record<string, unknown>, number, string, string]>([
    ['a prompt as long as the context', {}, 3, 'CONTEXT_OVERFLOW', 'Shorten the messages by 1 tokens'],
    ['an answer that does not fit', { max_completion_tokens: 18 }, 20, 'CONTEXT_OVERFLOW', 'at most 17 fit'],
    [
      'an empty prompt',
      { messages: [], add_generation_prompt: false },
      20,
      'INVALID_REQUEST',
      'the prompt is empty',
    ],
    [
      'no token of the prompt',
      { truncate_prompt_tokens: 0 },
      20,
      'INVALID_REQUEST',
      'truncate_prompt_tokens: the prompt',
    ],
    [
      'a prompt cut to the whole context',
      { truncate_prompt_tokens: -1 },
      2,
      'CONTEXT_OVERFLOW',
      'max_completion_tokens: expected with truncate_prompt_tokens -1',
    ],
    [
      'more tokens than the context',
      { truncate_prompt_tokens: 21 },
      20,
      'INVALID_REQUEST',
      'at most the 20 tokens',
    ],
    ['min_tokens above what is left', { min_tokens: 18 }, 20, 'INVALID_REQUEST', 'at most the 17 tokens'],
  ])('refuses %s', async (_, fields, contextSize, code, message) => {
    const built = build(fields, contextSize);
    await expect(built).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it.each([
    ['a full context', 'a'.repeat(1e7), 2 ** 22, 'CONTEXT_OVERFLOW', 1e7],
    ['the budget, where the text may fit', 'a'.repeat(1e7), 2e7, 'TEMPLATE_FAILED', undefined],
  ])('says of ten million characters: %s', async (_, content, contextSize, code, tokens) => {
    const template = compileChatTemplate('{% for m in messages %}{{ m.content + "." }}{% endfor %}');
    const context = { template, tokenizer: byteTokenizer, contextSize, media: null, reasoning: null };
    const built = buildPrompt(valid({ messages: [{ role: 'user', content }] }), context);
    const detail = tokens
      ? [{ ctx: { prompt_tokens: tokens, max_model_len: contextSize } }]
      : [{ type: 'Budget' }];
    await expect(built).rejects.toMatchObject({ code, detail });
  });
});

describe('a prompt of ten times the context', () => {
  const template = compileChatTemplate('{{ messages[0].content }}');
  const content = 'a'.repeat(3e6);
  const build = (fields: object, contextSize = 3e5, signal?: AbortSignal) => {
    let characters = 0;
    const encode: Tokenizer['encode'] = async (text, options) => {
      characters += text.length;
      return await byteTokenizer.encode(text, options);
    };
    const context = { template, tokenizer: { ...byteTokenizer, encode }, media: null, reasoning: null };
    const request = valid({ messages: [{ role: 'user', content }], ...fields });
    const built = buildPrompt(request, { ...context, contextSize, signal });
    return { built, characters: () => characters };
  };

  it('is encoded until it is known not to fit', async () => {
    const { built, characters } = build({});
    const detail = [{ ctx: { prompt_tokens: 3e6, max_model_len: 3e5 } }];
    await expect(built).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW', param: 'messages', detail });
    expect(characters()).toBeLessThan(1.5e6);
  });

  it('is encoded no further when it is aborted', async () => {
    const controller = new AbortController();
    const { built, characters } = build({}, 2.5e6, controller.signal);
    controller.abort();
    await expect(built).rejects.toMatchObject({ code: 'ABORTED' });
    expect(characters()).toBeLessThan(2e6);
  });

  it('is encoded whole where it may be cut', async () => {
    const { built, characters } = build({ truncate_prompt_tokens: 5 });
    expect((await built).ids).toHaveLength(5);
    expect(characters()).toBe(3e6);
  });
});

describe('a prompt that may be shifted', () => {
  it.each([
    [{ n_keep: 1 }, 1],
    [{}, 2], // the leading system messages are encoded too: they stay
  ])('is encoded no more often than it must be: %o', async (fields, expected) => {
    let count = 0;
    const encode: Tokenizer['encode'] = (...args) => {
      count += 1;
      return byteTokenizer.encode(...args);
    };
    const tokenizer = { ...byteTokenizer, encode };
    const context = { template: CHAT, tokenizer, contextSize: 20, media: null, reasoning: null };
    await buildPrompt(valid({ context_shift: true, ...fields }), context);
    expect(count).toBe(expected);
  });
});

describe('renderMessages', () => {
  const render = (source: string, fields: Record<string, unknown>): string =>
    renderMessages(valid(fields), { template: compileChatTemplate(source), tokenizer: byteTokenizer });
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b' },
  ];

  it.each<[string, string, Record<string, unknown>, string]>([
    [
      'parts become text',
      '{{ messages[0].content }}',
      { messages: [{ role: 'user', content: parts }] },
      'a\nb',
    ],
    [
      'parts stay where the template loops over them',
      '{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}',
      { messages: [{ role: 'user', content: parts }] },
      '[a][b]',
    ],
    [
      'an empty system message is joined without a separator',
      "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}",
      {
        messages: [
          { role: 'system', content: '' },
          { role: 'user', content: 'a' },
        ],
      },
      'a',
    ],
    ['tools', '{{ tools[0].function.name }}', { tools: [WEATHER] }, 'weather'],
    ['no tools', '{{ tools is none }}', {}, 'True'],
    ['an empty list of tools', '{{ tools is none }}', { tools: [] }, 'True'],
    ['reasoning effort', '{{ reasoning_effort }}', { reasoning_effort: 'low' }, 'low'],
    ['none of it', '{{ reasoning_effort is defined }}', {}, 'False'],
    ['further variables', '{{ mood }}', { chat_template_kwargs: { mood: 'good' } }, 'good'],
    ['special tokens', '{{ eos_token }}', {}, '<eos>'],
    ['documents', '{{ documents[0].text }}', { documents: [{ text: 'd' }] }, 'd'],
    ['documents of any form', '{{ documents }}', { documents: ['a', 5, [true]] }, "['a', 5, [True]]"],
    [
      'fields of documents that it can do without',
      "{% for d in documents %}{{ d.head or 'none' }}{{ d.x | default('-') }}{{ d.y is defined }}{% endfor %}",
      { documents: [{ text: 'd' }, 'text'] },
      'none-Falsenone-False',
    ],
    [
      'minimal effort where it is known',
      `${EFFORT} {# 'minimal' #}`,
      { reasoning_effort: 'minimal' },
      'minimal ',
    ],
    ['minimal effort elsewhere', EFFORT, { reasoning_effort: 'minimal' }, 'low'],
    ['no effort where it is known', `${EFFORT} {# "none" #}`, { reasoning_effort: 'none' }, 'none '],
    [
      'no effort elsewhere',
      `{{ reasoning_effort is defined }} {{ enable_thinking }} {{ thinking }}`,
      { reasoning_effort: 'none' },
      'False False False',
    ],
    [
      'a switch of its own before that of the effort',
      '{{ enable_thinking }}',
      { reasoning_effort: 'none', chat_template_kwargs: { enable_thinking: true } },
      'True',
    ],
  ])('%s', (_, source, fields, expected) => {
    expect(render(source, fields)).toBe(expected);
  });

  it.each<[string, string, keyof typeof REASONING_FORMATS, string]>([
    ['of harmony is its least', EFFORT, 'harmony', 'low'],
    ['closes what the prompt has opened', 'x<think>\n', 'think', 'x<think>\n</think>\n\n'],
    ['closes it on a line of its own', 'x[THINK]', 'mistral', 'x[THINK]\n[/THINK]\n\n'],
    ['leaves what is closed', '<think>\n\n</think>', 'think', '<think>\n\n</think>'],
  ])('no effort %s', async (_, source, format, expected) => {
    const template = compileChatTemplate(source);
    const reasoning = REASONING_FORMATS[format];
    const context = { template, tokenizer: byteTokenizer, contextSize: 99, media: null, reasoning };
    expect((await buildPrompt(valid({ reasoning_effort: 'none' }), context)).text).toBe(expected);
  });

  it.each<[string, string, unknown[], string]>([
    ['a field', '{{ documents[1].text }}', [{ text: 'a' }, { title: 'b' }], 'documents.1.text'],
    ['an inner field', "{{ documents[0]['meta'].url }}", [{ meta: {} }], 'documents.0.meta.url'],
    ['a field of a text', '{{ documents[0].text }}', ['a'], 'documents.0.text'],
    ['a field in a filter', '{{ documents[0].text | upper }}', [{}], 'documents.0.text'],
    ['a field in a sum', "{{ 'x' ~ documents[0].text }}", [{}], 'documents.0.text'],
    ['a list', '{% for c in documents[0].chunks %}{% endfor %}', [{}], 'documents.0.chunks'],
    ['an item', '{{ documents[0][2] }}', [[1, 2]], 'documents.0.2'],
  ])('refuses documents without %s that the template needs', (_, source, documents, param) => {
    expect(() => render(source, { documents })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', param, message: expect.stringContaining(param) }),
    );
  });
});

describe('what a template shows', () => {
  const render = (source: string, fields: Record<string, unknown>): string =>
    renderMessages(valid({ add_generation_prompt: false, ...fields }), {
      template: compileChatTemplate(source),
      tokenizer: byteTokenizer,
    });
  const loop = (body: string) => `{% for m in messages %}${body}{% endfor %}`;
  const only = (...roles: string[]) =>
    loop(`{% if m.role in ${JSON.stringify(roles)} %}{{ m.role[0] }}:{{ m.content }};{% else %}{% endif %}`);
  const say = (role: string, content: unknown = role, more: object = {}) => ({ role, content, ...more });
  const call = (args: string, more: object = {}) =>
    say('assistant', null, {
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: args } }],
      ...more,
    });
  const CALLS = loop(
    '{{ m.role[0] }}:{{ m.content or "" }}{% for c in m.tool_calls or [] %}[ARGS]{% endfor %};',
  );

  it.each<[string, string, object[], string]>([
    [
      'a developer where the role is unknown',
      only('system', 'user'),
      [say('developer'), say('user')],
      's:developer;u:user;',
    ],
    [
      'a developer where it is known',
      only('system', 'developer', 'user'),
      [say('developer'), say('user')],
      'd:developer;u:user;',
    ],
    [
      'a system message in the middle, with the first',
      `{% if messages[0].role == 'system' %}{{ messages[0].content }};{% endif %}${only('user', 'assistant')}`,
      [say('system', 'a'), say('user', 'b'), say('assistant', 'c'), say('system', 'd'), say('user', 'e')],
      'a\n\nd;u:b;a:c;u:e;',
    ],
    [
      'a system message before the next text of the user',
      only('user', 'assistant'),
      [say('user', 'a'), say('assistant', 'b'), say('system', 'c'), say('user', 'd')],
      'u:a;a:b;u:c\n\nd;',
    ],
    [
      'a last system message behind the text of the user',
      only('user', 'assistant'),
      [say('user', 'a'), say('system', 'b')],
      'u:a\n\nb;',
    ],
    [
      'a result where the role is unknown',
      only('user', 'assistant'),
      [say('user', 'a'), call('{}', { content: 'b' }), say('tool', 'c'), say('user', 'd')],
      'u:a;a:b\n{"name": "f", "arguments": {}};u:c\n\nd;',
    ],
    [
      'arguments that are no JSON, as they are',
      CALLS.replace('ARGS', '{{ c.function.arguments }}'),
      [say('user', 'a'), call('{"a": "b')],
      'u:a;a:[{"a": "b];',
    ],
    [
      'arguments that are no JSON, where only an object is taken',
      CALLS.replace('ARGS', '{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}'),
      [say('user', 'a'), call('{"a": "b')],
      'u:a;a:[arguments={"a": "b];',
    ],
    [
      'ids of nine letters and digits',
      CALLS.replace(
        'ARGS',
        '{% if c.id|length != 9 %}{{ raise_exception("length 9") }}{% endif %}{{ c.id }}',
      ),
      [say('user', 'a'), call('{}')],
      'u:a;a:[74196fe72];',
    ],
    [
      'a full name of reasoning beside an empty one',
      loop('{{ m.reasoning_content or m.content }};'),
      [say('user', 'a'), say('assistant', 'b', { reasoning: '', reasoning_content: 'c' }), say('user', 'd')],
      'a;c;d;',
    ],
  ])('%s', (_, source, messages, expected) => {
    expect(render(source, { messages })).toBe(expected);
  });

  it('names a message that has no place in the prompt', () => {
    const messages = [say('user', 'a'), say('critic', 'b')];
    expect(() => render(only('user', 'assistant'), { messages })).toThrow(
      expect.objectContaining({ code: 'TEMPLATE_FAILED', param: 'messages.1' }),
    );
  });

  it('leaves templates alone that choose among messages', () => {
    const messages = [say('system', 'a'), say('user', 'b'), say('user', 'c')];
    expect(render('{{ messages[-1].content }}', { messages })).toBe('c');
  });

  it.each<[string, string, string, string]>([
    ['the nearest word', `${EFFORT} {{ reasoning_effort == "max" }}`, 'xhigh', 'max True'],
    ['the word itself', `${EFFORT} {{ reasoning_effort == "max" }}`, 'max', 'max True'],
    ['high where no more is known', EFFORT, 'max', 'high'],
    ['another name', '{{ reasoning_strength }}', 'low', 'low'],
    ['a mode', '{{ thinking_mode }}', 'low', 'enabled'],
    ['a mode that is off', '{{ thinking_mode }}', 'none', 'disabled'],
    [
      'a word that does not fail',
      `{% if reasoning_effort is defined and reasoning_effort not in ["low", "high"] %}{{ raise_exception("no") }}{% endif %}${loop('{{ m.content }}')}${EFFORT}`,
      'medium',
      'Hihigh',
    ],
  ])('gives effort as %s', (_, source, reasoning_effort, expected) => {
    expect(render(source, { reasoning_effort })).toBe(expected);
  });
});
