/** Batches of a folder -> their records, through restarts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type AnswerRow, type BatchService, ROWS_AT_ONCE } from '../../../src/serve/batch/index.ts';
import { BatchStore } from '../../../src/serve/batch/store/index.ts';
import { contentOf, echo, lineOf, newFolder } from './fake-rows.ts';

const ASKER = { owner: 'one', isAdmin: false };
const CLIENT = { owner: 'one', scopes: ['complete'] as const };

/** Puts a file of rows into the store. */
async function upload(store: BatchStore, count: number): Promise<string> {
  const lines = Array.from({ length: count }, (_, i) => lineOf(`id-${i}`, `text ${i}`)).join('\n');
  const id = await store.files.receive(bytesOf([lines]), 1e6);
  await store.files.publish(id, { owner: 'one', filename: 'rows.jsonl', purpose: 'batch' });
  return id;
}

function serviceOf(answer: AnswerRow): BatchService {
  return { answer, defaultModel: null, concurrency: ROWS_AT_ONCE };
}

async function* bytesOf(texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

it('a batch is answered once, however many resume it at once', async () => {
  const folder = newFolder();
  const first = await BatchStore.open(folder);
  const input_file_id = await upload(first, 40);
  const endpoint = '/v1/chat/completions';
  const never: AnswerRow = async (_url, _body, { signal }) =>
    await sleep(1e6, undefined as never, { signal: signal! });
  const { id } = await first.batches.create({ input_file_id, endpoint }, CLIENT, ASKER, () =>
    serviceOf(never),
  );
  await first.close();

  const second = await BatchStore.open(folder);
  expect(await BatchStore.open(folder)).toBe(second);
  const asked: string[] = [];
  const answer: AnswerRow = async (url, body, call) => {
    asked.push(contentOf(body));
    return await echo(url, body, call);
  };
  await Promise.all([1, 2, 3].map(() => second.batches.resume(() => serviceOf(answer))));
  await expect.poll(async () => (await second.batches.retrieve(id, ASKER)).status).toBe('completed');
  await second.batches.resume(() => serviceOf(answer));
  await sleep(20);
  expect(asked.length).toBe(40);
  const batch = await second.batches.retrieve(id, ASKER);
  expect(batch).toMatchObject({
    status: 'completed',
    errors: null,
    request_counts: { total: 40, failed: 0 },
  });
  await expect(second.batches.retrieve(id, { owner: 'two', isAdmin: false })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
  await second.close();
});
