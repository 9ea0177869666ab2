/** Requests -> responses: paths, forms of errors, ids, origins. */

import { describe, expect, it } from 'vitest';
import type { OnpolicyError } from '../../../src/errors.ts';
import { checkConnectOptions } from '../../../src/serve/http/client/connect-options.ts';
import { createHandler } from '../../../src/serve/http/index.ts';
import { checkHandlerOptions } from '../../../src/serve/http/server/handler-options.ts';
import { ask, HELLO, openHandler } from './exchange.ts';

const ID = '00000000-0000-4000-8000-000000000000';

describe('paths', () => {
  it.each(['', '/'])('end with or without a slash: "%s"', async (end) => {
    const { handler } = openHandler({ models: ['memory'] });
    const create = await ask(handler, 'POST', `/v1/preview/models${end}`, { body: { base_model: 'x' } });
    expect(create.status).toBe(200);
    const { id } = create.body as { id: string };
    const job = { model_id: id, trajectory_groups: [] };
    const requests: [string, string, unknown?][] = [
      ['POST', '/v1/chat/completions', HELLO],
      ['GET', '/v1/models'],
      ['GET', `/v1/models/${id}`],
      ['GET', '/health'],
      ['GET', '/metrics'],
      ['GET', '/v1/preview/loaded-models'],
      ['GET', '/v1/preview/models'],
      ['GET', `/v1/preview/models/${id}`],
      ['POST', `/v1/preview/models/${id}/log`, { trajectory_groups: [] }],
      ['GET', `/v1/preview/models/${id}/checkpoints`],
      ['GET', `/v1/preview/models/${id}/report`],
      ['DELETE', `/v1/preview/models/${id}/checkpoints`, { steps: [1] }],
      ['POST', '/v1/preview/training-jobs', job],
    ];
    for (const [method, path, body] of requests)
      expect((await ask(handler, method, path + end, { body })).status, `${method} ${path}`).toBe(200);
    const started = await ask(handler, 'POST', `/v1/preview/training-jobs${end}`, { body: job });
    expect(Object.keys(started.body as object)).toEqual(['id']);
    const path = `/v1/preview/training-jobs/${(started.body as { id: string }).id}`;
    expect((await ask(handler, 'GET', path + end)).body).toMatchObject({ object: 'training.job' });
    expect((await ask(handler, 'GET', `${path}/events${end}?limit=1`)).body).toMatchObject({
      object: 'list',
    });
    expect((await ask(handler, 'POST', `${path}/cancel${end}`)).status).toBe(200);
    expect((await ask(handler, 'DELETE', `/v1/preview/models/${id}${end}`)).status).toBe(200);
  });

  it('that lead nowhere, and methods that are not there', async () => {
    const { handler } = openHandler();
    for (const path of [
      '/v1',
      '/v1/chat',
      '/v1/chat/completions/x',
      '/v1/preview/models//log',
      '/v1/models/%zz',
    ])
      expect((await ask(handler, 'POST', path, { body: HELLO })).status, path).toBe(404);
    const { status, headers, body } = await ask(handler, 'PUT', `/v1/preview/models/${ID}`, { body: {} });
    expect({ status, allow: headers.get('allow') }).toEqual({ status: 405, allow: 'GET, HEAD, DELETE' });
    expect(body).toEqual({ detail: 'expected the method GET or HEAD or DELETE' });
  });

  it('of reading tell their head alone', async () => {
    const { handler } = openHandler();
    for (const path of ['/health', '/v1/models', '/metrics']) {
      const get = await ask(handler, 'GET', path);
      const head = await ask(handler, 'HEAD', path);
      expect([head.status, head.headers.get('content-type'), head.body], path).toEqual([
        200,
        get.headers.get('content-type'),
        '',
      ]);
    }
    const { status, headers } = await ask(handler, 'HEAD', '/v1/chat/completions');
    expect([status, headers.get('allow')]).toEqual([405, 'POST']);
  });

  it('may begin with two slashes', async () => {
    expect((await ask(openHandler().handler, 'GET', '//health')).status).toBe(200);
    const { handler } = openHandler({ basePath: '/api' });
    expect((await ask(handler, 'GET', '//api/health')).status).toBe(200);
  });

  it('may lie below another one', async () => {
    const { handler } = openHandler({ basePath: '/api' });
    expect((await ask(handler, 'GET', '/api/health')).status).toBe(200);
    expect((await ask(handler, 'GET', '/health')).status).toBe(404);
    expect((await ask(handler, 'GET', '/apihealth')).status).toBe(404);
  });

  it('of what a service does not do say so', async () => {
    const { createCompletion, close, [Symbol.asyncDispose]: dispose } = openHandler().service;
    const handler = createHandler({ createCompletion, close, [Symbol.asyncDispose]: dispose });
    expect((await ask(handler, 'POST', '/v1/chat/completions', { body: HELLO })).status).toBe(200);
    expect((await ask(handler, 'GET', '/v1/models')).body).toEqual({ object: 'list', data: [], models: [] });
    for (const [method, path, body] of [
      ['GET', '/v1/preview/models', undefined],
      ['POST', '/v1/embeddings', { input: 'a' }],
      ['POST', '/v2/rerank', { query: 'a', documents: ['b'] }],
      ['POST', '/score', { text_1: 'a', text_2: 'b' }],
      ['POST', '/classify', { input: 'a' }],
      ['POST', '/systemone', { state: 'a', questions: { is: { type: 'noul', instructions: 'b' } } }],
    ] as const) {
      const { status, headers } = await ask(handler, method, path, { body });
      expect([path, status, headers.get('x-error-code')]).toEqual([path, 400, 'UNSUPPORTED']);
    }
  });
});

