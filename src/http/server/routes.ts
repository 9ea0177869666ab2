/** Path -> its endpoints, one per method. */

import type { RunOperation, Scope } from '../../protocol/index.ts';
import type { ErrorForm } from '../../wires/index.ts';

/** Names of the endpoints. */
export type EndpointName =
  | 'health'
  | 'metrics'
  | 'version'
  | 'createCompletion'
  | 'createTextCompletion'
  | 'createEmbeddings'
  | 'createTranscription'
  | 'rerank'
  | 'score'
  | 'classify'
  | 'createMessage'
  | 'countTokens'
  | 'createResponse'
  | 'countInputTokens'
  | 'compactResponse'
  | 'retrieveResponse'
  | 'deleteResponse'
  | 'listInputItems'
  | 'ollamaRoot'
  | 'ollamaChat'
  | 'ollamaGenerate'
  | 'ollamaEmbed'
  | 'ollamaEmbeddings'
  | 'ollamaTags'
  | 'ollamaShow'
  | 'ollamaLoaded'
  | 'ollamaPull'
  | 'ollamaVersion'
  | 'createFile'
  | 'listFiles'
  | 'retrieveFile'
  | 'deleteFile'
  | 'readFileContent'
  | 'createBatch'
  | 'listBatches'
  | 'retrieveBatch'
  | 'cancelBatch'
  | 'renderPrompt'
  | 'tokenize'
  | 'detokenize'
  | 'loadAdapter'
  | 'unloadAdapter'
  | 'listServedModels'
  | 'retrieveServedModel'
  | 'listLoadedModels'
  | 'createModel'
  | 'listModels'
  | 'retrieveModel'
  | 'deleteModel'
  | 'logTrajectories'
  | 'listCheckpoints'
  | 'deleteCheckpoints'
  | 'showReport'
  | 'createTrainingJob'
  | 'listTrainingJobs'
  | 'retrieveTrainingJob'
  | 'listTrainingJobEvents'
  | 'cancelTrainingJob'
  | 'createSftJob'
  | 'listBaseModels'
  | 'createTrainingRun'
  | 'listTrainingRuns'
  | 'retrieveTrainingRun'
  | 'closeTrainingRun'
  | 'deleteTrainingRun'
  | 'retrieveTrainingResult'
  | `training:${RunOperation}`;

/** One endpoint. */
export type Endpoint = {
  readonly name: EndpointName;
  readonly method: string;
  /** Path pattern; `{id}` matches any segment. */
  readonly path: string;
  /** A token needs one of these scopes; null: no token needed. */
  readonly scopes: readonly Scope[] | null;
  readonly form: ErrorForm;
};

type Row = readonly [name: EndpointName, method: string, path: string, scopes: readonly Scope[] | null];

const PREVIEW = '/v1/preview/';
const TRAINING = '/v1/training/';
const MESSAGES = '/v1/messages';
const OLLAMA = '/api/';

