/** How often a request is checked on its way through this process: once only. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCompletionRequest, LogRequest, TrainingJobRequest } from '../../../src/protocol/index.ts';
import type { Service } from '../../../src/protocol/service/service.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect } from '../../../src/serve/http/client/connect.ts';
import { createPool } from '../../../src/serve/http/client/pool.ts';
import { createHandler, type Handler } from '../../../src/serve/http/server/handler.ts';
import { EMBEDDED } from '../../answer/models.ts';

const counts = vi.hoisted(() => new Map<string, number>());

vi.mock('../../../src/protocol/schema-check.ts', async (original) => {
  const checks = await original<{ schemaErrors(name: string, input: unknown): unknown }>();
  return {
    ...checks,
    schemaErrors(name: string, input: unknown) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return checks.schemaErrors(name, input);
    },
  };
});

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-checked-'));
let runtime: Runtime;
let other: Runtime;
let modelId: string;
beforeAll(async () => {
  runtime = await createRuntime({ home, gpu: false, threads: 1 });
  other = await createRuntime({ home, gpu: false, threads: 1, models: { other: EMBEDDED } });
  modelId = (await runtime.models.create({ base_model: 'onpolicy-tiny' })).id;
});
afterAll(async () => {
  await runtime.close();
  await other.close();
  fs.rmSync(home, { recursive: true });
});
beforeEach(() => counts.clear());

const chat = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1, stream: false } as const;
const groups = [{ trajectories: [{ reward: 1, messages_and_choices: [{ role: 'user', content: 'Hi' }] }] }];

/** A client of the handler whose requests have unknown fields, as other clients' do. */
function clientOf(handler: Handler): Service {
  const fetch = (async (url: string, init: RequestInit) => {
    const body = init.body === undefined ? {} : { body: withUnknown(String(init.body)) };
    return await handler(new Request(url, { ...init, ...body }));
  }) as typeof globalThis.fetch;
  return connect({ baseUrl: 'http://127.0.0.1', fetch, pollMs: 1 });
}

function withUnknown(body: string): string {
  return JSON.stringify({ ...JSON.parse(body), from_elsewhere: 1 });
}

type Way = readonly [way: string, service: () => Service, checks: number];
const handled = (): Service => clientOf(createHandler(runtime));
const ways: readonly Way[] = [
  ['in process', () => runtime, 1],
  ['a client and a handler', handled, 2],
  ['a pool', () => createPool([runtime]), 1],
  ['a pool behind a handler', () => clientOf(createHandler(createPool([runtime]))), 2],
  ['a client in a pool', () => createPool([handled()]), 2],
];

describe('a completion request', () => {
  it.each(ways)('through %s', async (_, service, checks) => {
    expect((await service().createCompletion(chat)).choices).toHaveLength(1);
    expect(counts.get('ChatCompletionRequest')).toBe(checks);
  });

  it('is checked once for all members of a pool', async () => {
    const pool = createPool([runtime, other], { retryMs: 0 });
    for (let i = 0; i < 2; i++) await pool.createCompletion({ ...chat, model: 'other' }); // both members begin once
    expect(counts.get('ChatCompletionRequest')).toBe(2);
  });

  it('is checked again when someone wraps or replaces the method that answers it', async () => {
    const createCompletion = (request: ChatCompletionRequest) => runtime.createCompletion(request);
    const wrapped = { createCompletion } as Runtime;
    await clientOf(createHandler(wrapped)).createCompletion(chat);
    expect(counts.get('ChatCompletionRequest')).toBe(3);
  });

  it.each([
    [{ priority: 1 }, 'priority: expected 0'],
    [{ logprobs: true, top_logprobs: 4 }, 'top_logprobs: expected an integer from 0 to 3'],
    [{ chat_template: 'x' }, 'chat_template: expected no template'],
  ])('is held to what the runtime behind a handler allows: %j', async (fields, message) => {
    await using strict = await createRuntime({ gpu: false, maxLogprobs: 3, allowRequestTemplate: false });
    const client = clientOf(createHandler(strict));
    await expect(client.createCompletion({ ...chat, ...fields })).rejects.toThrow(message);
  });
});

describe('a request of the messages API', () => {
  const message = { model: '', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 } as const;
  const overHttp = async (): Promise<unknown> => {
    const sent = { method: 'POST', body: JSON.stringify(message) };
    const response = await createHandler(runtime)(new Request('http://localhost/v1/messages', sent));
    return await response.json();
  };
  it.each<[string, () => Promise<unknown>]>([
    ['in process', () => runtime.createMessage(message)],
    ['over HTTP', overHttp],
  ])('is checked in its own form alone, %s', async (_, send) => {
    expect(await send()).toMatchObject({ type: 'message', role: 'assistant' });
    expect(counts.get('MessageRequest')).toBe(1);
    expect(counts.get('ChatCompletionRequest') ?? 0).toBe(0);
  });
});

describe.each<[string, string, (service: Service) => Promise<unknown>]>([
  [
    'log',
    'LogRequest',
    (service) => service.models.log(modelId, { trajectory_groups: groups } as LogRequest),
  ],
  [
    'training',
    'TrainingJobRequest',
    async (service) => {
      const request = { model_id: modelId, trajectory_groups: groups } as TrainingJobRequest;
      await (await service.train(request)).done;
    },
  ],
])('a %s request', (_, name, send) => {
  it.each(ways)('through %s', async (_, service, checks) => {
    await send(service());
    expect(counts.get(name)).toBe(checks);
  });
});
