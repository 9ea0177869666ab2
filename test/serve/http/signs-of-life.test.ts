/** Streams while a long prompt is read: the first event at once, then signs of life that each wire allows. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ChatCompletionChunk, ChunkDelta } from '../../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../../src/protocol/service/index.ts';
import { createHandler } from '../../../src/serve/http/index.ts';
import type { Servable } from '../../../src/serve/http/server/handler-options.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function chunk(delta: ChunkDelta, finish_reason: 'stop' | null = null): ChatCompletionChunk {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason }];
  return { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: 'slow', choices };
}

/** Says its role at once and reads the prompt until `end`. */
function slowService(): { service: Servable; end: () => void } {
  let end = (): void => {};
  const isRead = new Promise<void>((resolve) => {
    end = resolve;
  });
  async function* chunks(): AsyncGenerator<ChatCompletionChunk> {
    yield chunk({ role: 'assistant', content: '' });
    await isRead;
    yield chunk({ content: 'Lima' });
    yield chunk({}, 'stop');
  }
  const createCompletion = async () => new ChatCompletionStream(chunks(), () => {});
  return { service: { ...createMemoryService(), createCompletion } as never as Servable, end };
}

const ASKED = { messages: [{ role: 'user', content: 'Hi' }], stream: true, max_tokens: 9 };

it.each<[string, object, number, string, string]>([
  ['/v1/chat/completions', ASKED, 1, '"role":"assistant"', ': still here'],
  ['/v1/messages', ASKED, 2, '"type":"message_start"', 'event: ping\ndata: {"type":"ping"}'],
  [
    '/v1/responses',
    { input: 'Hi', stream: true },
    2,
    '"type":"response.created"',
    'event: response.in_progress',
  ],
])('%s', async (path, body, opening, first, sign) => {
  const { service, end } = slowService();
  const request = new Request(`http://localhost${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const reader = (await createHandler(service)(request))
    .body!.pipeThrough(new TextDecoderStream())
    .getReader();
  const read = async (): Promise<string> => (await reader.read()).value ?? '';
  let opened = '';
  for (let i = 0; i < opening; i++) opened += await read();
  expect(opened).toContain(first);
  for (let minute = 0; minute < 3; minute++)
    for (let i = 0; i < 6; i++) {
      const next = read();
      let isGiven = false;
      void next.then(() => {
        isGiven = true;
      });
      await vi.advanceTimersByTimeAsync(9_999);
      expect(isGiven).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      const text = await next;
      // Claude Code counts five minutes of pings as silence.
      const isMore = path === '/v1/messages' && minute === 1 && i === 5;
      if (isMore) expect(text).toMatch(/content_block_start.*"text_delta","text":""/s);
      else expect(text).toContain(sign);
    }
  end();
  let rest = '';
  for (let part = await read(); part !== ''; part = await read()) rest += part;
  expect(rest).toContain('Lima');
  expect(rest.match(/event: content_block_start/g) ?? []).toEqual([]); // the text goes on in the open block
  const numbers = [...`${opened}${rest}`.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) =>
    Number(number),
  );
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
});
