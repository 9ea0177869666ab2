/** Names of models in requests and options -> the model that answers. And the methods of the tokenizer. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RuntimeOptions } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { connect, serve } from '../../src/serve/http/index.ts';

const TINY = path.resolve(import.meta.dirname, '../../models/onpolicy-tiny.gguf');
const request = { messages: [{ role: 'user' as const, content: 'Hi' }], max_tokens: 1, temperature: 0 };

describe('a model is found', () => {
  it.each<[string, RuntimeOptions, string | null]>([
    ['by the embedded name as default', { model: 'onpolicy-tiny' }, null],
    ['by the embedded name behind an alias', { models: { a: 'onpolicy-tiny' } }, 'a'],
    ['by an alias as default', { model: 'a', models: { a: TINY } }, null],
    ['by an alias of an alias', { models: { a: 'b', b: { path: 'onpolicy-tiny' } } }, 'a'],
    ['by an alias that hides the embedded name', { models: { 'onpolicy-tiny': TINY } }, 'onpolicy-tiny'],
    ['by an alias of its own name', { models: { 'onpolicy-tiny': 'onpolicy-tiny' } }, 'onpolicy-tiny'],
  ])('%s', async (_, options, model) => {
    await using runtime = await createRuntime({ ...options, threads: 1, contextSize: 64 });
    const answer = await runtime.createCompletion({ ...request, model });
    expect(answer.usage?.completion_tokens).toBe(1);
  });

  it('with the settings of all aliases on the way, the nearest first', async () => {
    const models = {
      near: { path: 'far', contextSize: 32 },
      far: { path: TINY, contextSize: 64, chatTemplate: 'x' },
    };
    await using runtime = await createRuntime({ threads: 1, models });
    const { usage } = await runtime.createCompletion({ ...request, model: 'near' });
    expect(usage!.prompt_tokens).toBe((await runtime.tokenize('x')).length);
    const long = runtime.createCompletion({ ...request, model: 'near', max_tokens: 40 });
    await expect(long).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW' });
  });
});

describe('GET /v1/models', () => {
  it('lists what can be asked for', async () => {
    await using runtime = await createRuntime({
      threads: 1,
      contextSize: 64,
      model: 'small',
      models: { small: TINY, 'org/other': 'onpolicy-tiny' },
    });
    const server = await serve(runtime, { tokens: ['secret', { token: 'plain', scopes: ['complete'] }] });
    const headers = { authorization: 'Bearer secret' };
    const list = await fetch(`${server.url}/v1/models`, { headers });
    const ids = ((await list.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    expect(ids).toEqual(['small', 'onpolicy-tiny', 'org/other']);
    await using client = connect({ baseUrl: server.url, apiKey: 'plain' });
    for (const model of ids) expect((await client.createCompletion({ ...request, model })).model).toBe(model);
    await expect(client.createCompletion({ ...request, model: TINY })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    await server.close();
  });

  it('is checked when the server is made', async () => {
    await using runtime = await createRuntime({ threads: 1 });
    const of = (models: string[]) => serve(runtime, { models });
    for (const good of [['onpolicy-tiny'], [TINY], ['hf:owner/name']]) await (await of(good)).close();
    for (const bad of ['small', './missing.gguf', ''])
      await expect(of(['onpolicy-tiny', bad])).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        param: 'models.1',
      });
  });
});

describe('the tokenizer', () => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await createRuntime({ threads: 1, contextSize: 64 });
  });
  afterAll(() => runtime.close());

  it.each<[string, unknown, unknown]>([
    ['text', 5, {}],
    ['text', undefined, {}],
    ['modle', 'x', { modle: 'a' }],
    ['model', 'x', { model: 5 }],
    ['addSpecialTokens', 'x', { addSpecialTokens: 1 }],
    ['parseSpecial', 'x', { parseSpecial: 'yes' }],
    ['options', 'x', null],
    ['options', 'x', 'a'],
  ])('refuses a wrong %s of tokenize', async (param, text, options) => {
    const refused = { code: 'INVALID_REQUEST', param };
    await expect(runtime.tokenize(text as never, options as never)).rejects.toMatchObject(refused);
  });

  it.each<[string, unknown, unknown]>([
    ['ids', 'x', {}],
    ['ids', 5, {}],
    ['ids.1', [1, 1e6], {}],
    ['ids.0', [1.5], {}],
    ['ids.0', [-1], {}],
    ['ids.0', [null], {}],
    ['skipSpecialTokens', [1], { skipSpecialTokens: 'x' }],
    ['skipSpecial', [1], { skipSpecial: true }],
    ['options', [1], 7],
  ])('refuses a wrong %s of detokenize', async (param, ids, options) => {
    const refused = { code: 'INVALID_REQUEST', param };
    await expect(runtime.detokenize(ids as never, options as never)).rejects.toMatchObject(refused);
  });

  it('gives back what it was given', async () => {
    for (const text of ['', 'Hello there', '<|im_end|>', 'a\ud83d\ude00'])
      for (const parseSpecial of [false, true])
        expect(await runtime.detokenize(await runtime.tokenize(text, { parseSpecial }))).toBe(text);
  });
});
