/** The contents of a completion, and the effect of request fields on it. */
import { describe, expect, it } from 'vitest';
import type { ChatCompletionChunk } from '../../src/protocol/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { COUNT, type Fields, openRuntime, PARIS, request, STORY } from './asking.ts';

const { runtime, ask, text, stream } = openRuntime();

describe('an answer', () => {
  it('has every field of the response object', async () => {
    const answer = await ask(PARIS, { request_id: 'abc', user: 'someone', speculation: false });
    expect(answer).toEqual({
      id: 'chatcmpl-abc',
      object: 'chat.completion',
      created: expect.closeTo(Date.now() / 1000, -1),
      model: 'onpolicy-tiny',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'The capital of France is Paris.',
            refusal: null,
            annotations: null,
            audio: null,
            function_call: null,
            tool_calls: [],
            reasoning: null,
            reasoning_content: null,
          },
          logprobs: null,
          finish_reason: 'stop',
          stop_reason: null,
          token_ids: null,
        },
      ],
      service_tier: null,
      system_fingerprint: 'onpolicy-gguf-onpolicy-tiny',
      seed: expect.any(Number),
      usage: {
        prompt_tokens: 17,
        completion_tokens: 10,
        total_tokens: 27,
        prompt_tokens_details: { cached_tokens: expect.any(Number) },
        completion_tokens_details: { accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
      },
      prompt_logprobs: null,
      prompt_token_ids: null,
      kv_transfer_params: null,
    });
  });

  it('understands system, developer, assistant and tool messages', async () => {
    const { choices } = await runtime().createCompletion({
      messages: [
        { role: 'user', content: 'Hello, my name is Anna.' },
        { role: 'assistant', content: 'Hello Anna!' },
        { role: 'user', content: 'What is my name?' },
      ],
      temperature: 0,
    });
    expect(choices[0]!.message.content).toContain('Anna');
    for (const role of ['system', 'developer'] as const)
      expect(
        (
          await runtime().createCompletion({
            messages: [
              { role, content: 'Be kind.' },
              { role: 'user', content: PARIS },
            ],
            temperature: 0,
            max_completion_tokens: 4,
          })
        ).usage.prompt_tokens,
      ).toBeGreaterThan(17);
  });

  it('calls tools in the format of the template', async () => {
    const tools = [
      {
        type: 'function' as const,
        function: {
          name: 'get_weather',
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
        },
      },
    ];
    const whole = await ask('What is the weather in Paris?', { tools });
    const call = {
      id: expect.stringMatching(/^chatcmpl-tool-/),
      type: 'function',
      function: { name: 'get_weather', arguments: '{"city": "Paris"}' },
    };
    expect(whole.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: [call] },
    });
    const deltas = (await stream('What is the weather in Paris?', { tools })).flatMap(
      (chunk) => chunk.choices[0]?.delta.tool_calls ?? [],
    );
    expect(deltas[0]).toMatchObject({ index: 0, type: 'function', function: { name: 'get_weather' } });
    expect(deltas.map((delta) => delta.function?.arguments ?? '').join('')).toBe('{"city": "Paris"}');
    expect(
      (await ask('What is the weather in Paris?', { tools, tool_choice: 'none' })).choices[0],
    ).toMatchObject({
      finish_reason: 'stop',
      message: { content: expect.stringContaining('<tool_call>'), tool_calls: [] },
    });
    // half a call stays as far as it came
    const half = await ask('What is the weather in Paris?', { tools, max_completion_tokens: 12 });
    expect(half.choices[0]).toMatchObject({
      finish_reason: 'length',
      message: { content: null, tool_calls: [{ function: { name: 'get_weather' } }] },
    });
  });
});

