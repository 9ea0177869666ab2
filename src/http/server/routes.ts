/** Path -> its endpoints, one per method, and their handlers. */
import { packageVersion } from '../../common/index.ts';
import { RUN_OPERATIONS, type RunOperation, type Scope } from '../../protocol/index.ts';
import { methods } from '../../service.ts';
import type { ErrorForm } from '../../wires/index.ts';
import { RESOURCE_ROWS } from '../resource-rows.ts';
import * as adapters from './adapter-endpoints.ts';
import * as batches from './batch-endpoints.ts';
import * as chats from './chat-endpoints.ts';
import type { EndpointHandler } from './context.ts';
import * as messages from './message-endpoints.ts';
import { methodEndpoint } from './method-endpoints.ts';
import * as models from './model-endpoints.ts';
import * as served from './model-list.ts';
import * as ollama from './ollama-endpoints.ts';
import * as ollamaModels from './ollama-model-endpoints.ts';
import { resourceEndpoint } from './resource-endpoints.ts';
import * as responses from './response-endpoints.ts';
import { createTextCompletion } from './text-endpoints.ts';
import * as tokens from './token-endpoints.ts';
import * as runs from './training-run-endpoints.ts';
import { createTranscription } from './transcription-endpoints.ts';
import { json, text } from './wire.ts';

export type Endpoint = {
  readonly method: string;
  /** Path pattern; `{id}` matches any segment. */
  readonly path: string;
  /** A token needs one of these scopes; null: no token needed. */
  readonly scopes: readonly Scope[] | null;
  readonly handle: EndpointHandler;
  readonly form: ErrorForm;
};

type Row = readonly [method: string, path: string, scopes: readonly Scope[] | null, handle: EndpointHandler];

const PREVIEW = '/v1/preview/';
const TRAINING = '/v1/training/';
const MESSAGES = '/v1/messages';
const OLLAMA = '/api/';

const operations = Object.keys(RUN_OPERATIONS) as RunOperation[];

