/** Method and path -> endpoint. */
import type { Scope } from './options.ts';
import type { ErrorForm } from './wire-errors.ts';

/** Names of the endpoints. */
export type EndpointName =
  | 'health'
  | 'metrics'
  | 'createCompletion'
  | 'listServedModels'
  | 'retrieveServedModel'
  | 'createModel'
  | 'listModels'
  | 'retrieveModel'
  | 'deleteModel'
  | 'logTrajectories'
  | 'listCheckpoints'
  | 'deleteCheckpoints'
  | 'showReport'
  | 'createTrainingJob'
  | 'retrieveTrainingJob'
  | 'listTrainingJobEvents'
  | 'cancelTrainingJob';

/** One endpoint. */
export type Endpoint = {
  readonly name: EndpointName;
  readonly method: string;
  /** Segments; `{id}` stands for any. */
  readonly path: string;
  /** A token needs one of these; null: no token is needed. */
  readonly scopes: readonly Scope[] | null;
  readonly form: ErrorForm;
};

type Row = readonly [name: EndpointName, method: string, path: string, scopes: readonly Scope[] | null];

const PREVIEW = '/v1/preview/';

const ROWS: readonly Row[] = [
  ['health', 'GET', '/health', null],
  ['metrics', 'GET', '/metrics', ['read']],
  ['createCompletion', 'POST', '/v1/chat/completions', ['complete']],
  ['listServedModels', 'GET', '/v1/models', ['complete', 'read']],
  ['retrieveServedModel', 'GET', '/v1/models/{id}', ['complete', 'read']],
  ['createModel', 'POST', '/v1/preview/models', ['train']],
  ['listModels', 'GET', '/v1/preview/models', ['read']],
  ['retrieveModel', 'GET', '/v1/preview/models/{id}', ['read']],
  ['deleteModel', 'DELETE', '/v1/preview/models/{id}', ['admin']],
  ['logTrajectories', 'POST', '/v1/preview/models/{id}/log', ['train']],
  ['listCheckpoints', 'GET', '/v1/preview/models/{id}/checkpoints', ['read']],
  ['deleteCheckpoints', 'DELETE', '/v1/preview/models/{id}/checkpoints', ['admin']],
  ['showReport', 'GET', '/v1/preview/models/{id}/report', ['read']],
  ['createTrainingJob', 'POST', '/v1/preview/training-jobs', ['train']],
  ['retrieveTrainingJob', 'GET', '/v1/preview/training-jobs/{id}', ['read']],
  ['listTrainingJobEvents', 'GET', '/v1/preview/training-jobs/{id}/events', ['read']],
  ['cancelTrainingJob', 'POST', '/v1/preview/training-jobs/{id}/cancel', ['train']],
];

/** All endpoints. */
export const endpoints: readonly Endpoint[] = ROWS.map(([name, method, path, scopes]) => ({
  name,
  method,
  path,
  scopes,
  form: path.startsWith(PREVIEW) ? 'preview' : 'completion',
}));

/** What a path leads to. */
export type Found = {
  /** One per method. Empty: there is nothing at this path. */
  readonly endpoints: readonly Endpoint[];
  /** What stands for `{id}`. */
  readonly id: string;
};

const NOTHING: Found = { endpoints: [], id: '' };

/** Every path once, with what is at it. */
const PLACES = [...new Set(ROWS.map(([, , path]) => path))].map((path) => ({
  pattern: path.split('/'),
  endpoints: endpoints.filter((endpoint) => endpoint.path === path),
}));

/** The places whose path is always the same. */
const FIXED = new Map<string, Found>(
  PLACES.filter(({ pattern }) => !pattern.includes('{id}')).map(({ pattern, endpoints }) => [
    pattern.join('/'),
    { endpoints, id: '' },
  ]),
);

/** Finds what is at a path, with or without a slash at its end. */
export function findEndpoints(path: string): Found {
  const fixed = FIXED.get(path);
  if (fixed) return fixed;
  const segments = path.replace(/\/$/, '').split('/');
  const place = PLACES.find(({ pattern }) => matches(pattern, segments));
  if (!place) return NOTHING;
  const position = place.pattern.indexOf('{id}');
  const id = position < 0 ? '' : decoded(segments[position]!);
  return id === null ? NOTHING : { endpoints: place.endpoints, id };
}

/** The form of errors below a path, also where there is nothing. */
export function formOf(path: string): ErrorForm {
  return path.startsWith(PREVIEW) ? 'preview' : 'completion';
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, i) => (part === '{id}' ? segments[i] !== '' : part === segments[i]))
  );
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
