/** How completions run: as streams, many at once, on a runtime that opens and closes. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { turns } from '../fakes/engine-requests.ts';
import { COUNT, openRuntime, PARIS, request, STORY } from './asking.ts';

const { runtime, ask, text, stream } = openRuntime();

/** Waits until nothing runs: an aborted sequence is freed when the running step ends. */
async function settled(): Promise<void> {
  const idle = { running: 0, waiting: 0, kvTokensInUse: 0 };
  await expect.poll(() => runtime().stats(), { timeout: 5000, interval: 5 }).toMatchObject(idle);
}

describe('a stream', () => {
  it('begins with a role chunk, ends with the finish and the usage, and joins to the whole answer', async () => {
    await ask(PARIS); // then the prompt comes from the cache both times: a step of another size rounds otherwise
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
    for (const { choices } of body.slice(0, -1)) expect(choices[0]).not.toHaveProperty('stop_reason');
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
    expect(chunks[0]!.usage).toMatchObject({ prompt_tokens: 17, completion_tokens: 0, total_tokens: 17 });
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
    for await (const chunk of await runtime().createCompletion({ ...long, stream: true }))
      if (chunk.choices[0]?.delta.content) break;
    await settled();
    const controller = new AbortController();
    const reading = (async () => {
      for await (const chunk of await runtime().createCompletion(
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
    const stopped = await runtime().createCompletion({ ...long, stream: true });
    stopped.abort();
    await expect(
      (async () => {
        for await (const _ of stopped);
      })(),
    ).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(runtime().createCompletion(long, { signal: AbortSignal.abort() })).rejects.toMatchObject({
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
        void turns((i * 37) % 150).then(() => controller.abort());
        await runtime()
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
      [{ gpu: 'tpu' }, /gpu: expected "auto", "cuda", "vulkan", "metal" or false, got "tpu"/],
      [{ modle: 'x' }, /modle: not a field of options; did you mean model\?/],
      [{ model: { path: 'x', fusedAttention: 'no' } }, /model.fusedAttention: expected true or false/],
      [{ model: { path: 'x', cacheBits: 8 } }, /cacheBits: expected 16 or 32/],
      [{ model: { contextSize: 5 } }, /model.path: this field is required/],
      [{ models: { a: { path: 'x', threads: 0 } } }, /models.a.threads: expected an integer from 1 to 512/],
    ] as const)
      await expect(createRuntime(options as never)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(message),
      });
  });

  it('names what is wrong with a request before anything runs, and fields that it does not serve', async () => {
    await expect(runtime().createCompletion({ messages: [], temprature: 1 } as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('temperature'),
    });
    await expect(runtime().createCompletion({ messages: [] })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'messages',
      message: 'messages: expected at least one message, got none',
    });
    await expect(ask('x', { model: 'nothing-here' })).rejects.toMatchObject({
      code: 'MODEL_NOT_FOUND',
      status: 404,
      param: 'model',
    });
    await expect(ask('x', { logit_bias: { 5000: 1 } })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('serves several models by alias and path', async () => {
    const file = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
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
    const path = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
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
    await expect.poll(() => closing.stats().running, { interval: 2 }).toBe(1);
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
    await expect.poll(() => lines.some((line) => line.startsWith('info'))).toBe(true);
  });
});