const ROWS: readonly Row[] = [
  ['health', 'GET', '/health', null],
  ['metrics', 'GET', '/metrics', ['read']],
  ['version', 'GET', '/version', null],
  ['createCompletion', 'POST', '/v1/chat/completions', ['complete']],
  ['createTextCompletion', 'POST', '/v1/completions', ['complete']],
  ['createEmbeddings', 'POST', '/v1/embeddings', ['complete']],
  ['createTranscription', 'POST', '/v1/audio/transcriptions', ['complete']],
  ...['/v1/rerank', '/v2/rerank', '/rerank'].map((path): Row => ['rerank', 'POST', path, ['complete']]),
  ...['/v1/score', '/score'].map((path): Row => ['score', 'POST', path, ['complete']]),
  ...['/v1/classify', '/classify'].map((path): Row => ['classify', 'POST', path, ['complete']]),
  ['createMessage', 'POST', '/v1/messages', ['complete']],
  ['countTokens', 'POST', '/v1/messages/count_tokens', ['complete']],
  ['createResponse', 'POST', '/v1/responses', ['complete']],
  ['countInputTokens', 'POST', '/v1/responses/input_tokens', ['complete']],
  ['compactResponse', 'POST', '/v1/responses/compact', ['complete']],
  ['retrieveResponse', 'GET', '/v1/responses/{id}', ['complete']],
  ['deleteResponse', 'DELETE', '/v1/responses/{id}', ['complete']],
  ['listInputItems', 'GET', '/v1/responses/{id}/input_items', ['complete']],
  ['ollamaRoot', 'GET', '/', null],
  ['ollamaChat', 'POST', '/api/chat', ['complete']],
  ['ollamaGenerate', 'POST', '/api/generate', ['complete']],
  ['ollamaEmbed', 'POST', '/api/embed', ['complete']],
  ['ollamaEmbeddings', 'POST', '/api/embeddings', ['complete']],
  ['ollamaTags', 'GET', '/api/tags', ['complete', 'read']],
  ['ollamaShow', 'POST', '/api/show', ['complete', 'read']],
  ['ollamaLoaded', 'GET', '/api/ps', ['complete', 'read']],
  ['ollamaPull', 'POST', '/api/pull', ['complete']],
  ['ollamaVersion', 'GET', '/api/version', null],
  ['createFile', 'POST', '/v1/files', ['complete']],
  ['listFiles', 'GET', '/v1/files', ['complete']],
  ['retrieveFile', 'GET', '/v1/files/{id}', ['complete']],
  ['deleteFile', 'DELETE', '/v1/files/{id}', ['complete']],
  ['readFileContent', 'GET', '/v1/files/{id}/content', ['complete']],
  ['createBatch', 'POST', '/v1/batches', ['complete']],
  ['listBatches', 'GET', '/v1/batches', ['complete']],
  ['retrieveBatch', 'GET', '/v1/batches/{id}', ['complete']],
  ['cancelBatch', 'POST', '/v1/batches/{id}/cancel', ['complete']],
  ['renderPrompt', 'POST', '/v1/chat/completions/render', ['complete']],
  ['tokenize', 'POST', '/tokenize', ['complete']],
  ['detokenize', 'POST', '/detokenize', ['complete']],
  ['loadAdapter', 'POST', '/v1/load_lora_adapter', ['admin']],
  ['unloadAdapter', 'POST', '/v1/unload_lora_adapter', ['admin']],
  ['listServedModels', 'GET', '/v1/models', ['complete', 'read']],
  ['retrieveServedModel', 'GET', '/v1/models/{id}', ['complete', 'read']],
  ['listLoadedModels', 'GET', '/v1/preview/loaded-models', ['read']],
  ['createModel', 'POST', '/v1/preview/models', ['train']],
  ['listModels', 'GET', '/v1/preview/models', ['read']],
  ['retrieveModel', 'GET', '/v1/preview/models/{id}', ['read']],
  ['deleteModel', 'DELETE', '/v1/preview/models/{id}', ['admin']],
  ['logTrajectories', 'POST', '/v1/preview/models/{id}/log', ['train']],
  ['listCheckpoints', 'GET', '/v1/preview/models/{id}/checkpoints', ['read']],
  ['deleteCheckpoints', 'DELETE', '/v1/preview/models/{id}/checkpoints', ['admin']],
  ['showReport', 'GET', '/v1/preview/models/{id}/report', ['read']],
  ['createTrainingJob', 'POST', '/v1/preview/training-jobs', ['train']],
  ['listTrainingJobs', 'GET', '/v1/preview/training-jobs', ['read']],
  ['retrieveTrainingJob', 'GET', '/v1/preview/training-jobs/{id}', ['read']],
  ['listTrainingJobEvents', 'GET', '/v1/preview/training-jobs/{id}/events', ['read']],
  ['cancelTrainingJob', 'POST', '/v1/preview/training-jobs/{id}/cancel', ['train']],
  ['createSftJob', 'POST', '/v1/preview/sft-training-jobs', ['train']],
  ['listBaseModels', 'GET', '/v1/preview/base-models', ['read']],
  ['createTrainingRun', 'POST', '/v1/training/runs', ['train']],
  ['listTrainingRuns', 'GET', '/v1/training/runs', ['read']],
  ['retrieveTrainingRun', 'GET', '/v1/training/runs/{id}', ['read']],
  ['closeTrainingRun', 'POST', '/v1/training/runs/{id}/close', ['train']],
  ['deleteTrainingRun', 'DELETE', '/v1/training/runs/{id}', ['train']],
  ['training:forward', 'POST', '/v1/training/runs/{id}/forward', ['train']],
  ['training:forward_backward', 'POST', '/v1/training/runs/{id}/forward_backward', ['train']],
  ['training:optim_step', 'POST', '/v1/training/runs/{id}/optim_step', ['train']],
  ['training:save_state', 'POST', '/v1/training/runs/{id}/save_state', ['train']],
  ['training:load_state', 'POST', '/v1/training/runs/{id}/load_state', ['train']],
  ['training:save_weights_for_sampler', 'POST', '/v1/training/runs/{id}/save_weights_for_sampler', ['train']],
  ['training:sample', 'POST', '/v1/training/runs/{id}/sample', ['train']],
  ['retrieveTrainingResult', 'GET', '/v1/training/requests/{id}', ['train']],
];

/** All endpoints. */
export const endpoints: readonly Endpoint[] = ROWS.map(([name, method, path, scopes]) => ({
  name,
  method,
  path,
  scopes,
  form: formOf(path),
}));

/** The endpoints at a path. */
export type Found = {
  /** One per method; empty for an unknown path. */
  readonly endpoints: readonly Endpoint[];
  /** The segment at `{id}`. */
  readonly id: string;
};

const NO_ENDPOINT: Found = { endpoints: [], id: '' };

/** Each path pattern with its endpoints. */
const PATTERNS = [...new Set(ROWS.map(([, , path]) => path))].map((path) => ({
  pattern: path.split('/'),
  endpoints: endpoints.filter((endpoint) => endpoint.path === path),
}));

/** The patterns without `{id}`, found by one look-up. */
const FIXED = new Map<string, Found>(
  PATTERNS.filter(({ pattern }) => !pattern.includes('{id}')).map(({ pattern, endpoints }) => [
    pattern.join('/'),
    { endpoints, id: '' },
  ]),
);

/** Finds the endpoints at a path, with or without a trailing slash. */
export function findEndpoints(path: string): Found {
  const fixed = FIXED.get(path);
  if (fixed) return fixed;
  const segments = path.replace(/\/$/, '').split('/');
  const found = PATTERNS.find(({ pattern }) => matches(pattern, segments));
  if (!found) return NO_ENDPOINT;
  const position = found.pattern.indexOf('{id}');
  const id = position < 0 ? '' : decoded(segments[position]!);
  return id === null ? NO_ENDPOINT : { endpoints: found.endpoints, id };
}

/** The form of errors at a path, unknown paths included. */
export function formOf(path: string): ErrorForm {
  if (path.startsWith(PREVIEW) || path.startsWith(TRAINING)) return 'preview';
  if (path.startsWith(OLLAMA)) return 'ollama';
  return path === MESSAGES || path.startsWith(`${MESSAGES}/`) ? 'messages' : 'completion';
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
