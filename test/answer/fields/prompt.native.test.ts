/** Fields that determine the prompt: variables, continued messages, earlier calls, echo. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { PARIS, PARIS_ANSWER } from '../asking.ts';
import { ask, chunksOf, type Fields, PLAIN } from './model.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

describe('the prompt', () => {
  it('variables of the request go over everything, also over its own fields', async () => {
    const chat_template =
      '{{ add_generation_prompt }} {{ tools[0].function.name }} {{ documents[0].text }} {{ messages[0].content }}';
    const answer = await ask(runtime, 'hi', {
      chat_template,
      chat_template_kwargs: {
        add_generation_prompt: false,
        tools: [{ type: 'function', function: { name: 'mine' } }],
        documents: [{ title: 't', text: 'body' }],
      },
      max_tokens: 1,
      return_token_ids: true,
    });
    expect(await runtime.detokenize(answer.prompt_token_ids!)).toBe('False mine body hi');
    const within = await ask(runtime, 'hi', {
      chat_template_kwargs: { chat_template: PLAIN },
      max_tokens: 1,
      return_token_ids: true,
    });
    expect(await runtime.detokenize(within.prompt_token_ids!)).toBe('hi');
  });

  it('continue_final_message cuts behind the last message, its white space kept; one that is not there is an error', async () => {
    const prompt = async (content: string, fields: Fields = {}) => {
      const messages = [{ role: 'assistant' as const, content }];
      const answer = await runtime.createCompletion({
        messages,
        continue_final_message: true,
        max_tokens: 1,
        return_token_ids: true,
        ...fields,
        stream: false,
      });
      return await runtime.detokenize(answer.prompt_token_ids!);
    };
    const marked = { chat_template: '{% for m in messages %}<{{ m.content }}>{% endfor %}' };
    expect(await prompt('one ', marked)).toBe('<one ');
    expect(
      await prompt('one ', { chat_template: '{% for m in messages %}<{{ m.content | trim }}>{% endfor %}' }),
    ).toBe('<one');
    await expect(prompt('one', { chat_template: 'nothing' })).rejects.toMatchObject({
      code: 'TEMPLATE_FAILED',
    });
  });

  it('an empty one is an error', async () => {
    await expect(ask(runtime, 'x', { chat_template: '{{ "" }}' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'messages',
    });
    await expect(runtime.createCompletion({ messages: [], chat_template: PLAIN })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });

  it('arguments of earlier calls that are no JSON are given as they are; empty ones are an empty object', async () => {
    const messages = (text: string) => [
      {
        role: 'assistant' as const,
        content: null,
        tool_calls: [{ id: 'a', type: 'function' as const, function: { name: 'f', arguments: text } }],
      },
    ];
    const chat_template =
      '{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}';
    for (const [text, expected] of [
      ['', '{}'],
      ['{a', '"{a"'],
    ] as const) {
      const { prompt_token_ids } = await runtime.createCompletion({
        messages: messages(text),
        chat_template,
        max_tokens: 1,
        return_token_ids: true,
        stream: false,
      });
      expect(await runtime.detokenize(prompt_token_ids!)).toBe(expected);
    }
  });

  it('echo: only where the roles are the same, list content joined by newlines, for every choice', async () => {
    expect((await ask(runtime, PARIS, { echo: true })).choices[0]!.message.content).toBe(PARIS_ANSWER);
    const messages = [
      {
        role: 'user' as const,
        content: [
          { type: 'text' as const, text: 'one' },
          { type: 'text' as const, text: 'two' },
        ],
      },
    ];
    const fields = {
      messages,
      add_generation_prompt: false,
      echo: true,
      max_tokens: 3,
      n: 2,
      temperature: 1,
      seed: 1,
      return_token_ids: true,
    };
    const { choices } = await runtime.createCompletion({ ...fields, stream: false });
    for (const { message, token_ids } of choices) {
      expect(message.role).toBe('user');
      expect(message.content).toMatch(/^one\ntwo/);
      expect(token_ids).toHaveLength(3);
    }
    const chunks = await chunksOf(runtime, { ...fields, stream_options: { continuous_usage_stats: true } });
    expect(
      chunks
        .slice(0, 4)
        .map(({ choices: [choice], usage }) => [
          choice!.index,
          choice!.delta.content,
          usage!.completion_tokens,
        ]),
    ).toEqual([
      [0, '', 0],
      [1, '', 0],
      [0, 'one\ntwo', 0],
      [1, 'one\ntwo', 0],
    ]);
  });
});

describe('what is shown of a prompt', () => {
  const messages = [
    { role: 'user' as const, content: 'Où est 😀?' },
    { role: 'assistant' as const, content: 'Ici, là.' },
    { role: 'user' as const, content: 'Merci' },
  ];
  const MARKED =
    '{% for m in messages %}<{{ m.role }}>{% if m.role == "assistant" %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}';

  it('return_prompt_text is the rendered template, whole and in the first chunk', async () => {
    const { prompt } = await runtime.renderPrompt({ messages });
    const asked = { messages, return_prompt_text: true, max_tokens: 2 };
    expect((await runtime.createCompletion({ ...asked, stream: false })).prompt_text).toBe(prompt);
    expect(await runtime.createCompletion({ messages, max_tokens: 2, stream: false })).not.toHaveProperty(
      'prompt_text',
    );
    const chunks = await chunksOf(runtime, { ...asked, n: 2 });
    expect(chunks.map((chunk) => chunk.prompt_text)).toEqual([
      prompt,
      ...Array.from(chunks.slice(1), () => undefined),
    ]);
  });

  it('return_token_offsets are the characters of each token, also inside of one', async () => {
    const rendered = await runtime.renderPrompt({ messages, return_token_offsets: true });
    const { prompt, prompt_token_ids: ids, token_offsets } = rendered;
    const characters = [...prompt];
    expect(token_offsets).toHaveLength(ids.length);
    let end = 0;
    let within = 0;
    for (const [i, [from, to]] of token_offsets!.entries()) {
      expect(from).toBe(end - (from < end ? 1 : 0));
      const spelled = characters.slice(from, to).join('');
      const own = await runtime.detokenize([ids[i]!]);
      if (own.includes('\uFFFD')) within += 1;
      else expect(spelled).toBe(own);
      end = to;
    }
    expect(end).toBe(characters.length);
    expect(within).toBeGreaterThan(0);
    const cut = { messages, truncate_prompt_tokens: 5, return_token_offsets: true };
    expect((await runtime.renderPrompt(cut)).token_offsets).toBeNull();
    expect(await runtime.renderPrompt({ messages })).not.toHaveProperty('token_offsets');
  });

  it('return_assistant_tokens_mask marks the tokens of earlier answers', async () => {
    const asked = { messages, chat_template: MARKED, return_assistant_tokens_mask: true };
    const { prompt, prompt_token_ids: ids, assistant_tokens_mask: mask } = await runtime.renderPrompt(asked);
    expect(prompt).toBe('<user>Où est 😀?<assistant>Ici, là.<user>Merci');
    const written = await runtime.detokenize(ids.filter((_, i) => mask![i] === 1));
    expect(written).toContain('Ici, là.');
    expect(written.length).toBeLessThan('>Ici, là.<'.length + 1); // a token may hold a part of the text beside it
    const unmarked = { ...asked, chat_template: PLAIN };
    expect((await runtime.renderPrompt(unmarked)).assistant_tokens_mask).toBeNull();
  });
});
