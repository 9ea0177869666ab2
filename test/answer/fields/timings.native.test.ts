/** Fields about how long a request took, and how far its prompt is. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletionChunk, TextCompletionChunk } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { ask, chunksOf } from './model.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, maxBatchTokens: 64 });
});
afterAll(() => runtime.close());

const LONG = Array.from({ length: 75 }, (_, i) => `${i} parrots.`).join(' ');
const user = (content: string) => [{ role: 'user' as const, content }];
const FIELDS = { max_tokens: 20, ignore_eos: true, temperature: 0 } as const;

/** The times of an answer within the time of its caller. */
function checkTimes(
  { metrics, timings }: Pick<ChatCompletionChunk, 'metrics' | 'timings'>,
  wallMs: number,
): void {
  const { queue_time_ms, time_to_first_token_ms, generation_time_ms } = metrics!;
  const parts = [queue_time_ms, time_to_first_token_ms, generation_time_ms];
  for (const ms of parts) expect(ms).toBeGreaterThanOrEqual(0);
  expect(parts.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(wallMs);
  expect(timings!.prompt_ms).toBe(time_to_first_token_ms);
  expect(timings!.predicted_ms).toBe(generation_time_ms);
  expect(metrics!.tokens_per_second).toBeCloseTo((1000 * 19) / generation_time_ms, 6);
  expect(timings!.predicted_per_second).toBe(metrics!.tokens_per_second);
  expect(metrics!.mean_itl_ms).toBeCloseTo(generation_time_ms / 19, 6);
  expect(timings!.prompt_per_second).toBeCloseTo((1000 * timings!.prompt_n) / timings!.prompt_ms, 6);
}

describe('timings', () => {
  it('return_timings adds up: tokens to the usage, times to less than the caller waits', async () => {
    const startMs = performance.now();
    const answer = await ask(runtime, LONG, { ...FIELDS, return_timings: true, cache_salt: 'a' });
    checkTimes(answer as never, performance.now() - startMs);
    const { usage, timings } = answer;
    expect(timings!.cache_n).toBe(usage.prompt_tokens_details!.cached_tokens);
    expect(timings!.prompt_n + timings!.cache_n).toBe(usage.prompt_tokens);
    expect(timings!.predicted_n).toBe(usage.completion_tokens);
    const again = await ask(runtime, LONG, { ...FIELDS, return_timings: true, cache_salt: 'a' });
    expect(again.timings!.cache_n).toBe(again.usage.prompt_tokens_details!.cached_tokens);
    expect(again.timings!.cache_n).toBeGreaterThan(0);
    expect(again.timings!.prompt_ms).toBeLessThan(timings!.prompt_ms);
    const plain = await ask(runtime, LONG, { ...FIELDS, cache_salt: 'a' });
    expect(Object.keys(plain)).not.toContain('timings');
    expect(plain.choices).toEqual(again.choices);
  });

  it('return_timings are in the last chunk of a stream, with and without usage', async () => {
    for (const stream_options of [undefined, { include_usage: true }]) {
      const startMs = performance.now();
      const chunks = await chunksOf(runtime, {
        messages: user('Hi'),
        ...FIELDS,
        return_timings: true,
        ...(stream_options ? { stream_options } : {}),
      });
      expect(chunks.filter(({ metrics }) => metrics)).toEqual([chunks.at(-1)]);
      checkTimes(chunks.at(-1)!, performance.now() - startMs);
    }
  });

  it('text completions have the same, in the last chunk or with each token, and the progress of their prompt', async () => {
    const asked = { prompt: LONG, ...FIELDS, return_timings: true, cache_salt: 'text' };
    const startMs = performance.now();
    const whole = await runtime.createTextCompletion({ ...asked, stream: false });
    checkTimes(whole, performance.now() - startMs);
    for (const stream_options of [undefined, { include_usage: true }]) {
      const chunks: TextCompletionChunk[] = [];
      const streamMs = performance.now();
      const streamed = {
        ...asked,
        cache_salt: `${stream_options}`,
        return_progress: true,
        stream: true as const,
      };
      for await (const chunk of await runtime.createTextCompletion({
        ...streamed,
        ...(stream_options ? { stream_options } : {}),
      }))
        chunks.push(chunk);
      expect(chunks.filter(({ metrics }) => metrics)).toEqual([chunks.at(-1)]);
      checkTimes(chunks.at(-1)!, performance.now() - streamMs);
      const progress = chunks.flatMap(({ prompt_progress }) => prompt_progress ?? []);
      expect(progress.at(-1)!.total).toBe(progress[0]!.total);
      expect(progress.map(({ processed }) => processed)).toEqual(
        progress.map(({ processed }) => processed).toSorted((a, b) => a - b),
      );
      expect(chunks.flatMap(({ choices }) => choices.map(({ text }) => text)).join('')).toBe(
        whole.choices[0]!.text,
      );
    }
    const each = { ...asked, timings_per_token: true, return_token_ids: true, stream: true as const };
    let tokens = 0;
    for await (const { choices, timings } of await runtime.createTextCompletion(each)) {
      tokens += choices[0]?.token_ids?.length ?? 0;
      if (choices[0]?.token_ids?.length) expect(timings!.predicted_n).toBe(tokens);
    }
    expect(tokens).toBe(20);
  });

  it('timings of several choices count all their tokens', async () => {
    const { timings, metrics } = await ask(runtime, 'Hi', {
      ...FIELDS,
      temperature: 1,
      n: 3,
      return_timings: true,
    });
    expect(timings!.predicted_n).toBe(60);
    expect(metrics!.tokens_per_second).toBeCloseTo((1000 * 57) / metrics!.generation_time_ms, 6);
  });

  it('timings_per_token has those so far in every chunk with new tokens', async () => {
    const asked = { messages: user('Hi'), ...FIELDS, timings_per_token: true, return_token_ids: true };
    const chunks = await chunksOf(runtime, asked);
    let tokens = 0;
    for (const { choices, timings } of chunks) {
      tokens += choices[0]!.token_ids?.length ?? 0;
      if (choices[0]!.token_ids?.length) expect(timings!.predicted_n).toBe(tokens);
    }
    expect(tokens).toBe(20);
    const plain = await chunksOf(runtime, { ...asked, timings_per_token: false });
    expect(plain.some(({ timings }) => timings)).toBe(false);
    const joined = (all: readonly ChatCompletionChunk[]) =>
      all.map(({ choices }) => choices[0]!.delta.content ?? '').join('');
    expect(joined(plain)).toBe(joined(chunks));
  });

  it('return_progress reports each step of a long prompt, then what the cache saved of it', async () => {
    const asked = { messages: user(`Now. ${LONG}`), ...FIELDS, return_progress: true };
    const chunks = await chunksOf(runtime, { ...asked, stream: true, stream_options: {} });
    const reports = chunks.flatMap(({ prompt_progress }) => prompt_progress ?? []);
    const { total } = reports[0]!;
    expect(total).toBe(chunks.at(-1)!.usage!.prompt_tokens);
    expect(reports.length).toBeGreaterThan(3); // a slow reader gets the newest one
    for (const [i, { processed, time_ms, cache }] of reports.entries()) {
      expect(cache).toBe(reports[0]!.cache);
      expect(processed).toBeGreaterThanOrEqual(reports[i - 1]?.processed ?? cache);
      expect(time_ms).toBeGreaterThanOrEqual(reports[i - 1]?.time_ms ?? 0);
    }
    expect(reports.at(-1)!.processed).toBe(total);
    const firstToken = chunks.findIndex(({ choices }) => choices[0]?.delta.content);
    expect(chunks.findLastIndex(({ prompt_progress }) => prompt_progress)).toBeLessThanOrEqual(firstToken);
    const again = await chunksOf(runtime, { ...asked, stream: true });
    const [start] = again.flatMap(({ prompt_progress }) => prompt_progress ?? []);
    expect(start!.cache).toBeGreaterThan(total / 2);
    expect(start!.processed).toBeGreaterThanOrEqual(start!.cache);
    const silent = await chunksOf(runtime, { ...asked, return_progress: false });
    expect(silent.some(({ prompt_progress }) => prompt_progress)).toBe(false);
  });
});
