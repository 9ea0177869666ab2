/** A client that leaves while its prompt is read, and comes back: what was computed is not computed again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRuntime } from '../../../src/runtime/runtime.ts';

it.each([
  ['/v1/chat/completions', (events: string) => /"cached_tokens":(\d+)/.exec(events)],
  ['/v1/messages', (events: string) => /"cache_read_input_tokens":(\d+)/.exec(events)],
])('%s', async (path, cachedIn) => {
  const runtime = await createRuntime({ threads: 1, contextSize: 1024, maxBatchTokens: 16 });
  const content = Array.from({ length: 110 }, (_, i) => `${i} is a number.`).join(' ');
  const body = JSON.stringify({
    messages: [{ role: 'user', content }],
    max_tokens: 1,
    stream: true,
    ...(path.includes('chat') ? { stream_options: { include_usage: true } } : {}),
  });
  const post = (signal?: AbortSignal): Promise<Response> =>
    runtime.fetch(`http://in-process${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      ...(signal ? { signal } : {}),
    });
  const controller = new AbortController();
  const reader = (await post(controller.signal)).body!.getReader();
  await reader.read(); // the first event is there before the prompt is read
  const steps = (): number => runtime.stats().steps;
  while (steps() < 5) await sleep(1);
  controller.abort();
  const rest = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  await expect(rest()).rejects.toThrow();
  await expect.poll(() => runtime.stats().running).toBe(0);
  const before = steps();
  const cached = Number(cachedIn(await (await post()).text())![1]);
  expect(cached).toBeGreaterThanOrEqual(4 * 16);
  expect(steps() - before).toBeGreaterThan(5); // it was left midway
  await runtime.close();
});
