/** Times and progress of answers of another process: isolated, of a server, in a pool. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionChunk } from '../../../src/protocol/index.ts';
import type { Completions } from '../../../src/protocol/service/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect, createPool, type Server, serve } from '../../../src/serve/http/index.ts';

const SETTINGS = { threads: 1, maxBatchTokens: 64 } as const;
const LONG = Array.from({ length: 75 }, (_, i) => `${i} parrots.`).join(' ');
const FIELDS = { max_tokens: 20, ignore_eos: true, temperature: 0, return_timings: true } as const;
const TOKENS = FIELDS.max_tokens;

let runtime: Runtime;
let isolated: Runtime;
let server: Server;
beforeAll(async () => {
  runtime = await createRuntime(SETTINGS);
  isolated = await createRuntime({ ...SETTINGS, isolate: true });
  server = await serve(runtime, { port: 0 });
});
afterAll(async () => {
  await server.close();
  await isolated.close();
  await runtime.close();
});

const remote = () => connect({ baseUrl: server.url });
const SERVICES: readonly (readonly [string, () => Completions])[] = [
  ['an isolated runtime', () => isolated],
  ['a server', remote],
  ['a pool of both', () => createPool([remote(), isolated])],
];

/** Checks that the times of an answer fit into the time of its caller, and its numbers to its usage. */
function checkTimes({ metrics, timings, usage }: ChatCompletion | ChatCompletionChunk, wallMs: number): void {
  const { queue_time_ms, time_to_first_token_ms, generation_time_ms } = metrics!;
  const parts = [queue_time_ms, time_to_first_token_ms, generation_time_ms];
  for (const ms of parts) expect(ms).toBeGreaterThanOrEqual(0);
  expect(parts.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(wallMs);
  expect(timings!.predicted_n).toBe(TOKENS);
  expect(timings!.predicted_per_second).toBeCloseTo((1000 * (TOKENS - 1)) / generation_time_ms, 6);
  expect(timings!.prompt_n + timings!.cache_n).toBe(usage!.prompt_tokens);
}

describe.each(SERVICES)('%s', (name, serviceOf) => {
  const messages = [{ role: 'user' as const, content: LONG }];

  it('returns the times of an answer', async () => {
    const startMs = performance.now();
    const answer = await serviceOf().createCompletion({ messages, ...FIELDS, cache_salt: `${name} whole` });
    checkTimes(answer, performance.now() - startMs);
  });

  it('streams them with each token, and how far the prompt is', async () => {
    const startMs = performance.now();
    const stream = await serviceOf().createCompletion({
      messages,
      ...FIELDS,
      cache_salt: `${name} streamed`,
      timings_per_token: true,
      return_progress: true,
      return_token_ids: true,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const last = chunks.at(-1)!;
    checkTimes(last, performance.now() - startMs);
    let tokens = 0;
    for (const { choices, timings } of chunks) {
      tokens += choices[0]?.token_ids?.length ?? 0;
      if (choices[0]?.token_ids?.length) expect(timings!.predicted_n).toBe(tokens);
    }
    expect(tokens).toBe(TOKENS);
    const reports = chunks.flatMap(({ prompt_progress }) => prompt_progress ?? []);
    expect(reports.length).toBeGreaterThan(1);
    for (const [i, { total, processed, cache }] of reports.entries()) {
      expect([total, cache]).toEqual([last.usage!.prompt_tokens, 0]);
      expect(processed).toBeGreaterThanOrEqual(reports[i - 1]?.processed ?? 0);
    }
    expect(reports.at(-1)!.processed).toBe(last.usage!.prompt_tokens);
  });
});
