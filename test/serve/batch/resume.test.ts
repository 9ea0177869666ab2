/** A run that ended before its last row, and files that changed meanwhile -> the rest of it, or an error that says what changed. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { BatchOptions, BatchRow } from '../../../src/protocol/index.ts';
import type { AnswerRow } from '../../../src/serve/batch/index.ts';
import { smallDisk } from '../../fakes/small-disk.ts';
import { batchOf, echo, lineOf, newFolder, readRows, writeLines } from './fake-rows.ts';

const LINES = Array.from({ length: 200 }, (_, i) =>
  i % 50 === 7 ? `faulty ${i}` : lineOf(`id-${i}`, `text ${i}`),
);

const slow: AnswerRow = async (url, body, call) => {
  await sleep(Math.random() * 4, undefined, { signal: call.signal! });
  return await echo(url, body, call);
};

/** A run that is ended midway. */
async function begin(lines: readonly string[] = LINES, options: BatchOptions = {}) {
  const folder = newFolder();
  const [input, output] = [writeLines(folder, lines), path.join(folder, 'out.jsonl')];
  const stop = new AbortController();
  let answered = 0;
  const answer: AnswerRow = async (url, body, call) => {
    if (++answered === 40) stop.abort();
    return await slow(url, body, call);
  };
  const run = batchOf(answer, input, { output, signal: stop.signal, concurrency: 4, ...options });
  await expect(run.done).rejects.toMatchObject({ code: 'ABORTED' });
  const journal = path.join(`${output}.journal`, 'rows.jsonl');
  return { folder, input, output, errors: path.join(folder, 'out.errors.jsonl'), journal };
}

const bySize = (a: BatchRow, b: BatchRow): number => (a.id < b.id ? -1 : 1);
const allRows = ({ output, errors }: { output: string; errors: string }): BatchRow[] =>
  [...readRows(output), ...readRows(errors)].toSorted(bySize);

async function uninterrupted(lines: readonly string[] = LINES): Promise<BatchRow[]> {
  const rows: BatchRow[] = [];
  for await (const row of batchOf(echo, lines.join('\n').split('\n'))) rows.push(row);
  return rows.toSorted(bySize);
}

describe('a run that was ended', () => {
  it.each(['completion', 'input'] as const)(
    'goes on, and has the lines of one that was not (%s)',
    async (order) => {
      const files = await begin(LINES, { order, window: 20 });
      const before = allRows(files).length;
      const answer = vi.fn(echo);
      const { input, output } = files;
      const summary = await batchOf(answer, input, { output, resume: true, order }).done;
      expect(before).toBeGreaterThan(0);
      expect(summary).toMatchObject({ rows: 200, completed: 196, failed: 4, resumed: before });
      expect(answer.mock.calls.length).toBeLessThan(200 - before + 1);
      expect(allRows(files)).toEqual(await uninterrupted());
      const again = vi.fn(echo);
      expect((await batchOf(again, input, { output, resume: true, order }).done).resumed).toBe(200);
      expect(again).not.toHaveBeenCalled();
    },
  );

  it('goes on after any cut of its files that a crash can leave', async () => {
    const files = await begin();
    const { input, output, journal } = files;
    const whole = fs.readFileSync(journal);
    const wholeOutput = fs.readFileSync(output);
    const header = whole.indexOf('\n') + 1;
    for (let i = 0; i < 25; i++) {
      fs.writeFileSync(
        journal,
        whole.subarray(0, header + Math.floor(Math.random() * (whole.length - header))),
      );
      fs.writeFileSync(output, Buffer.concat([wholeOutput, Buffer.from('{"id":"half a li')]));
      await batchOf(echo, input, { output, resume: true }).done;
      expect(allRows(files)).toEqual(await uninterrupted());
    }
  });

  it('is not begun anew over its output', async () => {
    const { input, output } = await begin();
    await expect(batchOf(echo, input, { output }).done).rejects.toMatchObject({
      code: 'CONFLICT',
      param: 'output',
      message: expect.stringContaining('exists; resume continues it'),
    });
  });

  it('is begun anew where its output was removed', async () => {
    const { input, output, errors } = await begin();
    fs.rmSync(output);
    fs.rmSync(errors, { force: true });
    expect(await batchOf(echo, input, { output }).done).toMatchObject({ rows: 200, resumed: 0 });
  });
});

