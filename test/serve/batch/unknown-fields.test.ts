/** Rows with fields that do not exist -> errors in process, and over HTTP errors or names. */
import { expect, it } from 'vitest';
import { createMemoryService } from '../../fakes/memory-service.ts';
import { ask, openHandler } from '../http/exchange.ts';
import { newFolder } from './fake-rows.ts';

const messages = [{ role: 'user', content: 'Hi' }];
const line = (body: object, more: object = {}) => ({
  custom_id: 'a',
  method: 'POST',
  url: '/v1/chat/completions',
  body,
  ...more,
});

it.each<[string, object, string]>([
  ['a misspelt field', line({ messages, response_formt: { type: 'json_object' } }), 'response_formt'],
  ['an unknown field', line({ messages, mystery: 1 }), 'mystery'],
  [
    'an unknown field of a message',
    line({ messages: [{ ...messages[0], flavour: 1 }] }),
    'messages.0.flavour',
  ],
  ['a bare request', { messages, temprature: 0 }, 'temprature'],
  ['a field beside the body', line({ messages }, { metod: 'POST' }), 'metod'],
  [
    'a request of messages',
    { url: '/v1/messages', body: { messages, max_tokens: 5, mystery: 1 } },
    'mystery',
  ],
  ['a request of responses', { url: '/v1/responses', body: { input: 'x', mystery: 1 } }, 'mystery'],
])('%s is an error in process', async (_, row, param) => {
  const rows = [];
  for await (const answered of createMemoryService().batch([row])) rows.push(answered);
  const [answered] = rows;
  const body = answered!.response?.body as { error?: { message: string; param: string } } | undefined;
  expect(answered!.response?.status_code ?? 400).toBe(400);
  expect(body?.error?.message ?? answered!.error?.message).toContain(param);
});

it.each(['chat', 'messages', 'responses'])('what batches add to a row is a field of it: %s', async (wire) => {
  const row = {
    chat: line({ messages }),
    messages: { url: '/v1/messages', body: { messages, max_tokens: 5 } },
    responses: { url: '/v1/responses', body: { input: 'x' } },
  }[wire];
  for await (const { response } of createMemoryService().batch([row]))
    expect(response, JSON.stringify(response)).toMatchObject({ status_code: 200 });
});

it.each(['ignore', 'refuse'] as const)('over HTTP where unknown fields are %sd', async (unknownFields) => {
  const { handler } = openHandler({ batchFolder: newFolder(), unknownFields });
  const form = new FormData();
  const bodies = [{ messages, mystery: 1 }, { messages, response_formt: {} }, { messages }];
  const text = bodies.map((body, i) => JSON.stringify({ ...line(body), custom_id: `${i}` })).join('\n');
  form.append('purpose', 'batch');
  form.append('file', new Blob([text]), 'rows.jsonl');
  const sent = await handler(new Request('http://localhost/v1/files', { method: 'POST', body: form }));
  const { id: input_file_id } = (await sent.json()) as { id: string };
  const body = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' };
  const { id } = (await ask(handler, 'POST', '/v1/batches', { body })).body as { id: string };
  type Batch = { status: string; output_file_id: string; error_file_id: string };
  const batch = async () => (await ask(handler, 'GET', `/v1/batches/${id}`)).body as Batch;
  await expect.poll(async () => (await batch()).status, { timeout: 10_000 }).toBe('completed');
  const { output_file_id, error_file_id } = await batch();
  const rowsOf = async (file: string) =>
    ((await ask(handler, 'GET', `/v1/files/${file}/content`)).body as string)
      .trim()
      .split('\n')
      .map((row) => JSON.parse(row) as { custom_id: string; response: { ignored_fields?: string[] } });
  const named = (await rowsOf(output_file_id)).map(({ custom_id, response }) => [
    custom_id,
    response.ignored_fields,
  ]);
  const failed = (await rowsOf(error_file_id)).map(({ custom_id }) => custom_id);
  expect(named.sort()).toEqual(
    unknownFields === 'refuse'
      ? [['2', undefined]]
      : [
          ['0', ['mystery']],
          ['2', undefined],
        ],
  );
  expect(failed.sort()).toEqual(unknownFields === 'refuse' ? ['0', '1'] : ['1']);
});
