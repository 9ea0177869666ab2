/** Rows and a function that answers -> lines, order, retries, failures, numbers. */
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { OnpolicyError } from '../../../src/errors.ts';
import type { BatchProgress, BatchRow } from '../../../src/protocol/index.ts';
import type { AnswerRow } from '../../../src/serve/batch/index.ts';
import { batchOf, contentOf, echo, lineOf, newFolder, readRows, writeLines } from './fake-rows.ts';

const rowsOf = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => lineOf(`id-${i}`, `text ${i}`));
const textsOf = (rows: readonly BatchRow[]): string[] =>
  rows.map(({ response }) => (response!.body as { text: string }).text);

async function readAll(rows: AsyncIterable<BatchRow>): Promise<BatchRow[]> {
  const all: BatchRow[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

describe('a file of rows', () => {
  it("becomes a file of answers in OpenAI's form", async () => {
    const folder = newFolder();
    const output = path.join(folder, 'out.jsonl');
    const summary = await batchOf(echo, writeLines(folder, rowsOf(100)), { output }).done;
    expect(summary).toMatchObject({ rows: 100, completed: 100, failed: 0, resumed: 0, shared: 0 });
    expect(summary).toMatchObject({ promptTokens: 300, cachedTokens: 100, completionTokens: 200 });
    const rows = readRows(output);
    expect(new Set(rows.map((row) => row.custom_id)).size).toBe(100);
    const row = rows.find((one) => one.custom_id === 'id-7')!;
    expect(row).toEqual({
      id: expect.stringMatching(/^batch_req_[0-9a-f]{16}$/),
      custom_id: 'id-7',
      response: {
        status_code: 200,
        request_id: row.id,
        body: expect.objectContaining({ id: `chatcmpl-${row.id}`, text: 'TEXT 7' }),
      },
      error: null,
    });
    expect(fs.existsSync(path.join(folder, 'out.errors.jsonl'))).toBe(false);
  });

  it('in the order of the input, if that is asked for', async () => {
    const folder = newFolder();
    const output = path.join(folder, 'out.jsonl');
    const slowFirst: AnswerRow = async (url, body, call) => {
      await sleep(contentOf(body) === 'text 0' ? 30 : Math.random() * 4);
      return await echo(url, body, call);
    };
    const lines = [...rowsOf(40), 'no json', ...rowsOf(80).slice(40)];
    await batchOf(slowFirst, writeLines(folder, lines), { output, order: 'input' }).done;
    expect(readRows(output).map((row) => row.custom_id)).toEqual(rowsOf(80).map((_, i) => `id-${i}`));
  });

  it('of any end and size of its lines, blank ones left out', async () => {
    const folder = newFolder();
    const long = 'x'.repeat(700_000);
    const file = path.join(folder, 'in.jsonl');
    fs.writeFileSync(
      file,
      `\uFEFF${lineOf('a', 'one')}\r\n\r\n   \n${lineOf('b', long)}\n${lineOf('c', 'äö€😀')}`,
    );
    const rows = await readAll(batchOf(echo, file));
    expect(textsOf(rows).toSorted()).toEqual(['ONE', long.toUpperCase(), 'ÄÖ€😀'].toSorted());
  });
});

describe('rows come from', () => {
  const requests = [1, 2, 3].map((i) => ({ messages: [{ role: 'user', content: `row ${i}` }] }));
  const bytes = requests.map((request) => `${JSON.stringify(request)}\n`).join('');
  it.each([
    ['a list of requests', () => requests],
    ['lines', () => requests.map((request) => JSON.stringify(request))],
    [
      'an async iterable',
      async function* () {
        yield* requests;
      },
    ],
    [
      'a stream of bytes',
      () =>
        Readable.from([Buffer.from(bytes.slice(0, 50)), Buffer.from(bytes.slice(50))], { objectMode: false }),
    ],
    ['a web stream', () => new Blob([bytes]).stream()],
    ['a stream of objects', () => Readable.from(requests)],
  ])('%s', async (_name, source) => {
    const made = source();
    const rows = await readAll(
      batchOf(echo, typeof made === 'function' ? (made as () => never)() : (made as never)),
    );
    expect(textsOf(rows).toSorted()).toEqual(['ROW 1', 'ROW 2', 'ROW 3']);
    expect(rows.map((row) => row.custom_id).toSorted()).toEqual(['row-1', 'row-2', 'row-3']);
  });

  it('a function that makes requests of rows of any shape', async () => {
    const toRequest = ({ name }: { name: string }, index: number) => ({
      custom_id: `${index}:${name}`,
      body: { messages: [{ role: 'user', content: name }] },
    });
    const rows = await readAll(batchOf(echo, [{ name: 'ann' }, { name: 'bob' }], { toRequest }));
    expect(rows.map((row) => row.custom_id).toSorted()).toEqual(['0:ann', '1:bob']);
  });

  it('a function that makes requests of texts, also of empty ones and of JSON', async () => {
    const given = ['Peru', '', '{"name":"Chile"}'];
    const toRequest = (text: string, index: number) => ({
      messages: [{ role: 'user', content: `${text} is ${index}` }],
    });
    const texts = textsOf(await readAll(batchOf(echo, given, { toRequest })));
    expect(texts.toSorted()).toEqual([' IS 1', 'PERU IS 0', '{"NAME":"CHILE"} IS 2']);
  });

  it('nothing else', async () => {
    for (const source of [5, null, undefined, {}])
      await expect(batchOf(echo, source as never).done).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(batchOf(echo, '/no/such.jsonl').done).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('/no/such.jsonl'),
    });
  });
});

