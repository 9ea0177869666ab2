import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../src/runtime.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

type Fields = Partial<ChatCompletionRequest>;

function request(question: string, fields: Fields = {}): ChatCompletionRequest {
  return { messages: [{ role: 'user', content: question }], temperature: 0, ...fields };
}

async function ask(question: string, fields: Fields = {}): Promise<ChatCompletion> {
  return await runtime.createCompletion({ ...request(question, fields), stream: false });
}

async function text(question: string, fields: Fields = {}): Promise<string | null> {
  return (await ask(question, fields)).choices[0]!.message.content;
}

async function stream(question: string, fields: Fields = {}): Promise<ChatCompletionChunk[]> {
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of await runtime.createCompletion({ ...request(question, fields), stream: true }))
    chunks.push(chunk);
  return chunks;
}

/** Waits until nothing runs: an aborted sequence is freed when the running step ends. */
async function settled(): Promise<void> {
  for (let i = 0; i < 1000 && runtime.stats().running > 0; i++)
    await new Promise((resolve) => setTimeout(resolve, 5));
  expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
}

const STORY = 'Tell me a story.';
const PARIS = 'What is the capital of France?';
const COUNT = 'Count from 1 to 9.';

describe('an answer', () => {
  it('has every field of the response object', async () => {
    const answer = await ask(PARIS, { request_id: 'abc', user: 'someone' });
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
      },
      prompt_logprobs: null,
      prompt_token_ids: null,
      kv_transfer_params: null,
    });
  });

  it('understands system, developer, assistant and tool messages', async () => {
    const { choices } = await runtime.createCompletion({
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
          await runtime.createCompletion({
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
    // half a call stays text
    const half = await ask('What is the weather in Paris?', { tools, max_completion_tokens: 12 });
    expect(half.choices[0]).toMatchObject({
      finish_reason: 'length',
      message: { content: expect.stringContaining('<tool_call>'), tool_calls: [] },
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
    const [paris] = await runtime.tokenize(' Paris');
    const [rome] = await runtime.tokenize(' Rome');
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
    const [rome] = await runtime.tokenize(' Rome');
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
    const [comma] = await runtime.tokenize(',');
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
    expect((await runtime.createCompletion(open)).choices[0]!.message.content).toBe(' France is Paris.');
    expect((await runtime.createCompletion({ ...open, echo: true })).choices[0]!.message.content).toBe(
      'The capital of France is Paris.',
    );
    const chunks: ChatCompletionChunk[] = [];
    for await (const chunk of await runtime.createCompletion({ ...open, echo: true, stream: true }))
      chunks.push(chunk);
    expect(chunks[1]!.choices[0]!.delta).toEqual({ content: 'The capital of', reasoning_content: null });
    await expect(runtime.createCompletion({ ...open, add_generation_prompt: true })).rejects.toMatchObject({
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
    expect(await runtime.detokenize(answer.prompt_token_ids!)).toBe('xyzabc');
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
    expect(await runtime.detokenize(answer.choices[0]!.token_ids!)).toBe(
      'The capital of France is Paris.<|im_end|>',
    );
    expect(await runtime.detokenize(answer.choices[0]!.token_ids!, { skipSpecialTokens: true })).toBe(
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

describe('a stream', () => {
  it('begins with a role chunk, ends with the finish and the usage, and joins to the whole answer', async () => {
    const chunks = await stream(PARIS, {
      stream_options: { include_usage: true },
      return_token_ids: true,
      logprobs: true,
      top_logprobs: 1,
    });
    const whole = await ask(PARIS, { return_token_ids: true, logprobs: true, top_logprobs: 1 });
    expect(chunks[0]).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', content: '' } }],
      prompt_token_ids: whole.prompt_token_ids,
    });
    const body = chunks.slice(1, -1);
    expect(body.map((chunk) => chunk.choices[0]!.delta.content).join('')).toBe(
      whole.choices[0]!.message.content,
    );
    expect(body.flatMap((chunk) => chunk.choices[0]!.token_ids)).toEqual(whole.choices[0]!.token_ids);
    expect(body.flatMap((chunk) => chunk.choices[0]!.logprobs!.content)).toEqual(
      whole.choices[0]!.logprobs!.content,
    );
    expect(body.map((chunk) => chunk.choices[0]!.finish_reason)).toEqual([
      ...body.slice(1).map(() => null),
      'stop',
    ]);
    expect(body.at(-1)!.choices[0]).toHaveProperty('stop_reason', null);
    expect(body[0]!.choices[0]).not.toHaveProperty('stop_reason');
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 17, completion_tokens: 10, total_tokens: 27 },
    });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    for (const chunk of chunks.slice(0, -1)) expect(chunk).not.toHaveProperty('usage');
  });

  it('reports usage in every chunk when asked', async () => {
    const chunks = await stream(PARIS, {
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
    expect(chunks[0]!.usage).toEqual({ prompt_tokens: 17, completion_tokens: 0, total_tokens: 17 });
    const counts = chunks.map((chunk) => chunk.usage!.completion_tokens);
    expect(counts).toEqual(counts.slice().sort((a, b) => a - b));
    expect(counts.at(-1)).toBe(10);
  });

  it('carries each of n choices to its own end', async () => {
    const chunks = await stream(STORY, { n: 3, temperature: 1, seed: 5 });
    const whole = await ask(STORY, { n: 3, temperature: 1, seed: 5 });
    for (const choice of whole.choices) {
      const mine = chunks.flatMap((chunk) => chunk.choices.filter(({ index }) => index === choice.index));
      expect(mine.map(({ delta }) => delta.content).join('')).toBe(choice.message.content);
      expect(mine.filter(({ finish_reason }) => finish_reason !== null)).toHaveLength(1);
    }
  });

  it('aborts when the reader leaves, by signal and by abort()', async () => {
    const long = request(STORY, { ignore_eos: true });
    for await (const chunk of await runtime.createCompletion({ ...long, stream: true }))
      if (chunk.choices[0]?.delta.content) break;
    await settled();
    const controller = new AbortController();
    const reading = (async () => {
      for await (const chunk of await runtime.createCompletion(
        { ...long, stream: true },
        { signal: controller.signal },
      ))
        if (chunk.choices[0]?.delta.content) controller.abort(new Error('enough'));
    })();
    await expect(reading).rejects.toMatchObject({
      code: 'ABORTED',
      cause: expect.objectContaining({ message: 'enough' }),
    });
    await settled();
    const stopped = await runtime.createCompletion({ ...long, stream: true });
    stopped.abort();
    await expect(
      (async () => {
        for await (const _ of stopped);
      })(),
    ).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(runtime.createCompletion(long, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'ABORTED',
    });
    await settled();
  });
});

describe('many requests', () => {
  it('answers as many as come, each as if alone', async () => {
    const alone = await Promise.all(
      [PARIS, COUNT, STORY].map((question) => text(question, { max_tokens: 30 })),
    );
    const answers = await Promise.all(
      Array.from({ length: 150 }, (_, i) => text([PARIS, COUNT, STORY][i % 3]!, { max_tokens: 30 })),
    );
    for (const [i, answer] of answers.entries()) expect(answer).toBe(alone[i % 3]);
  });

  it('n = 256', async () => {
    const { choices, usage } = await ask(PARIS, { n: 256, temperature: 1, seed: 1, max_tokens: 4 });
    expect(choices.map(({ index }) => index)).toEqual(Array.from({ length: 256 }, (_, i) => i));
    expect(usage.completion_tokens).toBe(1024);
  });

  it('frees everything after aborts at random moments', async () => {
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const controller = new AbortController();
        setTimeout(() => controller.abort(), (i * 37) % 150);
        await runtime
          .createCompletion(request(STORY, { ignore_eos: true, n: 1 + (i % 3), temperature: 1 }), {
            signal: controller.signal,
          })
          .catch((error) => expect(error.code).toBe('ABORTED'));
      }),
    );
    await settled();
  });
});

describe('a runtime', () => {
  it('names wrong options', async () => {
    for (const [options, message] of [
      [{ threads: 0 }, /threads: expected an integer from 1/],
      [{ gpu: 'tpu' }, /gpu: expected one of/],
      [{ modle: 'x' }, /options.modle: expected one of .*model/],
      [{ model: { path: 'x', fusedAttention: 'no' } }, /fusedAttention: expected a boolean/],
      [{ model: { contextSize: 5 } }, /model: expected an object with a path/],
      [{ models: { a: { path: 'x', color: 1 } } }, /color/],
    ] as const)
      await expect(createRuntime(options as never)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(message),
      });
  });

  it('names what is wrong with a request before anything runs, and fields that it does not serve', async () => {
    await expect(runtime.createCompletion({ messages: [], temprature: 1 } as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('temperature'),
    });
    await expect(ask('x', { model: 'nothing-here' })).rejects.toMatchObject({
      code: 'MODEL_NOT_FOUND',
      status: 404,
      param: 'model',
    });
    await expect(ask('x', { logit_bias: { 5000: 1 } })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('serves several models by alias and path', async () => {
    const file = fileURLToPath(new URL('../models/onpolicy-tiny.gguf', import.meta.url));
    await using several = await createRuntime({
      threads: 1,
      models: { tiny: file, small: { path: file, contextSize: 64 } },
    });
    const answers = await Promise.all(
      ['tiny', 'small', file].map((model) =>
        several.createCompletion({ ...request(PARIS, { model }), stream: false }),
      ),
    );
    expect(answers.map(({ model }) => model)).toEqual(['tiny', 'small', file]);
    for (const { choices } of answers) expect(choices[0]!.message.content).toContain('Paris');
    await expect(
      several.createCompletion(request('x '.repeat(80), { model: 'small' })),
    ).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW' });
  });

  it('computes with and without the fused attention kernel what is the same but for rounding', async () => {
    const path = fileURLToPath(new URL('../models/onpolicy-tiny.gguf', import.meta.url));
    await using both = await createRuntime({
      threads: 1,
      contextSize: 256,
      maxSequences: 4,
      models: { fused: { path }, plain: { path, fusedAttention: false } },
    });
    const [fused, plain] = await Promise.all(
      ['fused', 'plain'].map(async (model) => {
        const { choices } = await both.createCompletion({
          ...request(STORY, { model, temperature: 0, logprobs: true, return_token_ids: true }),
          stream: false,
        });
        const [choice] = choices;
        return { ids: choice!.token_ids, logprobs: choice!.logprobs!.content!.map(({ logprob }) => logprob) };
      }),
    );
    expect(plain!.ids).toEqual(fused!.ids);
    const differences = plain!.logprobs.map((logprob, i) => Math.abs(logprob - fused!.logprobs[i]!));
    expect(Math.max(...differences)).toBeGreaterThan(0); // two kernels, not one
    expect(Math.max(...differences)).toBeLessThan(0.01);
  });

  it('fails with CLOSED what runs when it closes, and what comes after; closing twice is fine', async () => {
    const closing = await createRuntime({ threads: 1 });
    await closing.createCompletion(request(PARIS));
    const running = closing.createCompletion(request(STORY, { ignore_eos: true }));
    await new Promise((resolve) => setTimeout(resolve, 10));
    const closed = closing.close();
    await expect(running).rejects.toMatchObject({ code: 'CLOSED' });
    await closed;
    await closing.close();
    await expect(closing.createCompletion(request(PARIS))).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('sends the log of the engine to a callback', async () => {
    const lines: string[] = [];
    await using logging = await createRuntime({
      threads: 1,
      log: (level, line) => lines.push(`${level} ${line}`),
    });
    await logging.createCompletion(request(PARIS));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(lines.some((line) => line.startsWith('info'))).toBe(true);
  });
});