describe('errors', () => {
  const { handler } = openHandler();

  it('of completions have the form of completions', async () => {
    const faulty = await ask(handler, 'POST', '/v1/chat/completions', {
      body: { ...HELLO, n: 0, top_p: 'a' },
    });
    expect(faulty.status).toBe(400);
    expect(faulty.body).toMatchObject({
      error: {
        message: 'top_p: expected a number > 0 and <= 1 or null, got "a" (and 1 more fault)',
        type: 'invalid_request_error',
        param: 'top_p',
        code: 'INVALID_REQUEST',
        detail: [{ loc: ['top_p'] }, { loc: ['n'] }],
      },
    });
    const unknown = await ask(handler, 'POST', '/v1/chat/completions', { body: { ...HELLO, model: 'none' } });
    expect(unknown).toMatchObject({
      status: 404,
      body: {
        error: {
          message: 'there is no model none',
          type: 'not_found_error',
          param: 'model',
          code: 'MODEL_NOT_FOUND',
        },
      },
    });
  });

  it('of preview endpoints have the form of those', async () => {
    const faulty = await ask(handler, 'POST', `/v1/preview/models/${ID}/log`, {
      body: {
        split: 5,
        trajectory_groups: [{ trajectories: [{ reward: 'high', messages_and_choices: [] }] }],
      },
    });
    expect(faulty.status).toBe(422);
    expect(Object.keys(faulty.body as object)).toEqual(['detail']);
    expect((faulty.body as { detail: object[] }).detail).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          loc: ['trajectory_groups', '0', 'trajectories', '0', 'reward'],
          msg: expect.stringContaining('expected a number'),
          type: 'type',
          input: 'high',
        }),
        expect.objectContaining({ loc: ['split'] }),
      ]),
    );
    const missing = await ask(handler, 'GET', `/v1/preview/models/${ID}`);
    expect(missing).toMatchObject({ status: 404, body: { detail: `there is no model ${ID}` } });
    const query = await ask(handler, 'GET', '/v1/preview/models?limit=many&order=up');
    expect(query.status).toBe(422);
    expect((query.body as { detail: { loc: string[] }[] }).detail.map(({ loc }) => loc)).toEqual([
      ['limit'],
      ['order'],
    ]);
    await ask(handler, 'POST', '/v1/preview/models', { body: { base_model: 'x', name: 'a' } });
    const taken = await ask(handler, 'POST', '/v1/preview/models', { body: { base_model: 'x', name: 'a' } });
    expect(taken).toMatchObject({ status: 409, body: { detail: 'there is a model a already' } });
  });

  it('that are bugs show nothing of themselves', async () => {
    const seen: unknown[] = [];
    const { service } = openHandler();
    const bug = new TypeError('secret of the source');
    const broken = createHandler(
      { ...service, createCompletion: (() => Promise.reject(bug)) as never },
      { onError: (error) => seen.push(error) },
    );
    const { status, body } = await ask(broken, 'POST', '/v1/chat/completions', { body: HELLO });
    expect([status, body]).toEqual([
      500,
      { error: { message: 'the server failed', type: 'server_error', param: null, code: 'BACKEND_FAILED' } },
    ]);
    expect(seen).toEqual([bug]);
  });

  it('do not repeat a value that is large or deep', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    for (const value of [deep, JSON.stringify('x'.repeat(100_000)), JSON.stringify(Array(1000).fill(0))]) {
      const body = `{"messages":[{"role":"user","content":"Hi"}],"temperature":${value},"documents":[{"a":${value}}],"tools":[${value}]}`;
      const answer = await ask(handler, 'POST', '/v1/chat/completions', { body });
      expect(answer.status).toBe(400);
      expect(JSON.stringify(answer.body).length).toBeLessThan(10_000);
    }
  });
});

