/** Every field that takes a model x each scope -> only names that are served or registered, and no word about files. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHandler, type Handler, type HandlerOptions } from '../../../src/serve/http/index.ts';
import { endpoints } from '../../../src/serve/http/server/routes.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';

const MESSAGES = [{ role: 'user', content: 'x' }];
const CHAT = { messages: MESSAGES };
const PAIR = { query: 'a', documents: ['b'] };

type Place = readonly [path: string, fields: readonly string[], body: object];

const DECISION = { type: 'predicate', instructions: 'Is it?' };
const SYSTEM_ONE = { state: 'x', questions: { a: { type: 'noul', instructions: 'Is it?' } } };
/** Requests with a field for a model, by the scope of the tokens that may send them. */
const PLACES: Readonly<Record<'complete' | 'train', readonly Place[]>> = {
  complete: [
    ['/v1/chat/completions', ['model', 'speculation.model', 'adapters.0.model'], CHAT],
    ['/v1/chat/completions/render', ['model', 'speculation.model', 'adapters.0.model'], CHAT],
    ['/v1/completions', ['model', 'speculation.model', 'adapters.0.model'], { prompt: 'x' }],
    ['/v1/messages', ['model', 'speculation.model', 'adapters.0.model'], { ...CHAT, max_tokens: 1 }],
    ['/v1/messages/count_tokens', ['model'], CHAT],
    ['/v1/responses', ['model', 'speculation.model', 'adapters.0.model'], { input: 'x' }],
    ['/v1/responses/input_tokens', ['model'], { input: 'x' }],
    ['/v1/responses/compact', ['model'], { input: 'x' }],
    ['/v1/audio/transcriptions', ['model'], { file: 'a sound' }],
    ['/v1/decisions', ['model', 'adapters.0.model'], { input: 'x', questions: [DECISION] }],
    ...['/v1/systemone', '/systemone'].map((at): Place => [at, ['model'], SYSTEM_ONE]),
    ['/v1/embeddings', ['model'], { input: 'x' }],
    ...['/v1/rerank', '/v2/rerank', '/rerank'].map((at): Place => [at, ['model'], PAIR]),
    ...['/v1/score', '/score'].map((at): Place => [at, ['model'], { text_1: 'a', text_2: 'b' }]),
    ...['/v1/classify', '/classify'].map((at): Place => [at, ['model'], { input: 'x' }]),
    ['/api/chat', ['model'], CHAT],
    ['/api/generate', ['model'], { prompt: 'x' }],
    ['/api/embed', ['model'], { input: 'x' }],
    ['/api/embeddings', ['model'], { prompt: 'x' }],
    ['/api/show', ['model'], {}],
    ['/api/pull', ['model'], {}],
    ['/v1/chat/completions/batch', ['model', 'adapters.0.model'], { messages: [MESSAGES] }],
    ['/inference/v1/generate', ['model'], { token_ids: [1] }],
    ['/v1/completions/render', ['model', 'adapters.0.model'], { prompt: 'x' }],
    ['/v1/completions/derender', ['model'], { generate_responses: [{ choices: [] }] }],
    [
      '/v1/chat/completions/derender',
      ['model', 'chat_request.model', 'chat_request.speculation.model', 'chat_request.adapters.0.model'],
      { generate_response: { choices: [] }, chat_request: CHAT },
    ],
    ['/infill', ['model', 'adapters.0.model'], { input_prefix: 'x', input_suffix: 'y' }],
    ['/tokenize', ['model'], { prompt: 'x' }],
    ['/tokenize', ['model', 'speculation.model'], CHAT],
    ['/detokenize', ['model'], { tokens: [1] }],
  ],
  train: [
    ['/v1/preview/models', ['base_model'], {}],
    ['/v1/training/runs', ['model'], {}],
    ['/api/v1/create_model', ['base_model'], { session_id: 'x', model_seq_id: 0 }],
    ['/api/v1/create_sampling_session', ['base_model'], { session_id: 'x', sampling_session_seq_id: 0 }],
    ['/api/v1/asample', ['base_model'], { prompt: { chunks: [{ tokens: [1] }] } }],
  ],
};

/** Endpoints whose bodies name no model, or only a registered one by its id. */
const WITHOUT = [
  ...['/v1/chat/completions/control', '/v1/responses/{id}/cancel'], // of a stream
  '/reset_prefix_cache', // of all models
  ...['/v1/files', '/v1/batches', '/v1/batches/{id}/cancel'],
  ...['/v1/load_lora_adapter', '/v1/unload_lora_adapter'], // for admin, from its folders
  ...['/v1/preview/models/{id}/log', '/v1/preview/training-jobs', '/v1/preview/sft-training-jobs'],
  '/v1/preview/training-jobs/{id}/cancel',
  ...[
    'client/config',
    'client/dynamic_config',
    'telemetry',
    'create_session',
    'session_heartbeat',
    'get_info',
  ]
    .concat('unload_model', 'forward_backward', 'optim_step', 'save_weights', 'load_weights')
    .concat('save_weights_for_sampler', 'weights_info', 'retrieve_future')
    .map((name) => `/api/v1/${name}`), // of models in training, by their ids
];

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-access-'));
const here = process.cwd();
beforeAll(() => {
  fs.writeFileSync(path.join(root, 'private.bin'), 'a model');
  process.chdir(root);
});
afterAll(() => {
  process.chdir(here);
  fs.rmSync(root, { recursive: true });
});

