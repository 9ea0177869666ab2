/** `GET /openapi.json` -> what independent validators of OpenAPI and JSON Schema say of it, and that it agrees with the server. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { endpoints } from '../../../src/serve/http/server/routes.ts';
import { ask, HELLO, openHandler } from './exchange.ts';

type Operation = {
  readonly operationId: string;
  readonly description: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: { $ref?: string } }>>;
  };
};
type Document = {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
};

const read = async (options = {}, path = '/openapi.json') =>
  (await ask(openHandler(options).handler, 'GET', path)).body as Document;
const document = await read();
const operations = Object.values(document.paths).flatMap((path) => Object.values(path));

it('is a valid document of OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

it('is refused by that validator where it is wrong', async () => {
  const { valid } = await new Validator().validate({
    ...structuredClone(document),
    paths: { '/x': { get: 1 } },
  });
  expect(valid).toBe(false);
});

it('has all endpoints, each with a name of its own', () => {
  for (const { method, path } of endpoints) expect(document.paths[path]).toHaveProperty(method.toLowerCase());
  expect(operations).toHaveLength(endpoints.length);
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(endpoints.length);
  expect(document.paths['/v1/preview/models']!['get']!.operationId).toBe('models.list');
  expect(document.paths['/v1/chat/completions']!['post']!.description).not.toMatch(/\]\(/);
});

it('gives every request with a body its schema, and every path its parameters', () => {
  const bare = endpoints.filter(
    ({ method, path }) => method === 'POST' && !document.paths[path]!['post']!.requestBody,
  );
  expect(bare.map(({ path }) => path)).toEqual([
    '/reset_prefix_cache', // its settings are in the URL
    '/v1/preview/training-jobs/{id}/cancel',
    '/v1/training/runs/{id}/close',
    '/v1/responses/{id}/cancel',
    '/api/v1/forward_backward', // a message of protocol buffers
    '/v1/batches/{id}/cancel',
  ]);
  const names = (path: string) =>
    document.paths[path]!['get']!.parameters!.map((one) => `${one.in} ${one.name}`);
  expect(names('/v1/preview/models/{id}/checkpoints')).toEqual([
    'path id',
    'query after',
    'query limit',
    'query order',
  ]);
});

it('has schemas that refer only to each other, and that agree with the checks of requests', async () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'doc');
  for (const name of Object.keys(document.components.schemas))
    expect(ajv.getSchema(`doc#/components/schemas/${name}`), name).toBeTypeOf('function');
  const { handler } = openHandler({ unknownFields: 'refuse' });
  const bodies = [
    HELLO,
    { ...HELLO, temperature: 0.5, tools: [{ type: 'function', function: { name: 'f' } }] },
    { ...HELLO, temperature: 'hot' },
    { ...HELLO, top_p: 7 },
    { ...HELLO, nothing_of_the_kind: 1 },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 1 }] }] },
    { messages: 'Hello' },
    { ...HELLO, n: 0 },
    { ...HELLO, response_format: { type: 'json_schema' } },
    {},
    [],
  ];
  const check = ajv.getSchema('doc#/components/schemas/ChatCompletionRequest')!;
  for (const body of bodies) {
    const { status } = await ask(handler, 'POST', '/v1/chat/completions', { body });
    expect(check(body), JSON.stringify(body)).toBe(status === 200);
  }
});

it('says nothing that only our tools understand', () => {
  const texts = JSON.stringify(document);
  expect(texts).not.toMatch(/"(tsType|bounds|expected|keepsNull|secret)":"/);
  expect(texts).not.toContain('#/$defs/');
});

it('asks for a token if the server does, and begins at the base path', async () => {
  expect(operations.every(({ security }) => security.length === 0)).toBe(true);
  const guarded = await read({ tokens: ['secret'], basePath: '/app' }, '/app/openapi.json');
  expect(guarded.servers).toEqual([{ url: '/app' }]);
  expect(guarded.paths['/health']!['get']!.security).toEqual([]);
  expect(guarded.paths['/v1/models']!['get']!.security).toEqual([
    { bearer: ['complete'] },
    { key: ['complete'] },
    { bearer: ['read'] },
    { key: ['read'] },
  ]);
});
