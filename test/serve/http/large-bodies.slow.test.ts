/** Large bodies -> values, in pieces, within limits of memory; other requests are answered in between. */
import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { JsonCost, parseInPieces } from '../../../src/serve/http/server/parse-json.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';
import { HELLO, openHandler } from './exchange.ts';

const MIB = 2 ** 20;

/** Sends a body that is compressed with gzip. */
async function post(handler: ReturnType<typeof openHandler>['handler'], text: string, isPlain = false) {
  const body = isPlain ? text : new Uint8Array(zlib.gzipSync(text));
  const headers = { 'content-type': 'application/json', ...(isPlain ? {} : { 'content-encoding': 'gzip' }) };
  const response = await handler(
    new Request('http://localhost/v1/chat/completions', { method: 'POST', headers, body }),
  );
  return [response.status, (await response.json()) as { error?: { message: string; code: string } }] as const;
}

/** A list of very many items after a message. */
function listOf(field: string, item: string, bytes: number): string {
  const count = Math.floor(bytes / (item.length + 1));
  const items = `${`${item},`.repeat(count)}${item}`;
  return `{"messages":[{"role":"user","content":"x"}],"${field}":[${items}]}`;
}

describe('large bodies', () => {
  it('of very many small values are refused before they are parsed, and others are answered meanwhile', async () => {
    const { handler } = openHandler();
    const bomb = listOf('tools', '{}', 20 * MIB);
    const before = process.memoryUsage().heapUsed;
    const bombs = Promise.all(Array.from({ length: 5 }, () => post(handler, bomb)));
    let areDone = false;
    void bombs.then(() => {
      areDone = true;
    });
    expect((await post(handler, JSON.stringify(HELLO), true))[0]).toBe(200);
    expect(areDone).toBe(false);
    for (const [status, { error }] of await bombs)
      expect([status, error]).toMatchObject([413, { code: 'TOO_LARGE' }]);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(256 * MIB);
  });

  it('that just fit are parsed in pieces, and their faults are counted up to a limit', async () => {
    const { handler } = openHandler();
    const text = listOf('tools', '{}', 3 * MIB);
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 0);
    const [status, { error }] = await post(handler, text);
    clearInterval(timer);
    expect(status).toBe(400);
    expect(error!.message).toMatch(/^tools\.0\.type: .* \(and \d{6,7} more faults\)$/);
    expect(turns).toBeGreaterThanOrEqual(5);
  });

  it('with more unknown fields than are compared with known ones are refused', async () => {
    const fields = Array.from({ length: 100_000 }, (_, i) => `"f${i}":1`).join(',');
    const [status, { error }] = await post(openHandler().handler, `{"messages":[],${fields}}`);
    expect([status, error!.message]).toEqual([400, expect.stringMatching(/^f\d+: not a field/)]);
  });

  it('are read one after the other, and only so many bytes at one time', async () => {
    const { handler } = openHandler({ maxBodyBytes: MIB });
    const text = JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(MIB - 100) }] });
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(handler, text, true)));
    const statuses = answers.map(([status]) => status);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(8);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect((await post(handler, text, true))[0]).toBe(200);
  });
});

describe('JSON in pieces', () => {
  const random = randomNumbers(7);
  const below = (count: number): number => Math.floor(random() * count);
  const KEYS = ['a', 'b"', '__proto__', '5', '\\', 'a\u{1f600}', ''];
  const randomValue = (depth: number): unknown => {
    const kind = below(depth > 0 ? 7 : 4);
    if (kind === 0) return [null, true, false, -0.5, 1e21, 12][below(6)];
    if (kind < 4) return ['', 'x,]}', '"\\"', 'ü{', '\\\\', 'long '.repeat(below(9))][below(6)];
    const items = Array.from({ length: below(6) }, () => randomValue(depth - 1));
    if (kind < 6) return items;
    const given = items.map((item) => `${JSON.stringify(KEYS[below(KEYS.length)])}:${JSON.stringify(item)}`);
    return JSON.parse(`{${given.join(', ')}}`) as unknown;
  };
  const parsed = (text: string): unknown => {
    try {
      return JSON.parse(Buffer.from(text).toString()); // half a character is sent as U+FFFD
    } catch {
      return 'no JSON';
    }
  };
  const inPieces = async (text: string, bytes: number): Promise<unknown> =>
    await parseInPieces(Buffer.from(text), bytes).catch(() => 'no JSON');

  it('is what JSON.parse makes of it, also where it is wrong', async () => {
    for (let i = 0; i < 300; i++) {
      const text = JSON.stringify(randomValue(5), null, below(2));
      const at = below(text.length);
      const mark = '[]{},:"\\0n- '[below(12)]!;
      const texts = [text, text.slice(0, at) + text.slice(at + 1), text.slice(0, at) + mark + text.slice(at)];
      for (const given of texts)
        for (const bytes of [0, 3, 20]) {
          const value = await inPieces(given, bytes);
          expect(value, given).toStrictEqual(parsed(given));
        }
    }
  });

  it('has the same cost wherever its parts are cut', () => {
    for (let i = 0; i < 300; i++) {
      const bytes = Buffer.from(JSON.stringify(randomValue(4)));
      const costOf = (size: number): number => {
        const cost = new JsonCost();
        for (let from = 0; from < bytes.length; from += size) cost.add(bytes.subarray(from, from + size));
        return cost.bytes;
      };
      expect([1, 2, 3, 7].map(costOf)).toEqual(Array(4).fill(costOf(1e6)));
    }
  });

  it('has a deepest level', async () => {
    const text = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(await parseInPieces(Buffer.from(text(1000)))).toEqual(JSON.parse(text(1000)));
    await expect(parseInPieces(Buffer.from(text(1001)))).rejects.toThrow('more than 1000 levels');
  });
});
