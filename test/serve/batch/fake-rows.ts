/** Rows, answers and files for tests of batches. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { BatchOptions, BatchRow, BatchSource } from '../../../src/protocol/index.ts';
import { type AnswerRow, createBatch, ROWS_AT_ONCE } from '../../../src/serve/batch/index.ts';

/** An empty folder of the test that runs. */
export function newFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-batch-'));
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A line of OpenAI's batch format. */
export function lineOf(customId: string, content: string, more: object = {}): string {
  const body = { messages: [{ role: 'user', content }], ...more };
  return JSON.stringify({ custom_id: customId, method: 'POST', url: '/v1/chat/completions', body });
}

/** Writes lines to a file of the folder. */
export function writeLines(folder: string, lines: readonly string[], name = 'in.jsonl'): string {
  const file = path.join(folder, name);
  fs.writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  return file;
}

/** The lines of a file as values; none if there is no file. */
export function readRows(file: string): BatchRow[] {
  if (!fs.existsSync(file)) return [];
  const text = fs.readFileSync(file, 'utf8');
  if (text !== '' && !text.endsWith('\n')) throw new Error(`${file} ends within a line`);
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as BatchRow);
}

/** Returns the question of a request. */
export function contentOf(body: Readonly<Record<string, unknown>>): string {
  return (body['messages'] as { content: string }[]).at(-1)!.content;
}

/** Answers with the question, in capitals, and its seed. */
export const echo: AnswerRow = async (_url, body, { traceId }) => ({
  id: `chatcmpl-${traceId}`,
  text: contentOf(body).toUpperCase(),
  seed: body['seed'] ?? null,
  usage: { prompt_tokens: 3, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1 } },
});

/** Makes a batch of a function that answers. */
export function batchOf(answer: AnswerRow, source: BatchSource, options?: BatchOptions) {
  return createBatch({ answer, defaultModel: 'fake', concurrency: ROWS_AT_ONCE }, source, options);
}