/** References that no token without `admin` may use, in every form. */
const FOREIGN = [
  ...['private.bin', 'missing.bin', '.', '..', '...', './private.bin', '../x', 'a/b', 'a\\b', 'C:x', '~'],
  ...['hf:a/b', 'x.gguf', 'X.GGUF', path.join(root, 'private.bin'), 'agent@x', 'nobody@1', 'file:x'],
];
const OWN = ['small', 'agent', 'agent@3'];

function open(options: HandlerOptions = {}): Handler {
  const memory = createMemoryService();
  const tokens = (['complete', 'train', 'admin'] as const).map((scope) => ({
    token: scope,
    scopes: [scope],
  }));
  const isRegistered = async (name: string): Promise<boolean> => /^agent(@\d+)?$/.test(name);
  return createHandler({ ...memory, servedModels: () => ['small'], isRegistered }, { ...options, tokens });
}

/** The body with a value at a field. */
function withField(body: object, field: string, value: string): object {
  const [outer, ...inner] = field.split('.');
  if (outer === 'chat_request') return { ...body, chat_request: withField(CHAT, inner.join('.'), value) };
  if (field === 'speculation.model') return { ...body, speculation: { method: 'draft', model: value } };
  if (field === 'adapters.0.model') return { ...body, adapters: [{ model: value }] };
  return { ...body, [field]: value };
}

async function send(handler: Handler, token: string, at: string, body: object) {
  const isForm = 'file' in body;
  const form = new FormData();
  if (isForm)
    for (const [name, value] of Object.entries(body) as [string, string][])
      form.append(name, name === 'file' ? new Blob([value]) : value);
  const response = await handler(
    new Request(`http://localhost${at}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        ...(isForm ? {} : { 'content-type': 'application/json' }),
      },
      body: isForm ? form : JSON.stringify(body),
    }),
  );
  return { code: response.headers.get('x-error-code'), text: await response.text() };
}

const rows = (['complete', 'train'] as const).flatMap((scope) =>
  PLACES[scope].flatMap(([at, fields, body]) => fields.map((field) => ({ scope, at, field, body }))),
);

describe.each(rows)('$at $field', ({ scope, at, field, body }) => {
  it('takes no file and no download of a token without admin, and tells of none', async () => {
    const handler = open();
    for (const reference of FOREIGN) {
      const { code, text } = await send(handler, scope, at, withField(body, field, reference));
      const isPath = /[/\\:]|\.gguf$/i.test(reference);
      expect([reference, code]).toEqual([reference, isPath ? 'FORBIDDEN' : 'MODEL_NOT_FOUND']);
      expect(text.includes(root) && !reference.includes(root), text).toBe(false);
    }
    const refusal = async (reference: string) =>
      (await send(handler, scope, at, withField(body, field, reference))).text.replaceAll(reference, '');
    expect(await refusal('private.bin')).toBe(await refusal('missing.bin'));
  });

  it('takes names that are served or registered, and of admin everything', async () => {
    const handler = open();
    for (const [token, references] of [
      [scope, OWN],
      ['admin', FOREIGN.filter((reference) => reference !== 'private.bin')],
    ] as const)
      for (const reference of references) {
        const { code, text } = await send(handler, token, at, withField(body, field, reference));
        expect(text, reference).not.toMatch(/does not allow files|no model has this name/);
        expect(code, reference).not.toBe('FORBIDDEN');
      }
  });
});

it('rows of batches may use what their tokens may', async () => {
  const batchFolder = path.join(root, 'batches');
  const handler = open({ batchFolder });
  const ask = async (at: string, init: RequestInit = {}) => {
    const headers = { authorization: 'Bearer complete' };
    return await handler(new Request(`http://localhost${at}`, { ...init, headers }));
  };
  const lines = FOREIGN.map((model) => JSON.stringify({ custom_id: model, body: { ...CHAT, model } }));
  const form = new FormData();
  form.append('purpose', 'batch');
  form.append('file', new Blob([lines.join('\n')]), 'rows.jsonl');
  const { id: input_file_id } = (await (await ask('/v1/files', { method: 'POST', body: form })).json()) as {
    id: string;
  };
  const body = JSON.stringify({
    input_file_id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  const { id } = (await (await ask('/v1/batches', { method: 'POST', body })).json()) as { id: string };
  type Batch = { status: string; error_file_id: string };
  const batch = async () => (await (await ask(`/v1/batches/${id}`)).json()) as Batch;
  await expect.poll(async () => (await batch()).status, { timeout: 10_000 }).toBe('completed');
  const text = await (await ask(`/v1/files/${(await batch()).error_file_id}/content`)).text();
  const statuses = text
    .trim()
    .split('\n')
    .map((line) => {
      const { response } = JSON.parse(line) as { response: { status_code: number } };
      return response.status_code;
    });
  expect(statuses).toHaveLength(FOREIGN.length);
  for (const status of statuses) expect([403, 404]).toContain(status);
});

it('no endpoint is left out', () => {
  const known = new Set([...rows.map(({ at }) => at), ...WITHOUT]);
  const posts = endpoints.filter(({ method }) => method === 'POST').map((endpoint) => endpoint.path);
  expect(posts.filter((at) => !known.has(at) && !at.startsWith('/v1/training/runs/{id}/'))).toEqual([]);
});
