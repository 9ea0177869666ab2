/** Several tokens of one service -> each one's stored responses, cached prefixes and budget of tokens are its own. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ChatCompletionRequest } from '../../../src/protocol/index.ts';
import type { CallOptions } from '../../../src/protocol/service/service.ts';
import { createHandler, type Handler, type HandlerOptions } from '../../../src/serve/http/index.ts';
import { findEndpoints } from '../../../src/serve/http/server/routes.ts';
import { tokenNeed } from '../../../src/serve/http/server/token-need.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';

const TOKENS = [
  { token: 'one', scopes: ['complete' as const] },
  { token: 'two', scopes: ['complete' as const] },
  { token: 'all' },
];
const MESSAGES = [{ role: 'user', content: 'x' }];
const PROMPT_TOKENS = 10;

/** A service whose answers use the tokens that they may, after a while. */
function open(options: HandlerOptions, waitMs = 0) {
  const memory = createMemoryService();
  const calls: CallOptions[] = [];
  let used = 0;
  const createCompletion = async (request: ChatCompletionRequest, call: CallOptions) => {
    calls.push(call);
    const completion_tokens = request.max_completion_tokens ?? request.max_tokens ?? 6;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    used += PROMPT_TOKENS + completion_tokens;
    const answer = await memory.createCompletion({ messages: request.messages });
    const usage = {
      prompt_tokens: PROMPT_TOKENS,
      completion_tokens,
      total_tokens: PROMPT_TOKENS + completion_tokens,
    };
    return { ...answer, usage };
  };
  const service = Object.assign(Object.create(memory), { createCompletion }) as typeof memory;
  return { handler: createHandler(service, options), calls, used: () => used };
}

