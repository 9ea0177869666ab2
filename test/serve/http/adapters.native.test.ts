/** Adapters over HTTP: as vLLM's clients load them, and as requests name them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import { openTrainer } from '../../../src/rl/trainer.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { createHandler, type Handler } from '../../../src/serve/http/index.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-http-adapters-'));
const allowed = path.join(root, 'allowed');
const file = path.join(allowed, 'adapter.gguf');
const outside = path.join(root, 'outside.gguf');
const question = { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 };
let runtime: Runtime;
let handler: Handler;

beforeAll(async () => {
  await using trainer = await openTrainer({ model: EMBEDDED_MODEL, gpu: false, threads: 1 });
  await trainer.save(allowed);
  fs.copyFileSync(file, outside);
  fs.symlinkSync(outside, path.join(allowed, 'link.gguf'));
  runtime = await createRuntime({
    gpu: false,
    threads: 1,
    contextSize: 256,
    models: { base: EMBEDDED_MODEL },
  });
  const tokens = [{ token: 'all' }, { token: 'some', scopes: ['complete' as const] }];
  handler = createHandler(runtime, { tokens, adapterFolders: [allowed] });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(root, { recursive: true });
});

async function send(
  at: string,
  body: object | null,
  token = 'all',
  to = handler,
): Promise<{ status: number; body: string }> {
  const response = await to(
    new Request(`http://localhost${at}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${token}` },
      ...(body ? { body: JSON.stringify(body) } : {}),
    }),
  );
  return { status: response.status, body: await response.text() };
}

const load = (body: object, token?: string) => send('/v1/load_lora_adapter', body, token);
const unload = (body: object) => send('/v1/unload_lora_adapter', body);

describe("vLLM's adapters", () => {
  it('are loaded, listed with their parent, used and unloaded', async () => {
    expect(await load({ lora_name: 'mine', lora_path: allowed })).toEqual({
      status: 200,
      body: "Success: LoRA adapter 'mine' added successfully.",
    });
    const { data } = JSON.parse((await send('/v1/models', null)).body);
    expect(data).toContainEqual({
      id: 'mine',
      max_model_len: 256,
      object: 'model',
      created: 0,
      owned_by: 'onpolicy',
      root: fs.realpathSync(allowed),
      parent: 'onpolicy-tiny',
      architecture: { input_modalities: ['text'], output_modalities: ['text'] },
    });
    expect((await send('/v1/chat/completions', { ...question, model: 'mine' }, 'some')).status).toBe(200);
    expect((await load({ lora_name: 'mine', lora_path: file })).status).toBe(400);
    expect((await load({ lora_name: 'mine', lora_path: file, load_inplace: true })).status).toBe(200);
    expect(await unload({ lora_name: 'mine' })).toEqual({
      status: 200,
      body: "Success: LoRA adapter 'mine' removed successfully.",
    });
    expect((await send('/v1/chat/completions', { ...question, model: 'mine' })).status).toBe(404);
  });

  it.each([
    ['no such file', { lora_name: 'x', lora_path: path.join(allowed, 'none') }, 403, 'lora_path'],
    ['a file outside', { lora_name: 'x', lora_path: outside }, 403, 'lora_path'],
    ['a link to one', { lora_name: 'x', lora_path: path.join(allowed, 'link.gguf') }, 403, 'lora_path'],
    ['a way out', { lora_name: 'x', lora_path: `${allowed}/../outside.gguf` }, 403, 'lora_path'],
    [
      'no adapter',
      { lora_name: 'x', lora_path: path.join(allowed, 'adapter_config.json') },
      400,
      'lora_path',
    ],
    ['no name', { lora_path: file }, 400, 'lora_name'],
    ['the name of a model', { lora_name: 'base', lora_path: file }, 400, 'lora_name'],
    ['no such base', { lora_name: 'x', lora_path: file, base_model_name: 'none' }, 404, 'base_model_name'],
  ])('are refused by their field: %s', async (_name, body, status, param) => {
    const refused = await load(body);
    expect({ status: refused.status, param: JSON.parse(refused.body).error.param }).toEqual({
      status,
      param,
    });
  });

  it('need the scope admin, a known name and a folder', async () => {
    expect((await load({ lora_name: 'x', lora_path: file }, 'some')).status).toBe(403);
    expect((await unload({ lora_name: 'never' })).status).toBe(404);
    const closed = createHandler(runtime, { tokens: ['all'] });
    expect(
      (await send('/v1/load_lora_adapter', { lora_name: 'x', lora_path: file }, 'all', closed)).status,
    ).toBe(404);
  });
});

describe('adapters of a request over HTTP', () => {
  const messages = { model: 'base', max_tokens: 1, messages: question.messages };
  it.each([
    ['/v1/chat/completions', question],
    ['/v1/completions', { prompt: 'Hello', max_tokens: 1 }],
    ['/v1/messages', messages],
    ['/v1/responses', { input: 'Hello', max_output_tokens: 16 }],
    ['/v1/chat/completions/render', question],
  ])('%s takes those of the allowed folders only', async (at, body) => {
    expect((await send(at, { ...body, adapters: [{ file }] }, 'some')).status).toBe(200);
    const refused = await send(at, { ...body, adapters: [{ file }, { file: outside }] });
    expect(refused.status).toBe(403);
    expect(JSON.parse(refused.body).error.param).toBe('adapters.1.file');
    expect(refused.body).not.toContain('outside.gguf');
  });
});