describe('sampling fields', () => {
  it('temperature 0 is greedy, whatever the seed', async () => {
    expect(await text(STORY, { seed: 1 })).toBe(await text(STORY, { seed: 2 }));
  });

  it('seed: the same tokens again, others with another; choice i draws with seed + i', async () => {
    const many = await ask(STORY, { temperature: 1.2, seed: 7, n: 4, max_completion_tokens: 20 });
    const texts = many.choices.map((choice) => choice.message.content);
    expect(new Set(texts).size).toBeGreaterThan(1);
    for (const [i, expected] of texts.entries())
      expect(await text(STORY, { temperature: 1.2, seed: 7 + i, max_completion_tokens: 20 })).toBe(expected);
    const drawn = await ask(STORY, { temperature: 1.2, max_completion_tokens: 20 });
    expect(await text(STORY, { temperature: 1.2, seed: drawn.seed!, max_completion_tokens: 20 })).toBe(
      drawn.choices[0]!.message.content,
    );
  });

  it.each<[string, Fields]>([
    ['top_k 1', { top_k: 1 }],
    ['a tiny top_p', { top_p: 1e-6 }],
    ['min_p 1', { min_p: 1 }],
  ])('%s leaves the best token only', async (_, fields) => {
    expect(await text(STORY, { ...fields, temperature: 1.5, seed: 3 })).toBe(await text(STORY));
  });

  it.each<[string, Fields]>([
    ['frequency_penalty', { frequency_penalty: 2 }],
    ['presence_penalty', { presence_penalty: 2 }],
    ['repetition_penalty', { repetition_penalty: 5 }],
  ])('%s changes a repetitive answer', async (_, fields) => {
    expect(await text(STORY, { ...fields, max_completion_tokens: 40 })).not.toBe(
      await text(STORY, { max_completion_tokens: 40 }),
    );
  });

  it('logit_bias, allowed_token_ids and bad_words decide which tokens come', async () => {
    const [paris] = await runtime().tokenize(' Paris');
    const [rome] = await runtime().tokenize(' Rome');
    expect(await text(PARIS, { logit_bias: { [paris!]: -100 } })).not.toContain('Paris');
    expect(await text(PARIS, { bad_words: ['Paris'] })).not.toContain('Paris');
    const allowed = await ask(PARIS, {
      allowed_token_ids: [rome!],
      max_completion_tokens: 3,
      return_token_ids: true,
    });
    expect(allowed.choices[0]).toMatchObject({ token_ids: [rome, rome, rome], finish_reason: 'length' });
  });

  it('an all-masked step fails its own request only', async () => {
    const [rome] = await runtime().tokenize(' Rome');
    const [masked, fine] = await Promise.allSettled([
      ask(PARIS, { allowed_token_ids: [rome!], bad_words: ['Rome'] }),
      ask(PARIS),
    ]);
    expect(masked).toMatchObject({ status: 'rejected', reason: { code: 'NO_ALLOWED_TOKEN' } });
    expect(fine.status).toBe('fulfilled');
  });
});

describe('stopping fields', () => {
  it('max_completion_tokens, max_tokens, min_tokens, ignore_eos', async () => {
    expect((await ask(COUNT, { max_completion_tokens: 3 })).usage.completion_tokens).toBe(3);
    expect((await ask(COUNT, { max_tokens: 4 })).choices[0]!.finish_reason).toBe('length');
    expect((await ask(PARIS, { min_tokens: 30, max_tokens: 30 })).usage.completion_tokens).toBe(30);
    const ignoring = await ask(PARIS, { ignore_eos: true, max_tokens: 30 });
    expect(ignoring.usage.completion_tokens).toBe(30);
    expect(ignoring.choices[0]!.finish_reason).toBe('length');
  });

  it('stop strings across token borders, and with include_stop_str_in_output', async () => {
    const choice = async (fields: Fields) => (await ask(COUNT, fields)).choices[0];
    expect(await choice({})).toMatchObject({ message: { content: '1, 2, 3, 4, 5, 6, 7, 8, 9' } });
    expect(await choice({ stop: ['4, 5'] })).toMatchObject({
      message: { content: '1, 2, 3, ' },
      finish_reason: 'stop',
      stop_reason: '4, 5',
    });
    expect(await choice({ stop: '4, 5', include_stop_str_in_output: true })).toMatchObject({
      message: { content: '1, 2, 3, 4, 5' },
    });
    const [comma] = await runtime().tokenize(',');
    expect(await choice({ stop_token_ids: [comma!] })).toMatchObject({
      message: { content: '1' },
      stop_reason: comma,
    });
  });

  it('skip_special_tokens false shows the end of turn when it is included', async () => {
    expect(await text(PARIS, { skip_special_tokens: false, include_stop_str_in_output: true })).toMatch(
      /<\|im_end\|>$/,
    );
  });

  it('says how many tokens fit when the context is too small', async () => {
    await expect(ask(PARIS, { max_completion_tokens: 2000 })).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      param: 'max_completion_tokens',
      message: expect.stringContaining('at most 1007 fit'),
    });
    await expect(ask('word '.repeat(3000))).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      param: 'messages',
    });
    expect(
      (await ask('word '.repeat(3000), { truncate_prompt_tokens: -1, max_completion_tokens: 5 })).usage
        .prompt_tokens,
    ).toBe(1019);
    expect(
      (await ask('word '.repeat(300), { truncate_prompt_tokens: 10, max_completion_tokens: 5 })).usage
        .prompt_tokens,
    ).toBe(10);
  });
});