async function ask(handler: Handler, token: string, method: string, at: string, body?: object) {
  const response = await handler(
    new Request(`http://localhost${at}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body ? { body: body instanceof FormData ? body : JSON.stringify(body) } : {}),
    }),
  );
  const text = await response.text();
  return { status: response.status, text, value: JSON.parse(text) as { id: string; status: string } };
}

describe('a stored response', () => {
  const { handler } = open({ tokens: TOKENS });
  const create = (token: string, body: object) =>
    ask(handler, token, 'POST', '/v1/responses', { input: 'my secret', ...body });

  it('is there for its token and for admin, and for no other one', async () => {
    const { id } = (await create('one', {})).value;
    const uses = (token: string): Promise<number[]> =>
      Promise.all([
        ask(handler, token, 'GET', `/v1/responses/${id}`).then(({ status }) => status),
        ask(handler, token, 'GET', `/v1/responses/${id}/input_items`).then(({ status }) => status),
        ask(handler, token, 'GET', `/v1/responses/${id}?stream=true`).then(
          ({ status }) => status,
          () => 200, // events are no JSON
        ),
        create(token, { previous_response_id: id }).then(({ status }) => status),
      ]);
    expect(await uses('two')).toEqual([404, 404, 404, 404]);
    expect((await ask(handler, 'two', 'DELETE', `/v1/responses/${id}`)).status).toBe(404);
    const unknown = (await ask(handler, 'two', 'GET', `/v1/responses/x${id.slice(1)}`)).text;
    const foreign = (await ask(handler, 'two', 'GET', `/v1/responses/${id}`)).text;
    expect(foreign.replaceAll(id, '')).toBe(unknown.replaceAll(`x${id.slice(1)}`, ''));
    expect(await uses('one')).toEqual([200, 200, 200, 200]);
    expect(await uses('all')).toEqual([200, 200, 200, 200]);
    expect((await ask(handler, 'one', 'DELETE', `/v1/responses/${id}`)).status).toBe(200);
  });

  it('has items that only its token refers to, also where another one has items with these ids', async () => {
    const item = { id: 'msg_1', type: 'message', role: 'user', content: 'of one' };
    await create('one', { input: [item] });
    const refer = (token: string) =>
      create(token, { input: [{ type: 'item_reference', id: 'msg_1' }] }).then(({ status }) => status);
    expect(await refer('two')).toBe(404);
    await create('two', { input: [{ ...item, content: 'of two' }] });
    expect(await refer('one')).toBe(200);
  });
});

describe('cached prefixes', () => {
  it.each<[string, HandlerOptions, boolean]>([
    ['are apart by token', { tokens: TOKENS }, true],
    ['are shared where the server says so', { tokens: TOKENS, sharePrefixCache: true }, false],
    ['are shared without tokens', {}, false],
  ])('%s', async (_, options, isApart) => {
    const { handler, calls } = open(options);
    for (const token of ['one', 'one', 'two'])
      expect((await ask(handler, token, 'POST', '/v1/chat/completions', { messages: MESSAGES })).status).toBe(
        200,
      );
    const [first, second, third] = calls.map(({ cacheSalt }) => cacheSalt);
    expect([first === second, first === third, first !== undefined]).toEqual([true, !isApart, isApart]);
  });
});

describe('tokens of a minute', () => {
  const tokens = [{ token: 'one', scopes: ['complete' as const], tokensPerMinute: 200 }];
  const chat = { messages: MESSAGES, max_tokens: 10 };

  it('are not passed by requests at once, and what was not used is given back', async () => {
    const { handler, used } = open({ tokens }, 20);
    const send = (body: object) => ask(handler, 'one', 'POST', '/v1/chat/completions', body);
    const answers = await Promise.all(Array.from({ length: 200 }, () => send(chat)));
    const counts = [200, 429].map((code) => answers.filter(({ status }) => status === code).length);
    expect(counts[0]! + counts[1]!).toBe(200);
    expect(counts[0]!).toBeGreaterThan(5);
    // The prompt is only known at the end: each admitted request may be wrong by that much.
    expect(used()).toBeLessThanOrEqual(200 + counts[0]! * PROMPT_TOKENS);
  });

  it('are those of an answer without a limit while it runs', async () => {
    const { handler } = open({ tokens }, 20);
    const send = (body: object) => ask(handler, 'one', 'POST', '/v1/chat/completions', body);
    const answers = await Promise.all([1, 2, 3].map(() => send({ messages: MESSAGES })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429, 429]);
    expect((await send(chat)).status).toBe(200);
  });

  it('are used by batches as they come, which leave half of them to requests', async () => {
    const batchFolder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-minute-'));
    afterAll(() => fs.rmSync(batchFolder, { recursive: true }));
    const { handler, used } = open({ tokens, batchFolder });
    const form = new FormData();
    const line = (i: number) => JSON.stringify({ custom_id: `row ${i}`, body: chat });
    form.append('purpose', 'batch');
    form.append('file', new Blob([Array.from({ length: 50 }, (_, i) => line(i)).join('\n')]), 'rows.jsonl');
    const { id } = (await ask(handler, 'one', 'POST', '/v1/files', form)).value;
    const begun = performance.now();
    const batch = await ask(handler, 'one', 'POST', '/v1/batches', {
      input_file_id: id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    });
    await expect.poll(used).toBeGreaterThan(50);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const refilled = ((performance.now() - begun) * 200) / 60_000;
    expect(used()).toBeLessThanOrEqual(100 + refilled + 5 * PROMPT_TOKENS);
    expect((await ask(handler, 'one', 'POST', '/v1/chat/completions', chat)).status).toBe(200);
    await ask(handler, 'one', 'POST', `/v1/batches/${batch.value.id}/cancel`);
    const status = async () =>
      (await ask(handler, 'one', 'GET', `/v1/batches/${batch.value.id}`)).value.status;
    await expect.poll(status).toBe('cancelled');
  });
});

it.each<[string, object, number]>([
  [
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: 'x'.repeat(40) }], max_tokens: 5 },
    4 + 1 + 10 + 5,
  ],
  ['/v1/chat/completions', { messages: [], max_completion_tokens: 7, n: 3 }, 21],
  ['/v1/completions', { prompt: [1, 2, 3], max_tokens: 5 }, 8],
  ['/v1/completions', { prompt: ['', ''], max_tokens: 5, best_of: 2 }, 8 + 20],
  ['/v1/responses', { input: '', max_output_tokens: 9 }, 9],
  ['/api/generate', { prompt: '', options: { num_predict: 4 } }, 4],
  ['/api/generate', { prompt: '', options: { num_predict: -1 } }, 100],
  ['/v1/messages', { messages: [], max_tokens: 1000 }, 100],
  ['/v1/chat/completions', { messages: [] }, 100],
  ['/v1/embeddings', { input: ['x'.repeat(8)] }, 6],
  ['/tokenize', { prompt: 'x'.repeat(8) }, 2],
])('%s needs for %j %i tokens at most', (at, body, most) => {
  expect(tokenNeed(findEndpoints(at).endpoints[0]!, body, 100)).toBe(most);
});
