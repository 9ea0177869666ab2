/** Endpoints and schemas -> a description of the server in the form of OpenAPI 3.1. */
import { packageVersion } from '../../../common/index.ts';
import type { ErrorForm } from '../../../protocol/index.ts';
import type { Endpoint } from './endpoint.ts';
import type { HandlerSettings } from './handler-options.ts';

type Definitions = Readonly<Record<string, object>>;

/** Keys of our schemas that JSON Schema does not have. */
const ANNOTATIONS = new Set(['bounds', 'expected', 'keepsNull', 'secret', 'tsType']);

const text = { type: 'string' };
const ERROR = {
  type: 'object',
  required: ['message', 'type', 'code'],
  properties: { message: text, type: text, code: text, param: { type: ['string', 'null'] }, detail: {} },
};

/** Bodies of errors: docs/serving.md#errors-over-http. */
const ERRORS: Readonly<Record<ErrorForm, object>> = {
  completion: { type: 'object', required: ['error'], properties: { error: ERROR } },
  messages: {
    type: 'object',
    required: ['type', 'error'],
    properties: { type: { const: 'error' }, error: ERROR },
  },
  ollama: { type: 'object', required: ['error'], properties: { error: text } },
  preview: { type: 'object', required: ['detail'], properties: { detail: { type: ['string', 'array'] } } },
};

const ABOUT =
  'Answers of language models in the forms of several APIs, and training. Fields that a schema lacks are ignored and listed in the header `X-Ignored-Fields`, unless they resemble one that it has.';

/** Describes the endpoints. The schemas of bodies are those with which requests are checked. */
export function toOpenApi(
  endpoints: readonly Endpoint[],
  definitions: Definitions,
  { basePath, tokens }: Pick<HandlerSettings, 'basePath' | 'tokens'>,
): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] ??= {};
    paths[endpoint.path]![endpoint.method.toLowerCase()] = toOperation(
      endpoint,
      definitions,
      tokens.length > 0,
    );
  }
  const named = endpoints.flatMap((one) => (one.schema && !hasQuery(one) ? [one.schema] : []));
  return {
    openapi: '3.1.0',
    info: { title: 'onpolicy', version: packageVersion(), description: ABOUT },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    paths,
    components: {
      schemas: withReferred(named, definitions),
      responses: Object.fromEntries(
        Object.entries(ERRORS).map(([form, schema]) => [
          `${form}Error`,
          { description: 'An error.', content: { 'application/json': { schema } } },
        ]),
      ),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        key: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
      },
    },
  };
}

function toOperation(endpoint: Endpoint, definitions: Definitions, hasTokens: boolean): object {
  const { method, path, scopes, docs, schema, name, form } = endpoint;
  const query = schema && hasQuery(endpoint) ? toQuery(definitions[schema]!) : [];
  const id = path.includes('{id}') ? [{ name: 'id', in: 'path', required: true, schema: text }] : [];
  const parameters = [...id, ...query];
  const security = (scopes ?? []).flatMap((scope) => [{ bearer: [scope] }, { key: [scope] }]);
  return {
    operationId: name ?? `${method}${path}`.toLowerCase().replace(/\W+/g, '_').replace(/_$/, ''),
    description: docs.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'), // links lead to files of the docs
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(hasQuery(endpoint) ? {} : toBody(endpoint)),
    responses: { '2XX': toAnswer(endpoint), default: { $ref: `#/components/responses/${form}Error` } },
    security: hasTokens ? security : [],
  };
}

/** Returns true if the fields of an endpoint's schema are in the URL. */
function hasQuery({ method, schema }: Endpoint): boolean {
  return method === 'GET' || schema === 'PrefixCacheQuery';
}

function toBody({ upload, schema }: Endpoint): object {
  if (!upload && !schema) return {};
  const fields = Object.fromEntries((upload ?? []).map((field) => [field, field === 'file' ? {} : text]));
  const content = upload
    ? { 'multipart/form-data': { schema: { type: 'object', required: upload, properties: fields } } }
    : { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } };
  return { requestBody: { required: true, content } };
}

function toAnswer({ type, isAnswered, form }: Endpoint): object {
  const stream = form === 'ollama' ? 'application/x-ndjson' : 'text/event-stream';
  const types = [type, ...(isAnswered ? [stream] : [])];
  return { description: 'The answer.', content: Object.fromEntries(types.map((one) => [one, {}])) };
}

function toQuery({ properties = {} }: { readonly properties?: Definitions }): object[] {
  return Object.entries(properties).map(([name, property]) => {
    const { description = '', ...schema } = toPlain(property) as { description?: string };
    return { name, in: 'query', required: false, description, schema };
  });
}

/** Returns the schemas with these names and all that they refer to, by name. */
function withReferred(names: readonly string[], definitions: Definitions): object {
  const found = new Set(names);
  for (const name of found) // also those that are added here
    for (const [, other] of JSON.stringify(definitions[name]).matchAll(/"#\/\$defs\/(\w+)"/g))
      found.add(other!);
  return Object.fromEntries([...found].sort().map((name) => [name, toPlain(definitions[name])]));
}

/** Returns a schema in plain JSON Schema. */
function toPlain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toPlain);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, inner]): [string, unknown][] => {
    if (ANNOTATIONS.has(key) && typeof inner !== 'object') return []; // a property may have such a name
    if (key === '$ref') return [[key, String(inner).replace('#/$defs/', '#/components/schemas/')]];
    return [[key, toPlain(inner)]];
  });
  return Object.fromEntries(entries);
}
