/** Requests at the limits: they work, or say what is wrong. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { PARIS, PARIS_ANSWER } from '../asking.ts';
import { ask, EXACT_MODEL, type Fields, forced } from './model.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

describe('the context', () => {
  it('says how many tokens fit, and by how many the messages are too long', async () => {
    await using small = await createRuntime({ threads: 1, contextSize: 64 });
    const { usage } = await ask(small, PARIS, { max_tokens: 1 });
    const left = 64 - usage.prompt_tokens;
    await expect(ask(small, PARIS, { max_tokens: left + 1 })).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      status: 400,
      message: expect.stringContaining(`at most ${left} fit`),
    });
    for (const fields of [{ max_completion_tokens: left }, {}]) {
      // the default is the rest of the context
      const full = await ask(small, PARIS, { ...fields, ignore_eos: true });
      expect(full.usage.total_tokens).toBe(64);
      expect(full.choices[0]!.finish_reason).toBe('length');
    }
  });

  it('refuses a prompt that fills it, and takes one that leaves one token', async () => {
    const [word] = await runtime.tokenize(' word');
    const exactly = async (count: number): Promise<Fields> => ({
      chat_template: '{% for i in range(count) %} word{% endfor %}',
      chat_template_kwargs: { count },
    });
    expect(word).toBeTypeOf('number');
    const perWord = (await runtime.tokenize(' word word')).length / 2;
    await expect(ask(runtime, 'x', await exactly(1024 / perWord))).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      param: 'messages',
      message: expect.stringContaining('Shorten the messages by 1 tokens'),
    });
    const cut = { ...(await exactly(2000)), truncate_prompt_tokens: 1023, ignore_eos: true };
    expect((await ask(runtime, 'x', cut)).usage).toMatchObject({ prompt_tokens: 1023, completion_tokens: 1 });
    const counting = {
      chat_template: '{% for i in range(99) %} {{ i }}{% endfor %}',
      return_token_ids: true,
      max_tokens: 1,
    };
    const { prompt_token_ids: ids } = await ask(runtime, 'x', counting);
    const ten = { ...counting, truncate_prompt_tokens: 10 };
    const left = await ask(runtime, 'x', { ...ten, truncation_side: 'left' });
    const right = await ask(runtime, 'x', { ...ten, truncation_side: 'right' });
    expect(left.prompt_token_ids).toEqual(ids!.slice(-10));
    expect(right.prompt_token_ids).toEqual(ids!.slice(0, 10));
    const most = { ...(await exactly(2000)), truncate_prompt_tokens: -1, max_tokens: 24, ignore_eos: true };
    expect((await ask(runtime, 'x', most)).usage).toMatchObject({
      prompt_tokens: 1000,
      completion_tokens: 24,
    });
    await expect(ask(runtime, 'x', { ...cut, truncate_prompt_tokens: -1 })).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      param: 'max_completion_tokens',
    });
    for (const truncate_prompt_tokens of [1025, 0])
      await expect(ask(runtime, 'x', { ...cut, truncate_prompt_tokens })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        param: 'truncate_prompt_tokens',
      });
  });
});

describe('the cache', () => {
  it.each([
    ['a pool of one context', { kvTokens: 256, contextSize: 256 }],
    ['a pool of half of what is asked for', { kvTokens: 1024, contextSize: 256 }],
  ])('that is too small for all makes some wait; every answer is the same: %s', async (_, limits) => {
    await using tight = await createRuntime({ threads: 1, model: EXACT_MODEL, ...limits });
    await using wide = await createRuntime({ threads: 1, model: EXACT_MODEL });
    const fields = { max_tokens: 100, ignore_eos: true, return_token_ids: true };
    const questions = Array.from({ length: 16 }, (_, i) => `Tell me story number ${i}.`);
    const [few, many] = [
      await Promise.all(questions.map((question) => ask(tight, question, fields))),
      await Promise.all(questions.map((question) => ask(wide, question, fields))),
    ];
    expect(few.map(({ choices }) => choices[0]!.token_ids)).toEqual(
      many.map(({ choices }) => choices[0]!.token_ids),
    );
    expect(tight.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
  });
});

describe('thousands of stop strings', () => {
  it('cost little, and each of them stops', async () => {
    const stop = Array.from({ length: 20_000 }, (_, i) => `no such stop ${i}`);
    expect((await ask(runtime, PARIS, { stop })).choices[0]!.message.content).toBe(PARIS_ANSWER);
    stop[12_345] = 'of France';
    expect((await ask(runtime, PARIS, { stop })).choices[0]).toMatchObject({
      message: { content: 'The capital ' },
      stop_reason: 'of France',
    });
    const request = await forced(runtime, 'one no such stop 19999 two', { stop });
    expect((await runtime.createCompletion({ ...request, stream: false })).choices[0]).toMatchObject({
      message: { content: 'one ' },
      stop_reason: 'no such stop 1', // complete before the longer ones are
    });
  });

  it('in a beam search too', async () => {
    const stop = Array.from({ length: 5000 }, (_, i) => `no such stop ${i}`);
    stop.push('France');
    const beams = await ask(runtime, PARIS, { stop, use_beam_search: true, n: 2 });
    expect(beams.choices[0]).toMatchObject({
      stop_reason: 'France',
      message: { content: 'The capital of ' },
    });
  });

  it('bad words and biases too', async () => {
    const bad_words = Array.from({ length: 5000 }, (_, i) => `badword${i}`);
    const logit_bias = Object.fromEntries(Array.from({ length: 1024 }, (_, id) => [id, 1]));
    expect((await ask(runtime, PARIS, { bad_words, logit_bias })).choices[0]!.message.content).toBe(
      PARIS_ANSWER,
    );
  });
});

describe('a prompt of a megabyte', () => {
  const huge = 'All work and no play makes Jack a dull boy. '.repeat(24_000);

  it('is a clear error, or its last tokens, and the event loop goes on meanwhile', async () => {
    expect(huge.length).toBeGreaterThan(2 ** 20);
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 1);
    await expect(ask(runtime, huge)).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      message: expect.stringMatching(/the prompt has about \d{6} tokens; the context holds 1024/),
    });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(10);
    const cut = await ask(runtime, huge, { truncate_prompt_tokens: -1, max_tokens: 4 });
    expect(cut.usage.prompt_tokens).toBe(1020);
  });

  it('in a thousand messages, or as one word', async () => {
    const messages = Array.from({ length: 1000 }, (_, i) => ({
      role: i % 2 ? ('assistant' as const) : ('user' as const),
      content: huge.slice(0, 1000),
    }));
    await expect(runtime.createCompletion({ messages })).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW' });
    await expect(ask(runtime, 'a'.repeat(2 ** 20))).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW' });
  });
});

describe('n = 256', () => {
  it('gives 256 choices, whole and streamed, with a grammar and with a few slots', async () => {
    await using few = await createRuntime({ threads: 1, model: EXACT_MODEL, maxSequences: 8 });
    await using many = await createRuntime({ threads: 1, model: EXACT_MODEL });
    const fields = { n: 256, temperature: 1.5, seed: 3, max_tokens: 8 };
    const digits = { ...fields, structured_outputs: { regex: '[0-9]{3}' } };
    const plain = await ask(many, 'Tell me a story.', fields);
    expect(plain.choices.map(({ index }) => index)).toEqual(Array.from({ length: 256 }, (_, i) => i));
    expect(new Set(plain.choices.map(({ message }) => message.content)).size).toBeGreaterThan(100);
    const same = await ask(few, 'Tell me a story.', fields);
    expect(same.choices).toEqual(plain.choices);
    for (const { message } of (await ask(runtime, 'Say a number.', digits)).choices)
      expect(message.content).toMatch(/^\d{3}$/);
  });

  it('of beams is more than can run, and says so', async () => {
    await expect(ask(runtime, PARIS, { n: 256, use_beam_search: true })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'n',
    });
  });
});
