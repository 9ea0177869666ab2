/** `onpolicy batch` as people run it: killed at any moment and resumed, interrupted, beside a server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BatchRow } from '../../src/protocol/index.ts';
import { lineOf, readRows, writeLines } from '../serve/batch/fake-rows.ts';
import { ROOT, runNode } from './program.ts';

const CLI = path.join(ROOT, 'dist', 'apps', 'cli', 'index.js');
const KILLS = 50;
const ROWS = 600;
const FAULTY = ROWS / 100;

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-batch-e2e-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const config = (more: object) => {
  const file = path.join(folder, 'config.json');
  fs.writeFileSync(file, JSON.stringify({ runtime: { threads: 1, ...more } }));
  return file;
};

/** Rows of several kinds: shared prefixes, sampled and greedy ones, some faulty, some equal. */
function lines(): string[] {
  return Array.from({ length: ROWS }, (_, i) => {
    if (i % 100 === 50) return `{"custom_id":"faulty-${i}", no json`;
    const more = { max_tokens: 4 + (i % 30), ...(i % 3 === 0 ? { temperature: 0 } : {}) };
    return lineOf(
      `id-${i}`,
      i % 10 === 3 ? 'Tell me a story.' : `Tell me a story about number ${i % 90}.`,
      more,
    );
  });
}

/** A line without what says when it was computed and what was cached then. */
function content({ response, ...row }: BatchRow): string {
  const { created: _, usage, ...body } = (response?.body ?? {}) as Record<string, unknown>;
  const { prompt_tokens, completion_tokens } = (usage ?? {}) as Record<string, unknown>;
  return JSON.stringify({ ...row, body, prompt_tokens, completion_tokens });
}

const sizeOf = (file: string): number => (fs.existsSync(file) ? fs.statSync(file).size : 0);

const errorsOf = (output: string): string => output.replace('.jsonl', '.errors.jsonl');

const contents = (output: string): string[] =>
  [...readRows(output), ...readRows(errorsOf(output))].map(content).toSorted();

function start(words: readonly string[]) {
  return spawn(process.execPath, [CLI, 'batch', ...words, '--home', path.join(folder, 'home')], {
    stdio: 'pipe',
  });
}

describe('a batch', () => {
  it(`killed ${KILLS} times at random moments has each row once, and the lines of one that was not killed`, async () => {
    const input = writeLines(folder, lines());
    const words = ['--config', config({ deterministic: true })];
    const whole = path.join(folder, 'whole.jsonl');
    const { code, stderr } = await runNode([CLI, 'batch', input, whole, ...words]);
    expect([code, stderr]).toEqual([0, '']);
    const expected = contents(whole);
    expect(expected.length).toBe(ROWS);
    const output = path.join(folder, 'killed.jsonl');
    let amidRows = 0;
    for (let kills = 0; kills < KILLS; ) {
      const child = start([input, output, '--resume', '--concurrency', '1', ...words]);
      const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
      const before = sizeOf(output);
      // one in five while it starts, the others while it answers
      if (kills % 5 === 0) await sleep(Math.random() * 1000);
      else while (sizeOf(output) === before && !hasEnded()) await sleep(2);
      await sleep(Math.random() * 30);
      child.kill('SIGKILL');
      if (!hasEnded()) await once(child, 'exit');
      if (child.exitCode !== null) {
        // it came to its end before: what 50 kills left is compared below, what fewer left here
        expect(contents(output)).toEqual(expected);
        fs.rmSync(output);
        fs.rmSync(`${output}.journal`, { recursive: true });
        fs.rmSync(errorsOf(output));
        continue;
      }
      kills += 1;
      if (sizeOf(output) !== before) amidRows += 1;
    }
    expect(amidRows).toBeGreaterThan(20);
    const last = await runNode([CLI, 'batch', input, output, '--resume', ...words]);
    expect([last.code, last.stderr]).toEqual([0, '']);
    expect(contents(output)).toEqual(expected);
  }, 600_000);

  it('that is interrupted says how to go on, and does', async () => {
    const input = writeLines(folder, lines(), 'interrupted-in.jsonl');
    const output = path.join(folder, 'interrupted.jsonl');
    let child: ReturnType<typeof start>;
    let errors: string;
    let tries = 0;
    do {
      // One that a busy machine lets come to its end before it is interrupted begins again.
      for (const file of [output, `${output}.journal`, errorsOf(output)])
        fs.rmSync(file, { recursive: true, force: true });
      child = start([input, output, '--concurrency', '1', '--json']);
      errors = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
      while (sizeOf(output) === 0 && child.exitCode === null) await sleep(1);
      child.kill('SIGINT');
      await once(child, 'close');
    } while (child.exitCode !== 1 && tries++ < 5);
    expect(child.exitCode).toBe(1);
    const told = errors
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(told.at(-1)).toEqual({
      error: { code: 'ABORTED', message: 'interrupted; the same command with --resume continues' },
    });
    expect(told.at(-2).progress).toMatchObject({ running: 0, failed: expect.any(Number) });
    const { code, stdout } = await runNode([CLI, 'batch', input, output, '--resume', '--json']);
    expect(code).toBe(0);
    const { resumed, ...summary } = JSON.parse(stdout);
    expect(summary).toMatchObject({ rows: ROWS, completed: ROWS - FAULTY, failed: FAULTY });
    expect(resumed).toBeGreaterThan(0);
    expect(contents(output).length).toBe(ROWS);
  });
});