describe('a faulty line', () => {
  it.each([
    ['no json', /^line 2: the line is not JSON/],
    ['[1]', /^line 2: row: expected an object/],
    ['"text"', /^line 2: row: expected an object/],
    [lineOf('first', 'again'), /^line 2: custom_id: expected an id that no earlier row has, got "first"/],
    [JSON.stringify({ custom_id: 5, body: {} }), /^line 2: custom_id: expected a text/],
    [
      JSON.stringify({ custom_id: 'x', url: '/v1/nothing', body: {} }),
      /^line 2: url: expected one of .*got "\/v1\/nothing"/,
    ],
    [JSON.stringify({ custom_id: 'x', body: { input: 'a' } }), /^line 2: url: expected one of/],
    [JSON.stringify({ custom_id: 'x', method: 'GET', body: {} }), /^line 2: method: expected POST/],
    [JSON.stringify({ custom_id: 'x', body: 'text' }), /^line 2: body: expected an object/],
    [lineOf('x', 'y', { stream: true }), /^line 2: body.stream: expected false/],
  ])('%s is among the errors, and the others go on', async (line, message) => {
    const folder = newFolder();
    const output = path.join(folder, 'out.jsonl');
    const file = writeLines(folder, [lineOf('first', 'a'), line, lineOf('last', 'z')]);
    const summary = await batchOf(echo, file, { output }).done;
    expect(summary).toMatchObject({ rows: 3, completed: 2, failed: 1 });
    expect(
      readRows(output)
        .map((row) => row.custom_id)
        .toSorted(),
    ).toEqual(['first', 'last']);
    expect(readRows(path.join(folder, 'out.errors.jsonl'))).toEqual([
      expect.objectContaining({
        line: 2,
        response: null,
        error: expect.objectContaining({ code: 'INVALID_REQUEST', message: expect.stringMatching(message) }),
      }),
    ]);
  });

  it('that is no UTF-8 is one, too', async () => {
    const source = Readable.from([Buffer.from([0x22, 0xff, 0x22, 0x0a])], { objectMode: false });
    const [row] = await readAll(batchOf(echo, source));
    expect(row).toMatchObject({ line: 1, error: { message: 'line 1: expected UTF-8 text' } });
  });

  it('has its number where blank lines came before', async () => {
    const [row] = await readAll(batchOf(echo, Readable.from([Buffer.from('\n\n{')], { objectMode: false })));
    expect(row).toMatchObject({ line: 3, custom_id: null });
  });
});