describe('what has changed is said', () => {
  it.each<[string, BatchOptions, RegExp]>([
    ['the seed', { seed: 5 }, /^resume: seed has changed since the run began: it was 0 and is 5$/],
    ['the model', { model: 'other' }, /^resume: model has changed .* it was "fake" and is "other"$/],
    ['the order', { order: 'input' }, /^resume: order has changed/],
  ])('%s', async (_name, options, message) => {
    const { input, output } = await begin();
    const run = batchOf(echo, input, { output, resume: true, ...options });
    await expect(run.done).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(message),
    });
  });

  it('the input: its length, or a line', async () => {
    const files = await begin(LINES, { concurrency: 1, window: 1 });
    const { folder, output } = files;
    const longer = writeLines(folder, [...LINES, 'more'], 'longer.jsonl');
    await expect(batchOf(echo, longer, { output, resume: true }).done).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('the input has changed'),
    });
    const edited = writeLines(
      folder,
      [LINES[0]!.replace('text 0', 'TEXT 0'), ...LINES.slice(1)],
      'edited.jsonl',
    );
    await expect(batchOf(echo, edited, { output, resume: true }).done).rejects.toMatchObject({
      message: 'resume: the input has changed since the run began: line 1 is another one',
    });
    await expect(batchOf(echo, LINES.slice(0, 1), { output, resume: true }).done).rejects.toThrow(
      'the input has changed',
    );
    await batchOf(echo, files.input, { output, resume: true }).done; // nothing is lost by any of it
    expect(allRows(files)).toEqual(await uninterrupted());
  });

  it('an output that is not of this run', async () => {
    const { input, output, journal } = await begin();
    const wrong = { code: 'CONFLICT', param: 'output' };
    fs.writeFileSync(output, '{}\n');
    await expect(batchOf(echo, input, { output, resume: true }).done).rejects.toMatchObject({
      ...wrong,
      message: expect.stringContaining('is not the file of this run'),
    });
    fs.rmSync(path.dirname(journal), { recursive: true });
    await expect(batchOf(echo, input, { output, resume: true }).done).rejects.toMatchObject({
      ...wrong,
      message: expect.stringContaining('its journal is missing'),
    });
    expect(fs.readFileSync(output, 'utf8')).toBe('{}\n');
  });

  it('another process that writes', async () => {
    const folder = newFolder();
    const [input, output] = [writeLines(folder, LINES), path.join(folder, 'out.jsonl')];
    let begin!: () => void;
    let end!: () => void;
    const began = new Promise<void>((resolve) => (begin = resolve));
    const ended = new Promise<void>((resolve) => (end = resolve));
    const held: AnswerRow = async (url, body, call) => {
      begin();
      await ended;
      return await echo(url, body, call);
    };
    const first = batchOf(held, input, { output, concurrency: 1 }).done;
    await began;
    await expect(batchOf(echo, input, { output, resume: true }).done).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining(`process ${process.pid}`),
    });
    end();
    await first;
  });
});

describe('a disk', () => {
  const disk = smallDisk(256);
  afterAll(() => disk.unmount());

  it.skipIf(!disk.folder)(
    'that is full in the middle ends the run, which goes on when there is room',
    async () => {
      const input = writeLines(
        newFolder(),
        Array.from({ length: 3000 }, (_, i) => lineOf(`id-${i}`, `text ${i}`)),
      );
      const output = path.join(disk.folder!, 'out.jsonl');
      await expect(batchOf(echo, input, { output }).done).rejects.toMatchObject({
        code: 'STORE_FAILED',
        message: expect.stringMatching(/^cannot write .*out\.jsonl.*: the disk is full$/),
      });
      // the same files on a disk with room
      const folder = newFolder();
      fs.cpSync(disk.folder!, folder, { recursive: true });
      const moved = path.join(folder, 'out.jsonl');
      const summary = await batchOf(echo, input, { output: moved, resume: true }).done;
      expect(summary.resumed).toBeGreaterThan(0);
      const rows = readRows(moved);
      expect([rows.length, new Set(rows.map((row) => row.custom_id)).size]).toEqual([3000, 3000]);
    },
  );

  it('that cannot be written is named', async () => {
    for (const output of ['/proc/out.jsonl', path.join(writeLines(newFolder(), []), 'out.jsonl')])
      await expect(batchOf(echo, LINES, { output }).done).rejects.toMatchObject({
        code: 'STORE_FAILED',
        message: expect.stringContaining(output),
      });
  });
});