describe('prompt fields', () => {
  it('echo, continue_final_message and add_generation_prompt', async () => {
    const messages = [
      { role: 'user' as const, content: PARIS },
      { role: 'assistant' as const, content: 'The capital of' },
    ];
    const open = { messages, temperature: 0, continue_final_message: true, add_generation_prompt: false };
    expect((await runtime().createCompletion(open)).choices[0]!.message.content).toBe(' France is Paris.');
    expect((await runtime().createCompletion({ ...open, echo: true })).choices[0]!.message.content).toBe(
      'The capital of France is Paris.',
    );
    const chunks: ChatCompletionChunk[] = [];
    for await (const chunk of await runtime().createCompletion({ ...open, echo: true, stream: true }))
      chunks.push(chunk);
    expect(chunks[1]!.choices[0]!.delta).toEqual({ content: 'The capital of', reasoning_content: null });
    await expect(runtime().createCompletion({ ...open, add_generation_prompt: true })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });

  it('chat_template and chat_template_kwargs; a runtime may refuse the first', async () => {
    const chat_template = '{{ word }}{% for m in messages %}{{ m.content }}{% endfor %}';
    const answer = await ask('abc', {
      chat_template,
      chat_template_kwargs: { word: 'xyz' },
      return_token_ids: true,
      max_completion_tokens: 1,
    });
    expect(await runtime().detokenize(answer.prompt_token_ids!)).toBe('xyzabc');
    await expect(ask('x', { chat_template: "{{ raise_exception('no such role') }}" })).rejects.toMatchObject({
      code: 'TEMPLATE_FAILED',
      message: expect.stringContaining('no such role'),
    });
    await using strict = await createRuntime({ threads: 1, allowRequestTemplate: false });
    await expect(strict.createCompletion(request('x', { chat_template }))).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });
});

describe('reporting fields', () => {
  it('logprobs: the chosen token, its bytes, and the best alternatives in order', async () => {
    const { choices } = await ask(PARIS, { logprobs: true, top_logprobs: 3, return_token_ids: true });
    const content = choices[0]!.logprobs!.content;
    expect(content).toHaveLength(choices[0]!.token_ids!.length);
    expect(Buffer.from(content.slice(0, -1).flatMap(({ bytes }) => bytes)).toString()).toBe(
      'The capital of France is Paris.',
    );
    for (const entry of content) {
      expect(entry.top_logprobs).toHaveLength(3);
      expect(entry.top_logprobs[0]).toEqual({
        token: entry.token,
        logprob: entry.logprob,
        bytes: entry.bytes,
      }); // greedy
      const values = entry.top_logprobs.map(({ logprob }) => logprob);
      expect(values).toEqual(values.slice().sort((a, b) => b - a));
    }
    expect((await ask(PARIS, { logprobs: true })).choices[0]!.logprobs!.content[0]!.top_logprobs).toEqual([]);
    const asIds = await ask(PARIS, {
      logprobs: true,
      top_logprobs: 1,
      return_tokens_as_token_ids: true,
      return_token_ids: true,
    });
    expect(asIds.choices[0]!.logprobs!.content.map(({ token }) => token)).toEqual(
      asIds.choices[0]!.token_ids!.map((id) => `token_id:${id}`),
    );
  });

  it('return_token_ids gives prompt and answer', async () => {
    const answer = await ask(PARIS, { return_token_ids: true });
    expect(answer.prompt_token_ids).toHaveLength(17);
    expect(await runtime().detokenize(answer.choices[0]!.token_ids!)).toBe(
      'The capital of France is Paris.<|im_end|>',
    );
    expect(await runtime().detokenize(answer.choices[0]!.token_ids!, { skipSpecialTokens: true })).toBe(
      'The capital of France is Paris.',
    );
  });

  it('cached_tokens counts what was saved, not across salts', async () => {
    const long = `Remember this: ${'blue '.repeat(60)}`;
    const cached = async (fields: Fields = {}) =>
      (await ask(long, { max_tokens: 2, ...fields })).usage.prompt_tokens_details!.cached_tokens;
    expect(await cached({ cache_salt: 'one' })).toBe(0);
    expect(await cached({ cache_salt: 'one' })).toBeGreaterThan(60);
    expect(await cached({ cache_salt: 'two' })).toBe(0);
  });
});