describe('a request that fails', () => {
  const failing =
    (
      code: 'INVALID_REQUEST' | 'NETWORK_FAILED' | 'OVERLOADED' | 'BACKEND_FAILED',
      times: number,
    ): AnswerRow =>
    async (url, body, call) => {
      if (contentOf(body) === 'bad' && times-- > 0)
        throw new OnpolicyError(code, 'it failed', { retryAfterMs: 1 });
      return await echo(url, body, call);
    };
  const lines = [lineOf('a', 'good'), lineOf('b', 'bad'), lineOf('c', 'good')];

  it('is among the errors with its response and line', async () => {
    const rows = await readAll(batchOf(failing('INVALID_REQUEST', 1), lines));
    expect(rows.find((row) => row.custom_id === 'b')).toMatchObject({
      line: 2,
      response: { status_code: 400, body: { error: { code: 'INVALID_REQUEST', message: 'it failed' } } },
      error: null,
    });
  });

  it('is asked for again where that can help', async () => {
    for (const code of ['NETWORK_FAILED', 'BACKEND_FAILED'] as const)
      expect((await batchOf(failing(code, 3), lines).done).completed).toBe(3);
    expect((await batchOf(failing('OVERLOADED', 20), lines, { retries: 0 }).done).completed).toBe(3);
    expect((await batchOf(failing('BACKEND_FAILED', 2), lines, { retries: 1 }).done).failed).toBe(1);
  });

  it('ends the run if every row would fail like that; no row has failed', async () => {
    const output = path.join(newFolder(), 'out.jsonl');
    const run = batchOf(failing('NETWORK_FAILED', 99), lines, { output, retries: 1 });
    await expect(run.done).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
    const resumed = batchOf(echo, lines, { output, resume: true });
    expect(await resumed.done).toMatchObject({ rows: 3, completed: 3, failed: 0 });
  });

  it('ends the run with one more than may fail', async () => {
    const file = writeLines(newFolder(), ['x', 'y', 'z', ...rowsOf(50)]);
    await expect(batchOf(echo, file, { maxFailures: 2 }).done).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringMatching(/^3 rows have failed, and 2 may; the last one is line 3: /),
    });
    expect((await batchOf(echo, file, { maxFailures: 3 }).done).failed).toBe(3);
  });

  it('for its time is among the errors', async () => {
    const endless: AnswerRow = async (url, body, call) => {
      if (contentOf(body) === 'bad') await sleep(10_000, undefined, { signal: call.signal! });
      return await echo(url, body, call);
    };
    const rows = await readAll(batchOf(endless, lines, { timeoutMs: 20 }));
    expect(rows.find((row) => row.custom_id === 'b')).toMatchObject({
      response: { status_code: 408, body: { error: { code: 'TIMEOUT' } } },
    });
  });
});

describe('equal requests', () => {
  it.each([
    ['greedy ones are computed once', { temperature: 0 }, 1],
    ['those with a seed, too', { seed: 7 }, 1],
    ['sampled ones each for itself', {}, 50],
  ])('%s', async (_name, more, times) => {
    const answer = vi.fn(echo);
    const lines = Array.from({ length: 50 }, (_, i) => lineOf(`id-${i}`, 'same', more));
    const rows = await readAll(batchOf(answer, lines));
    expect(answer).toHaveBeenCalledTimes(times);
    expect(new Set(rows.map((row) => (row.response!.body as { id: string }).id)).size).toBe(50);
    expect(textsOf(rows)).toEqual(Array(50).fill('SAME'));
  });

  it('of one that failed are asked for themselves', async () => {
    let times = 0;
    const answer: AnswerRow = async (url, body, call) => {
      if (times++ === 0) throw new OnpolicyError('NO_ALLOWED_TOKEN', 'none');
      return await echo(url, body, call);
    };
    const lines = ['a', 'b', 'c'].map((id) => lineOf(id, 'same', { temperature: 0 }));
    expect(await batchOf(answer, lines).done).toMatchObject({ completed: 2, failed: 1 });
  });
});

describe('the order of requests', () => {
  it('brings those with the same beginning together', async () => {
    const asked: string[] = [];
    const answer: AnswerRow = async (url, body, call) => {
      asked.push((body['messages'] as { content: string }[])[0]!.content);
      return await echo(url, body, call);
    };
    const lines = Array.from({ length: 300 }, (_, i) => ({
      messages: [
        { role: 'system', content: `prefix ${i % 20}` },
        { role: 'user', content: `question ${i}` },
      ],
    }));
    await batchOf(answer, lines).done;
    const changes = asked.filter((prefix, i) => prefix !== asked[i - 1]).length;
    expect([asked.length, changes]).toEqual([300, 20]);
  });

  it('begins with long answers where beginnings are equal', async () => {
    const asked: number[] = [];
    const answer: AnswerRow = async (url, body, call) => {
      asked.push(body['max_tokens'] as number);
      return await echo(url, body, call);
    };
    const lines = [8, 512, 64, 2].map((max_tokens) => ({
      messages: [{ role: 'user', content: 'q' }],
      max_tokens,
    }));
    await batchOf(answer, lines, { concurrency: 1 }).done;
    expect(asked).toEqual([512, 64, 8, 2]);
  });
});

