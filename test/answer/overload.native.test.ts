/** More requests than can run: who is refused, who is too late, and who comes first. */
import { describe, expect, it, vi } from 'vitest';
import type { ChatCompletionStream } from '../../src/protocol/service/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { connect, createHandler, serve } from '../../src/serve/http/index.ts';

const messages = [{ role: 'user' as const, content: 'Tell me a story.' }];
const LONG = { messages, ignore_eos: true, max_tokens: 200 };
const LIMITS = { threads: 1, contextSize: 512, maxSequences: 2, gpu: false } as const;

describe('maxWaiting', () => {
  it('refuses what would wait behind too many, at once and before its model is loaded', async () => {
    await using runtime = await createRuntime({ ...LIMITS, maxWaiting: 3 });
    const order: string[] = [];
    const answers = await Promise.allSettled(
      Array.from({ length: 12 }, async () => {
        const answer = runtime.createCompletion(LONG);
        await answer.then(
          () => order.push('answered'),
          () => order.push('refused'),
        );
        return answer;
      }),
    );
    const refused = answers.filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(12 - 2 - 3);
    expect(refused[0]).toMatchObject({ reason: { code: 'OVERLOADED', status: 429, retryAfterMs: 1000 } });
    expect(order.slice(0, refused.length).every((how) => how === 'refused')).toBe(true); // `npm run bench -- overload` measures the time
    expect((await runtime.createCompletion({ ...LONG, max_tokens: 1 })).choices).toHaveLength(1);
  });

  it('refuses before it reads the request, also texts and embeddings, by each name', async () => {
    const models = { small: 'onpolicy-tiny', other: 'onpolicy-tiny' };
    await using runtime = await createRuntime({ ...LIMITS, models, maxWaiting: 0 });
    const model = 'small';
    const running = [1, 2].map(() => runtime.createCompletion({ ...LONG, model }));
    const unread = (more: object): never =>
      Object.defineProperty({ model, ...more }, 'messages', {
        get: () => expect.unreachable('it was read'),
        enumerable: true,
      }) as never;
    const refused = [
      runtime.createCompletion(unread({})),
      runtime.createTextCompletion(unread({ prompt: 5 })),
      runtime.createEmbeddings(unread({ input: 5 })),
    ];
    for (const one of refused) await expect(one).rejects.toMatchObject({ code: 'OVERLOADED' });
    const faulty = runtime.createCompletion({ model: 'other' } as never);
    await expect(faulty).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await Promise.all(running);
    expect((await runtime.createCompletion({ ...LONG, model, max_tokens: 1 })).choices).toHaveLength(1);
  });

  it('over HTTP is 429 with Retry-After, and clients try again', async () => {
    await using runtime = await createRuntime({ ...LIMITS, maxWaiting: 0 });
    await runtime.createCompletion({ messages, max_tokens: 1 });
    const server = await serve(runtime, { port: 0 });
    const running = [1, 2].map(() => runtime.createCompletion(LONG));
    await new Promise((resolve) => setImmediate(resolve));
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ messages, max_tokens: 1 }),
    });
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await response.json()).toMatchObject({ error: { code: 'OVERLOADED', type: 'rate_limit_error' } });
    const client = connect({ baseUrl: server.url });
    expect((await client.createCompletion({ messages, max_tokens: 1 })).choices).toHaveLength(1);
    await Promise.all(running);
    await server.close();
  });
});

describe('the minute of a token', () => {
  it.each<[string, object, object]>([
    ['requests', { requestsPerMinute: 1 }, {}],
    ['tokens', { tokensPerMinute: 10 }, {}],
    // without usage each part counts as one token, and several tokens may come as one part
    [
      'tokens of a stream',
      { tokensPerMinute: 10 },
      { stream: true, stream_options: { include_usage: true } },
    ],
  ])('%s are refused when they are used up, and other tokens are not', async (_, limits, more) => {
    await using runtime = await createRuntime(LIMITS);
    const handler = createHandler(runtime, { tokens: [{ token: 'a', ...limits }, 'b'] });
    const ask = async (token: string): Promise<Response> => {
      const body = JSON.stringify({ messages, max_tokens: 20, ignore_eos: true, ...more });
      const headers = { authorization: `Bearer ${token}` };
      const url = 'http://localhost/v1/chat/completions';
      const response = await handler(new Request(url, { method: 'POST', headers, body }));
      await response.text();
      return response;
    };
    expect((await ask('a')).status).toBe(200);
    const refused = await ask('a');
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1);
    expect((await ask('b')).status).toBe(200);
  });
});

describe('a deadline', () => {
  it('timeout_ms ends an answer that takes longer, also one that waits', async () => {
    await using runtime = await createRuntime({ ...LIMITS, maxSequences: 1 });
    await runtime.createCompletion({ messages, max_tokens: 1 });
    const first = runtime.createCompletion({ ...LONG, max_tokens: 450, timeout_ms: 30 });
    const waiting = runtime.createCompletion({ ...LONG, timeout_ms: 20 });
    await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT', status: 408 });
    await expect(first).rejects.toMatchObject({ code: 'TIMEOUT' });
    await vi.waitFor(() => expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0 }));
    const quick = await runtime.createCompletion({ messages, max_tokens: 1, timeout_ms: 60_000 });
    expect(quick.choices).toHaveLength(1);
  });

  it('ends a stream that has begun', async () => {
    await using runtime = await createRuntime(LIMITS);
    await runtime.createCompletion({ messages, max_tokens: 1 });
    const stream: ChatCompletionStream = await runtime.createCompletion({
      ...LONG,
      max_tokens: 450,
      stream: true,
      timeout_ms: 40,
    });
    const read = async (): Promise<void> => {
      for await (const _ of stream);
    };
    await expect(read()).rejects.toMatchObject({ code: 'TIMEOUT' });
  });
});

describe('the key of a client', () => {
  it.each([
    [{ clientKey: '' }, /options.clientKey: expected 1 to 200 characters/],
    [{ clientKey: 3 }, /options.clientKey: expected 1 to 200 characters/],
  ])('%j is refused', async (options, message) => {
    await using runtime = await createRuntime(LIMITS);
    await expect(runtime.createCompletion({ messages }, options as never)).rejects.toThrow(message);
  });
});
