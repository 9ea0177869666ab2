/** Each endpoint with each invalid token -> refused before the service is called. */
import { describe, expect, it } from 'vitest';
import type { Scope } from '../../../src/serve/http/index.ts';
import { endpoints } from '../../../src/serve/http/server/routes.ts';
import { ask, HELLO, openHandler } from './exchange.ts';

const ID = '00000000-0000-4000-8000-000000000000';
const BODIES: Readonly<Record<string, unknown>> = {
  'POST /v1/chat/completions': HELLO,
  'POST /v1/preview/models': { base_model: 'x' },
  'POST /v1/preview/models/{id}/log': { trajectory_groups: [] },
  'DELETE /v1/preview/models/{id}/checkpoints': { steps: [1] },
  'POST /v1/preview/training-jobs': { model_id: ID, trajectory_groups: [] },
};
const protectedOnes = endpoints.filter(({ scopes }) => scopes !== null);
const SCOPES: readonly Scope[] = ['complete', 'train', 'read', 'admin'];
const TOKENS = SCOPES.map((scope) => ({ token: `token-${scope}`, scopes: [scope] }));

describe('a token', () => {
  it.each(['a long random text', 'x', '!~', 'a  b'])('may be %j', async (token) => {
    const { handler } = openHandler({ tokens: [token] });
    const status = async (given: string) =>
      (await ask(handler, 'GET', '/v1/models', { headers: { authorization: `Bearer ${given}` } })).status;
    expect([await status(token), await status(`${token}x`)]).toEqual([200, 401]);
  });

  it.each(['', ' ', ' a', 'a ', 'a\n', 'é', '\t', 'a\0'])('is not %j', (token) => {
    for (const [tokens, param] of [
      [[token], 'tokens.0'],
      [['a', { token }], 'tokens.1.token'],
    ] as const)
      expect(() => openHandler({ tokens })).toThrowError(expect.objectContaining({ param }));
  });
});

describe('an entry of tokens', () => {
  it.each([
    [
      { token: 'abc', scopes: ['write'] },
      'tokens.0.scopes.0: expected "complete", "train", "read" or "admin", got "write"',
    ],
    [{ token: 'abc', scope: 'read' }, 'tokens.0.scope: not a field of tokens.0; did you mean scopes?'],
    [{ scopes: ['read'] }, 'tokens.0.token: this field is required'],
    [null, 'tokens.0: expected a text, or an object with a token, got null'],
    [{ token: 5 }, 'tokens.0.token: expected a text of visible ASCII characters, got a number'],
  ])('is not %j', (entry, message) => {
    expect(() => openHandler({ tokens: [entry] as never })).toThrow(message);
  });
});

describe.each(protectedOnes)('$method $path', ({ method, path, scopes, form }) => {
  const { handler, service } = openHandler({ tokens: ['secret', ...TOKENS] });
  const body = BODIES[`${method} ${path}`];
  const url = path.replace('{id}', ID);

  it('needs a known token', async () => {
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'Bearer wrong',
      'Bearer secre',
      'Bearer secrets',
      'Bearer SECRET',
      'Basic secret',
      'secret',
      'Bearer secret secret',
      'Bearer secret, Bearer secret',
    ]) {
      const headers = authorization === undefined ? {} : { authorization };
      const answer = await ask(handler, method, url, { body, headers });
      expect([answer.status, answer.headers.get('www-authenticate')], authorization).toEqual([401, 'Bearer']);
      expect(Object.keys(answer.body as object), form).toContain(form === 'preview' ? 'detail' : 'error');
    }
    expect(service.calls).toEqual([]);
  });

  it('needs a scope', async () => {
    for (const scope of SCOPES) {
      const headers = { authorization: `Bearer token-${scope}` };
      const { status } = await ask(handler, method, url, { body, headers });
      const isAllowed = scope === 'admin' || scopes!.includes(scope);
      if (!isAllowed) expect([scope, status]).toEqual([scope, 403]);
      else expect([401, 403], scope).not.toContain(status);
    }
    expect(
      (await ask(handler, method, url, { body, headers: { authorization: 'bearer secret' } })).status,
    ).not.toBe(401);
  });
});

it('health needs none, and asks nothing of the service', async () => {
  const { handler, service } = openHandler({ tokens: ['secret'] });
  expect(await ask(handler, 'GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect(service.calls).toEqual([]);
});

describe('without tokens', () => {
  it('only this machine is served', async () => {
    const { handler, service } = openHandler();
    const statusOf = async (origin: string): Promise<number> =>
      (await handler(new Request(`${origin}/v1/preview/models`))).status;
    for (const origin of [
      'http://localhost:80',
      'http://127.0.0.1',
      'http://[::1]:9',
      'http://app.localhost',
    ])
      expect(await statusOf(origin), origin).toBe(200);
    const count = service.calls.length;
    for (const origin of [
      'http://example.com',
      'http://localhost.example.com',
      'http://192.168.0.1',
      'http://127.0.0.1.example.com',
    ])
      expect(await statusOf(origin), origin).toBe(401);
    expect(service.calls).toHaveLength(count);
  });

  it('others are served only when told so', async () => {
    const { handler } = openHandler({ allowAnonymous: true });
    expect((await handler(new Request('http://example.com/v1/preview/models'))).status).toBe(200);
  });
});

it('a token for completions alone names no files', async () => {
  const { handler, service } = openHandler({ tokens: TOKENS, models: ['team/model'] });
  const statusOf = async (model: string, scope: Scope, fields: object = {}): Promise<number> =>
    (
      await ask(handler, 'POST', '/v1/chat/completions', {
        body: { ...HELLO, model, ...fields },
        headers: { authorization: `Bearer token-${scope}` },
      })
    ).status;
  for (const model of ['/etc/passwd', '../x.gguf', 'hf:owner/name:Q8_0', 'C:\\x', 'model.gguf'])
    expect(await statusOf(model, 'complete'), model).toBe(403);
  const drafting = { speculation: { method: 'draft', model: 'model.gguf' } };
  expect(await statusOf('memory', 'complete', drafting)).toBe(403);
  expect(service.calls).toEqual([]);
  expect(await statusOf('/path/to.gguf', 'admin')).toBe(404);
  expect(await statusOf('team/model', 'complete')).toBe(404);
  expect(await statusOf('memory', 'complete')).toBe(200);
});