describe('seeds', () => {
  it('are derived from the run and the id, and stay where a row has one', async () => {
    const seedsOf = async (seed: number | string, more = {}): Promise<unknown[]> => {
      const rows = await readAll(
        batchOf(
          echo,
          ['a', 'b'].map((id) => lineOf(id, id, more)),
          { seed },
        ),
      );
      return rows
        .toSorted((x, y) => (x.custom_id! < y.custom_id! ? -1 : 1))
        .map(({ response }) => (response!.body as { seed: unknown }).seed);
    };
    const first = await seedsOf(1);
    expect(new Set([...first, ...(await seedsOf(2))]).size).toBe(4);
    expect(await seedsOf(1)).toEqual(first);
    expect(await seedsOf(1, { seed: 5 })).toEqual([5, 5]);
  });
});

describe('a reader', () => {
  it('holds the run back, and ends it when it leaves', async () => {
    const answer = vi.fn(echo);
    let read = 0;
    for await (const row of batchOf(answer, rowsOf(20_000), { concurrency: 4 })) {
      expect(row.error).toBeNull();
      if (++read === 3) break;
    }
    await sleep(20);
    expect(answer.mock.calls.length).toBeLessThan(6000);
  });

  it('holds back rows that need no answer, too', async () => {
    let read = 0;
    for await (const row of batchOf(echo, Array(5000).fill('no json'))) {
      expect(row.line).toBe(++read);
      if (read % 1000 === 0) await sleep(5);
    }
    expect(read).toBe(5000);
  });

  it('hears of a failure', async () => {
    const run = batchOf(echo, ['x', 'y'], { maxFailures: 0 });
    await expect(readAll(run)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(run.done).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('comes once', async () => {
    const run = batchOf(echo, rowsOf(3));
    expect((await readAll(run)).length).toBe(3);
    expect((await run.done).completed).toBe(3);
    expect(() => run[Symbol.asyncIterator]()).toThrow(/read once/);
  });
});

describe('numbers', () => {
  it('are told while it runs, and at its end', async () => {
    const told: BatchProgress[] = [];
    const slow: AnswerRow = async (url, body, call) => {
      await sleep(300);
      return await echo(url, body, call);
    };
    const file = writeLines(newFolder(), ['bad', ...rowsOf(8)]);
    await batchOf(slow, file, { concurrency: 2, onProgress: (progress) => told.push(progress) }).done;
    expect(told.length).toBeGreaterThanOrEqual(3);
    expect(told.at(-1)).toMatchObject({ rows: 9, failed: 1, running: 0, fraction: 1, secondsLeft: 0 });
    expect(told.at(-1)!.cachedShare).toBeCloseTo(1 / 3);
    const middle = told[1]!;
    expect(middle.fraction).toBeGreaterThan(0);
    expect(middle.fraction).toBeLessThan(1);
    expect(middle.secondsLeft).toBeGreaterThan(0);
  });

  it('of rows in flight are as set, and 128 by default', async () => {
    let running = 0;
    let most = 0;
    const answer: AnswerRow = async (url, body, call) => {
      most = Math.max(most, ++running);
      await sleep(20);
      running -= 1;
      return await echo(url, body, call);
    };
    await batchOf(answer, rowsOf(500)).done;
    expect(most).toBe(128);
    most = 0;
    await batchOf(answer, rowsOf(100), { concurrency: 5 }).done;
    expect(most).toBe(5);
  });
});

describe('options', () => {
  it.each([
    [{ resume: true }, /^resume: expected an output/],
    [{ errors: 'e.jsonl' }, /^errors: expected an output/],
    [{ output: 'a.jsonl', errors: './a.jsonl' }, /^errors: expected another file/],
  ])('%o are refused', async (options, message) => {
    await expect(batchOf(echo, rowsOf(1), options).done).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringMatching(message),
    });
  });

  it.each([{ outputs: 'x' }, { concurrency: 0 }, { order: 'any' }, { maxFailures: -1 }, { toRequest: 5 }])(
    '%o are refused at once',
    (options) => {
      expect(() => batchOf(echo, [], options as never)).toThrow(OnpolicyError);
    },
  );
});