describe('request ids', () => {
  const { handler } = openHandler();
  const idsOf = async (headers: Record<string, string>, more: object = {}) => {
    const answer = await ask(handler, 'POST', '/v1/chat/completions', {
      body: { ...HELLO, ...more },
      headers,
    });
    return [answer.headers.get('x-request-id'), (answer.body as { id: string }).id];
  };

  it('come from the body, then the header, then from here', async () => {
    const both = await idsOf({ 'x-request-id': 'abc' }, { request_id: 'other' });
    expect(both).toEqual(['other', 'chatcmpl-other']);
    expect(await idsOf({}, { request_id: 'other' })).toEqual(['other', 'chatcmpl-other']);
    expect(await idsOf({ 'x-request-id': 'abc' })).toEqual(['abc', 'chatcmpl-abc']);
    const [header, id] = await idsOf({});
    expect(id).toBe(`chatcmpl-${header}`);
    expect(header).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('are those of failed requests, too', async () => {
    const body = { ...HELLO, request_id: 'mine', model: 'missing' };
    const answer = await ask(handler, 'POST', '/v1/chat/completions', { body });
    expect([answer.status, answer.headers.get('x-request-id')]).toEqual([404, 'mine']);
  });

  it('that no header can hold are in the answer only', async () => {
    const [header, id] = await idsOf({ 'x-request-id': 'abc' }, { request_id: 'a\nb' });
    expect([header, id]).toEqual(['abc', 'chatcmpl-a\nb']);
  });

  it('that could harm a log are not taken', async () => {
    expect((await idsOf({ 'x-request-id': 'a b' }))[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect((await idsOf({ 'x-request-id': 'x'.repeat(300) }))[0]).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('pages of other origins', () => {
  const origin = 'https://page.example';
  const preflight = { headers: { origin, 'access-control-request-method': 'POST' } };

  it('are told nothing by default', async () => {
    const { handler, service } = openHandler({ tokens: ['secret'] });
    const answer = await ask(handler, 'OPTIONS', '/v1/chat/completions', preflight);
    expect(answer.status).toBe(204);
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(service.calls).toEqual([]);
  });

  it('cannot ask a server without tokens, not even in a way that needs no preflight', async () => {
    const { handler, service } = openHandler();
    const answer = await ask(handler, 'POST', '/v1/chat/completions', { body: HELLO, headers: { origin } });
    expect(answer.status).toBe(403);
    expect(service.calls).toEqual([]);
    const own = { body: HELLO, headers: { origin: 'http://localhost' } };
    expect((await ask(handler, 'POST', '/v1/chat/completions', own)).status).toBe(200);
  });

  it('may ask where the options say so', async () => {
    const { handler } = openHandler({ corsOrigins: [origin] });
    expect(
      (await ask(handler, 'OPTIONS', '/v1/chat/completions', preflight)).headers.get(
        'access-control-allow-origin',
      ),
    ).toBe(origin);
    const answer = await ask(handler, 'POST', '/v1/chat/completions', { body: HELLO, headers: { origin } });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, origin]);
    const other = { ...preflight, headers: { ...preflight.headers, origin: 'https://other.example' } };
    expect(
      (await ask(handler, 'OPTIONS', '/v1/chat/completions', other)).headers.get(
        'access-control-allow-origin',
      ),
    ).toBeNull();
  });
});

describe('what a handler tells of itself', () => {
  it('is text that Prometheus reads', async () => {
    const { handler } = openHandler();
    await ask(handler, 'POST', '/v1/chat/completions', { body: HELLO });
    await ask(handler, 'GET', '/nowhere');
    const { headers, body } = await ask(handler, 'GET', '/metrics');
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=0.0.4/);
    expect(body).toContain(
      'onpolicy_http_requests_total{method="POST",endpoint="/v1/chat/completions",status="200"} 1\n',
    );
    expect(body).toContain('onpolicy_http_requests_total{method="other",endpoint="none",status="404"} 1\n');
    expect(body).toContain('onpolicy_http_requests_active 1\n');
    for (const line of (body as string).trimEnd().split('\n'))
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{[^{}]+\})? [\d.e+-]+)$/);
  });

  it('lists models as clients of completions know them', async () => {
    const { handler } = openHandler({ models: ['memory'] });
    await ask(handler, 'POST', '/v1/preview/models', { body: { base_model: 'x', name: 'mine' } });
    expect((await ask(handler, 'GET', '/v1/models')).body).toMatchObject({
      object: 'list',
      data: [{ id: 'memory', object: 'model', owned_by: 'onpolicy' }, { id: 'mine' }],
    });
    expect((await ask(handler, 'GET', '/v1/models/mine')).body).toMatchObject({
      id: 'mine',
      object: 'model',
    });
    expect((await ask(handler, 'GET', '/v1/models/none')).status).toBe(404);
  });
});

it('null as an option means no limit, absence the default', () => {
  expect(checkHandlerOptions({ maxLogprobs: null }).maxLogprobs).toBeNull();
  expect(checkHandlerOptions({}).maxLogprobs).toBe(20);
  const baseUrl = 'http://127.0.0.1:1';
  expect(checkConnectOptions({ baseUrl, timeoutMs: null }).timeoutMs).toBeNull();
  expect(checkConnectOptions({ baseUrl }).timeoutMs).toBe(600_000);
});

it('options that are wrong are named', () => {
  const { service } = openHandler();
  for (const [options, param] of [
    [{ token: 'x' }, 'token'],
    [{ tokens: [''] }, 'tokens.0'],
    [{ tokens: [{ token: 'x', scopes: ['write'] }] }, 'tokens.0.scopes.0'],
    [{ maxBodyBytes: -1 }, 'maxBodyBytes'],
    [{ basePath: 'api/' }, 'basePath'],
  ] as const)
    expect(() => createHandler(service, options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', param }) as OnpolicyError,
    );
});