const ROWS: readonly Row[] = [
  ['GET', '/health', null, async () => json({ status: 'ok' })],
  ['GET', '/metrics', ['read'], models.metrics],
  ['GET', '/version', null, async () => json({ version: packageVersion() })],
  ['POST', '/v1/chat/completions', ['complete'], chats.createCompletion],
  ['POST', '/v1/completions', ['complete'], createTextCompletion],
  ...methods.flatMap(([name, { path, texts }]): Row[] =>
    path && texts ? [['POST', path, ['complete'], methodEndpoint(name)]] : [],
  ),
  ['POST', '/v1/audio/transcriptions', ['complete'], createTranscription],
  ['POST', '/v2/rerank', ['complete'], methodEndpoint('rerank')],
  ['POST', '/rerank', ['complete'], methodEndpoint('rerank')],
  ['POST', '/score', ['complete'], methodEndpoint('score')],
  ['POST', '/classify', ['complete'], methodEndpoint('classify')],
  ['POST', '/v1/messages', ['complete'], messages.createMessage],
  ['POST', '/v1/messages/count_tokens', ['complete'], messages.countTokens],
  ['POST', '/v1/responses', ['complete'], responses.askResponses('answer')],
  ['POST', '/v1/responses/input_tokens', ['complete'], responses.askResponses('countInputTokens')],
  ['POST', '/v1/responses/compact', ['complete'], responses.askResponses('compact')],
  ['GET', '/v1/responses/{id}', ['complete'], responses.retrieveResponse],
  ['DELETE', '/v1/responses/{id}', ['complete'], responses.deleteResponse],
  ['GET', '/v1/responses/{id}/input_items', ['complete'], responses.listInputItems],
  ['GET', '/', null, async () => text('Ollama is running')],
  ['POST', '/api/chat', ['complete'], ollama.ollamaChat],
  ['POST', '/api/generate', ['complete'], ollama.ollamaGenerate],
  ['POST', '/api/embed', ['complete'], ollama.ollamaEmbed],
  ['POST', '/api/embeddings', ['complete'], ollama.ollamaEmbeddings],
  ['GET', '/api/tags', ['complete', 'read'], ollamaModels.ollamaTags],
  ['POST', '/api/show', ['complete', 'read'], ollamaModels.ollamaShow],
  ['GET', '/api/ps', ['complete', 'read'], ollamaModels.ollamaLoaded],
  ['POST', '/api/pull', ['complete'], ollamaModels.ollamaPull],
  ['GET', '/api/version', null, ollamaModels.ollamaVersion],
  ['POST', '/v1/files', ['complete'], batches.createFile],
  ['GET', '/v1/files', ['complete'], batches.listFiles],
  ['GET', '/v1/files/{id}', ['complete'], batches.retrieveFile],
  ['DELETE', '/v1/files/{id}', ['complete'], batches.deleteFile],
  ['GET', '/v1/files/{id}/content', ['complete'], batches.readFileContent],
  ['POST', '/v1/batches', ['complete'], batches.createBatch],
  ['GET', '/v1/batches', ['complete'], batches.listBatches],
  ['GET', '/v1/batches/{id}', ['complete'], batches.retrieveBatch],
  ['POST', '/v1/batches/{id}/cancel', ['complete'], batches.cancelBatch],
  ['POST', '/v1/chat/completions/render', ['complete'], chats.renderPrompt],
  ['POST', '/tokenize', ['complete'], tokens.tokenize],
  ['POST', '/detokenize', ['complete'], tokens.detokenize],
  ['POST', '/v1/load_lora_adapter', ['admin'], adapters.loadAdapter],
  ['POST', '/v1/unload_lora_adapter', ['admin'], adapters.unloadAdapter],
  ['GET', '/v1/models', ['complete', 'read'], served.listServedModels],
  ['GET', '/v1/models/{id}', ['complete', 'read'], served.retrieveServedModel],
  ['GET', '/v1/preview/loaded-models', ['read'], models.listLoadedModels],
  ...RESOURCE_ROWS.map((row): Row => [row[2], row[3], [row[4]], resourceEndpoint(row)]),
  ['POST', '/v1/preview/models/{id}/log', ['train'], models.logTrajectories],
  ['GET', '/v1/preview/models/{id}/report', ['read'], models.showReport],
  ['POST', '/v1/preview/training-jobs', ['train'], models.createTrainingJob],
  ['GET', '/v1/preview/training-jobs/{id}/events', ['read'], models.listTrainingJobEvents],
  ['POST', '/v1/preview/sft-training-jobs', ['train'], models.createSftJob],
  ['GET', '/v1/preview/base-models', ['read'], models.listBaseModels],
  ['GET', '/v1/training/runs', ['read'], runs.listTrainingRuns],
  ...operations.map(
    (operation): Row => [
      'POST',
      `/v1/training/runs/{id}/${operation}`,
      ['train'],
      runs.trainingStep(operation),
    ],
  ),
  ['GET', '/v1/training/requests/{id}', ['train'], runs.retrieveTrainingResult],
];

export const endpoints: readonly Endpoint[] = ROWS.map(([method, path, scopes, handle]) => ({
  method,
  path,
  scopes,
  handle,
  form: formOf(path),
}));

export type Found = {
  /** One per method; empty for an unknown path. */
  readonly endpoints: readonly Endpoint[];
  /** The segment at `{id}`. */
  readonly id: string;
};

/** Each path pattern with its endpoints. */
const PATTERNS = [...new Set(ROWS.map(([, path]) => path))].map((path) => ({
  pattern: path.split('/'),
  endpoints: endpoints.filter((endpoint) => endpoint.path === path),
}));

/** Finds the endpoints at a path, with or without a trailing slash. */
export function findEndpoints(path: string): Found {
  const segments = path.replace(/(?<=.)\/$/, '').split('/');
  const found = PATTERNS.find(({ pattern }) => matches(pattern, segments));
  const id = decoded(segments[found?.pattern.indexOf('{id}') ?? -1] ?? '');
  return found && id !== null ? { endpoints: found.endpoints, id } : { endpoints: [], id: '' };
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
