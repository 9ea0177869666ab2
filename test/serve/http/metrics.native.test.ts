import parse from 'parse-prometheus-text-format';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { type AccessEntry, createHandler } from '../../../src/serve/http/index.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

const boundOf = (text: string): number => (text === '+Inf' ? Infinity : Number(text));

const post = (body: object): Request =>
  new Request('http://127.0.0.1/v1/chat/completions?x=1', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': 'mine' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'What color is snow?' }], ...body }),
  });

describe('what a server can be seen by', () => {
  it("is read by a parser of Prometheus's format", async () => {
    const handler = createHandler(runtime);
    expect((await handler(post({ max_tokens: 3, ignore_eos: true }))).status).toBe(200);
    const families = parse(await (await handler(new Request('http://127.0.0.1/metrics'))).text());
    const family = (name: string) => families.find((one) => one.name === name)!;
    const histogram = (name: string) => {
      expect(family(name).type).toBe('HISTOGRAM');
      const [{ buckets, count, sum }] = family(name).metrics as [
        { buckets: Record<string, string>; count?: string; sum?: string },
      ];
      if (count !== undefined) expect(buckets['+Inf']).toBe(count); // the parser drops it where there are labels
      const bounds = Object.keys(buckets).toSorted((a, b) => boundOf(a) - boundOf(b));
      const counts = bounds.map((bound) => Number(buckets[bound]));
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
      return { count: Number(buckets['+Inf']), sum: Number(sum) };
    };
    expect(histogram('onpolicy_http_request_seconds').count).toBe(1);
    expect(histogram('onpolicy_time_to_first_token_seconds').count).toBe(1);
    expect(histogram('onpolicy_queue_seconds').count).toBe(1);
    expect(histogram('onpolicy_time_between_tokens_seconds').count).toBe(2);
    expect(histogram('onpolicy_request_prompt_tokens').sum).toBeGreaterThan(5);
    expect(histogram('onpolicy_request_cached_prompt_tokens').sum).toBe(0);
    expect(family('onpolicy_generated_tokens_total').metrics).toEqual([{ value: '3' }]);
    for (const { help } of families) expect(help).toMatch(/\.$/);
  });

  it('logs every request at its end', async () => {
    const entries: AccessEntry[] = [];
    const handler = createHandler(runtime, { accessLog: (entry) => entries.push(entry) });
    await (await handler(post({ stream: true, max_tokens: 2 }))).text();
    await handler(new Request(`http://127.0.0.1/${'x'.repeat(900)}`));
    expect(entries).toMatchObject([
      { method: 'POST', path: '/v1/chat/completions', status: 200, requestId: 'mine' },
      { method: 'GET', path: `/${'x'.repeat(199)}`, status: 404 },
    ]);
    expect(Date.now() - Date.parse(entries[0]!.time)).toBeLessThan(60_000);
    expect(entries[0]!.ms).toBeGreaterThan(0);
  });

  it('answers when the log throws', async () => {
    const errors: unknown[] = [];
    const handler = createHandler(runtime, {
      accessLog: () => {
        throw new Error('full');
      },
      onError: (error) => errors.push(error),
    });
    expect((await handler(new Request('http://127.0.0.1/health'))).status).toBe(200);
    expect(errors).toMatchObject([{ message: 'full' }]);
  });
});
