/** Limits of a token per minute. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ChatCompletionChunk, ChatCompletionRequest } from '../../../src/protocol/index.ts';
import { AnswerStream, ChatCompletionStream } from '../../../src/protocol/service/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { createHandler } from '../../../src/serve/http/index.ts';
import { ClientLimits } from '../../../src/serve/http/server/token-limits.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';

describe('the requests of a minute', () => {
  it.each<[string, number, number[], (number | 'ok')[]]>([
    ['as many as it says at once', 3, [0, 0, 0, 0], ['ok', 'ok', 'ok', 20_000]],
    ['one more as each refills', 3, [0, 0, 0, 20_000, 20_000], ['ok', 'ok', 'ok', 'ok', 20_000]],
    ['never more than a minute holds', 2, [0, 600_000, 600_000, 600_000], ['ok', 'ok', 'ok', 30_000]],
  ])('%s', (_, requestsPerMinute, times, expected) => {
    const limits = new ClientLimits({ requestsPerMinute, tokensPerMinute: null }, 0);
    const found = times.map((nowMs) => {
      try {
        limits.begin(nowMs);
        return 'ok';
      } catch (error) {
        return Math.round((error as { retryAfterMs: number }).retryAfterMs);
      }
    });
    expect(found).toEqual(expected);
  });

  it('tokens may leave a debt, which is paid first', () => {
    const limits = new ClientLimits({ requestsPerMinute: null, tokensPerMinute: 60 }, 0);
    limits.begin(0);
    limits.reserve(1, 0).charge(119);
    expect(() => limits.begin(0)).toThrow(/used up its tokens/);
    expect(() => limits.begin(59_000)).toThrow(/used up its tokens/);
    limits.begin(60_000);
  });
});

describe('a handler', () => {
  it.each([[{ requestsPerMinute: 0 }], [{ tokensPerMinute: 1.5 }], [{ requestsPerMinute: '3' }]])(
    'refuses %j of a token',
    async (limits) => {
      await using runtime = await createRuntime();
      const tokens = [{ token: 'a', ...limits }] as never;
      expect(() => createHandler(runtime, { tokens })).toThrow(
        /tokens\.0\.\w+PerMinute: expected an integer >= 1 or null/,
      );
    },
  );
});

/** Streams an answer of six tokens to a prompt of ten, two parts of three tokens; with the usage that it is asked for. */
function countingService() {
  const usage = (completion_tokens: number) => ({
    prompt_tokens: 10,
    completion_tokens,
    total_tokens: 10 + completion_tokens,
  });
  const createCompletion = async ({ stream_options: asked }: ChatCompletionRequest) => {
    const chunks = async function* (): AsyncGenerator<ChatCompletionChunk> {
      const each = asked?.continuous_usage_stats;
      const header = { id: 'x', object: 'chat.completion.chunk' as const, created: 0, model: 'm' };
      for (const tokens of [3, 6])
        yield {
          ...header,
          choices: [{ index: 0, delta: { content: 'abc' }, logprobs: null, finish_reason: null }],
          ...(each ? { usage: usage(tokens) } : {}),
        };
      if (asked?.include_usage) yield { ...header, choices: [], usage: usage(6) };
    };
    return new ChatCompletionStream(chunks(), () => {});
  };
  return Object.assign(Object.create(createMemoryService()), { createCompletion });
}

describe('the tokens of a stream', () => {
  it.each<[string, ChatCompletionRequest['stream_options'], (number | null)[]]>([
    ['that is not asked for them', undefined, [null, null]],
    ['that says them at its end', { include_usage: true }, [null, null, 16]],
    ['that says them in each part', { include_usage: true, continuous_usage_stats: true }, [13, 16, 16]],
  ])('%s are counted, those of its prompt, too', async (_, stream_options, totals) => {
    vi.useFakeTimers({ toFake: ['performance'] }); // nothing refills
    onTestFinished(() => void vi.useRealTimers());
    const ask = async (tokensPerMinute: number) => {
      const handler = createHandler(countingService(), { tokens: [{ token: 'a', tokensPerMinute }] });
      const body = JSON.stringify({
        messages: [{ role: 'user', content: 'x' }],
        stream: true,
        ...(stream_options ? { stream_options } : {}),
      });
      const headers = { authorization: 'Bearer a', 'content-type': 'application/json' };
      const url = 'http://localhost/v1/chat/completions';
      const send = () => handler(new Request(url, { method: 'POST', body, headers }));
      const text = await (await send()).text();
      return { text, next: (await send()).status };
    };
    expect((await ask(17)).next).toBe(200);
    const { text, next } = await ask(16);
    expect(next).toBe(429);
    const parts = text.trim().split('\n\n');
    expect(parts.pop()).toBe('data: [DONE]');
    const sent = parts.map((part) => JSON.parse(part.slice('data: '.length)) as ChatCompletionChunk);
    expect(sent.map(({ usage }) => usage?.total_tokens ?? null)).toEqual(totals);
  });
});

describe('the tokens between two texts', () => {
  const usage = { prompt_tokens: 10, completion_tokens: 6, total_tokens: 16 };
  const header = { id: 'x', object: 'text_completion' as const, created: 0, model: 'm' };
  const choice = {
    index: 0,
    text: 'abc',
    logprobs: null,
    finish_reason: 'stop' as const,
    token_ids: [1, 2, 3],
  };
  const createTextCompletion = async ({ stream }: { stream?: boolean | null }) => {
    const chunks = async function* () {
      yield { ...header, choices: [choice] };
      yield { ...header, choices: [], usage };
    };
    return stream ? new AnswerStream(chunks(), () => {}) : { ...header, choices: [choice], usage };
  };

  it.each([[false], [true]])('are counted with those of both texts, streamed: %s', async (stream) => {
    vi.useFakeTimers({ toFake: ['performance'] }); // nothing refills
    onTestFinished(() => void vi.useRealTimers());
    const service = Object.assign(Object.create(createMemoryService()), { createTextCompletion });
    const nextAfter = async (tokensPerMinute: number) => {
      const handler = createHandler(service, { tokens: [{ token: 'a', tokensPerMinute }] });
      const headers = { authorization: 'Bearer a', 'content-type': 'application/json' };
      const send = (text: string, n_predict: number) => {
        const body = JSON.stringify({ input_prefix: text, input_suffix: text, n_predict, stream });
        return handler(new Request('http://localhost/infill', { method: 'POST', body, headers }));
      };
      expect(await (await send('a', 6)).text()).toContain('"tokens_predicted":6');
      return (await send('', 1)).status;
    };
    expect(await nextAfter(17)).toBe(200);
    expect(await nextAfter(16)).toBe(429);
  });
});
