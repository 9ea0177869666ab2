/** What a token may do in a minute. */
import { describe, expect, it } from 'vitest';
import { createHandler } from '../../src/http/index.ts';
import { ClientLimits } from '../../src/http/server/token-limits.ts';
import { createRuntime } from '../../src/runtime.ts';

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
    limits.charge(119);
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
