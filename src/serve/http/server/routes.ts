/** Path -> its endpoints, one per method, and their handlers. The table of methods comes first, then other APIs. */
import { packageVersion } from '../../../common/index.ts';
import { type ErrorForm, RUN_OPERATIONS, type RunOperation, type Scope } from '../../../protocol/index.ts';
import { CONTROL_PATH, type MethodName, methods, PREVIEW } from '../../../protocol/service/index.ts';
import * as adapters from './adapter-endpoints.ts';
import * as batches from './batch-endpoints.ts';
import { answerChats } from './chat-batch-endpoint.ts';
import type { EndpointHandler } from './context.ts';
import { controlChat } from './control-endpoint.ts';
import { decide } from './decision-endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import { listJobEvents } from './job-event-endpoint.ts';
import * as messages from './message-endpoints.ts';
import { checkAndCall, methodEndpoint } from './method-endpoints.ts';
import * as models from './model-endpoints.ts';
import * as served from './model-list.ts';
import * as ollama from './ollama-endpoints.ts';
import * as ollamaModels from './ollama-model-endpoints.ts';
import { toOpenApi } from './open-api.ts';
import * as page from './page-endpoints.ts';
import * as responses from './response-endpoints.ts';
import * as texts from './text-endpoints.ts';
import * as tinker from './tinker-endpoints.ts';
import * as tokens from './token-endpoints.ts';
import * as runs from './training-run-endpoints.ts';
import { createTranscription } from './transcription-endpoints.ts';
import { json } from './wire.ts';

/** A row of the table below. What its last item leaves out is null or false, and the answer is JSON. */
type Row = readonly [
  method: string,
  path: string,
  scopes: readonly Scope[] | null,
  handle: EndpointHandler,
  docs: string,
  more?: Partial<Pick<Endpoint, 'schema' | 'upload' | 'type' | 'name' | 'isAnswered'>>,
];

const TRAINING = '/v1/training/';
const MESSAGES = '/v1/messages';
const OLLAMA = '/api/';

/** Handlers of methods whose request or answer over HTTP differs from that of the method itself. */
const OWN: { readonly [Name in MethodName]?: EndpointHandler } = {
  decide,
  parseAnswer: async (context) => json(await checkAndCall('parseAnswer', context)), // without its usage: other calls spent it
  createMessage: messages.createMessage,
  createResponse: responses.askResponses('answer'),
  transcribe: createTranscription,
  loaded: models.listLoadedModels,
  loadAdapter: adapters.loadAdapter,
  unloadAdapter: adapters.unloadAdapter,
  report: models.showReport,
  resetPrefixCache: models.resetPrefixCache,
  servedModels: models.listBaseModels,
  train: models.createTrainingJob,
  sft: models.createSftJob,
  'trainingJobs.events': listJobEvents,
  'trainingRuns.list': runs.listTrainingRuns,
  'trainingRuns.result': runs.retrieveTrainingResult,
};

/** Methods whose body is a form, or whose answer is not JSON. */
const FORMS: { readonly [Name in MethodName]?: Partial<Endpoint> } = {
  transcribe: { upload: ['file'] },
  report: { type: 'text/html' },
};

/** Returns the endpoints of a method: one, or one for each operation of a training run. */
function rowsOf([name, { http, docs = '', Stream, answers, schema: own }]: (typeof methods)[number]): Row[] {
  if (!http) return [];
  const [method, path, scope] = http;
  if (name === 'trainingRuns.call')
    return (Object.keys(RUN_OPERATIONS) as RunOperation[]).map((operation) => [
      method,
      path.replace('{operation}', operation),
      [scope],
      runs.trainingStep(operation),
      docs,
      { schema: RUN_OPERATIONS[operation], name: `trainingRuns.${operation}` },
    ]);
  const isAnswered = Boolean(Stream || answers);
  const schema = own ?? null;
  return [
    [
      method,
      path,
      [scope],
      OWN[name] ?? methodEndpoint(name),
      docs,
      { schema, name, isAnswered, ...FORMS[name] },
    ],
  ];
}

/** Descriptions that several endpoints share. */
const FILES = 'files of the token, [for batches](batch.md#over-http)';
const BATCHES = '[batches](batch.md#over-http)';
const STORED = 'stored responses; `?stream=true` as events';
const OLLAMA_API = "[Ollama's API](clients.md#ollamas-api), streamed by default";
const TOKENS = '[texts and tokens](clients.md#prompts-and-tokens)';
const AVAILABLE =
  "available models: the default model, the aliases, the models of the option `models` and the registered ones. In OpenAI's form, with `max_model_len` and `architecture` (`input_modalities`: `text`, `image`; `output_modalities`: `text`, `embeddings`, `rerank`, `decisions`); in Anthropic's with the header `Anthropic-Version`";
const OLLAMA_MODELS = 'its models';
const CONTROL =
  '`{ id, action: "reasoning_end" }` ends the reasoning of a stream of the same client, [as llama.cpp](chat-formats.md#ending-reasoning)';
const CHATS =
  'several conversations: `messages` is a list of them, and the answer has the choices of all, [as in vLLM](clients.md#endpoints-of-vllm-and-llamacpp)';
const TOKEN_IDS = '[tokens in, tokens out](clients.md#endpoints-of-vllm-and-llamacpp), as in vLLM';
const INFILL = '[a text between two others](clients.md#endpoints-of-vllm-and-llamacpp), as in llama.cpp';
const OTHER_PATHS = 'the same, for clients of other servers';
const OLLAMA_CLIENTS = "for Ollama's clients";
const SYSTEM_ONE = "decisions, for [TypeSafe's clients](decisions.md#over-http)";
const PROMPT_TOKENS = 'tokens of a prompt';
const TINKER = "[Tinker's API](training.md#tinkers-python-package), for its Python package";

/** `GET /openapi.json`. The schemas are loaded by the first request for them. */
const showOpenApi: EndpointHandler = async ({ settings }) => {
  const { definitions } = await import('../../../protocol/schemas/index.ts');
  return json(toOpenApi(endpoints, definitions, settings));
};

const ROWS: readonly Row[] = [
  ...methods.flatMap(rowsOf),
  ['POST', CONTROL_PATH, ['complete'], controlChat, CONTROL, { schema: 'ChatControlBody' }],
  [
    'POST',
    '/v1/chat/completions/batch',
    ['complete'],
    answerChats,
    CHATS,
    { schema: 'ChatCompletionRequest', isAnswered: true },
  ],
  [
    'POST',
    '/inference/v1/generate',
    ['complete'],
    texts.generate,
    TOKEN_IDS,
    { schema: 'GenerateBody', isAnswered: true },
  ],
  [
    'POST',
    '/v1/completions/render',
    ['complete'],
    texts.renderTexts,
    TOKEN_IDS,
    { schema: 'TextCompletionRequest' },
  ],
  [
    'POST',
    '/v1/completions/derender',
    ['complete'],
    texts.derenderTexts,
    TOKEN_IDS,
    { schema: 'DerenderBody' },
  ],
  ['POST', '/infill', ['complete'], texts.infill, INFILL, { schema: 'InfillBody', isAnswered: true }],
  ['POST', '/v2/rerank', ['complete'], methodEndpoint('rerank'), OTHER_PATHS, { schema: 'RerankRequest' }],
  ['POST', '/rerank', ['complete'], methodEndpoint('rerank'), OTHER_PATHS, { schema: 'RerankRequest' }],
  ['POST', '/score', ['complete'], methodEndpoint('score'), OTHER_PATHS, { schema: 'ScoreRequest' }],
  ['POST', '/classify', ['complete'], methodEndpoint('classify'), OTHER_PATHS, { schema: 'ClassifyRequest' }],
  ['POST', '/v1/systemone', ['complete'], decide, SYSTEM_ONE, { schema: 'SystemOneRequest' }],
  ['POST', '/systemone', ['complete'], decide, SYSTEM_ONE, { schema: 'SystemOneRequest' }],
  [
    'POST',
    '/v1/messages/count_tokens',
    ['complete'],
    messages.countTokens,
    PROMPT_TOKENS,
    { schema: 'MessageCountRequest' },
  ],
  [
    'POST',
    '/v1/responses/input_tokens',
    ['complete'],
    responses.askResponses('countInputTokens'),
    PROMPT_TOKENS,
    { schema: 'ResponseRequest' },
  ],
  [
    'POST',
    '/v1/responses/compact',
    ['complete'],
    responses.askResponses('compact'),
    '[a shorter conversation](clients.md#openais-responses)',
    { schema: 'ResponseRequest', isAnswered: true },
  ],
  ['GET', '/v1/responses/{id}', ['complete'], responses.retrieveResponse, STORED],
  ['DELETE', '/v1/responses/{id}', ['complete'], responses.deleteResponse, STORED],
  [
    'POST',
    '/v1/responses/{id}/cancel',
    ['complete'],
    responses.cancelResponse,
    'ends a response that is being streamed to the same client',
  ],
  ['GET', '/v1/responses/{id}/input_items', ['complete'], responses.listInputItems, STORED],
  [
    'GET',
    '/',
    null,
    page.showPage,
    "the [chat page](#the-chat-page) for browsers, with the option `page`; for Ollama's clients",
    { type: 'text/html' },
  ],
  ['GET', '/page/{id}', null, page.showPageFile, 'a file of the page', { type: 'text/*' }],
  [
    'POST',
    '/api/chat',
    ['complete'],
    ollama.ollamaChat,
    OLLAMA_API,
    { schema: 'OllamaChatRequest', isAnswered: true },
  ],
  [
    'POST',
    '/api/generate',
    ['complete'],
    ollama.ollamaGenerate,
    OLLAMA_API,
    { schema: 'OllamaGenerateRequest', isAnswered: true },
  ],
  ['POST', '/api/embed', ['complete'], ollama.ollamaEmbed, OLLAMA_API, { schema: 'OllamaEmbedRequest' }],
  [
    'POST',
    '/api/embeddings',
    ['complete'],
    ollama.ollamaEmbeddings,
    OLLAMA_API,
    { schema: 'OllamaEmbeddingsRequest' },
  ],
  ['GET', '/api/tags', ['complete', 'read'], ollamaModels.ollamaTags, OLLAMA_MODELS],
  [
    'POST',
    '/api/show',
    ['complete', 'read'],
    ollamaModels.ollamaShow,
    OLLAMA_MODELS,
    { schema: 'OllamaModelRequest' },
  ],
  ['GET', '/api/ps', ['complete', 'read'], ollamaModels.ollamaLoaded, OLLAMA_MODELS],
  ['POST', '/api/pull', ['complete'], ollamaModels.ollamaPull, OLLAMA_API, { schema: 'OllamaModelRequest' }],
  ['GET', '/api/version', null, ollamaModels.ollamaVersion, OLLAMA_CLIENTS],
  ...tinkerRows(),
  ['POST', '/v1/files', ['complete'], batches.createFile, FILES, { upload: ['file', 'purpose'] }],
  ['GET', '/v1/files', ['complete'], batches.listFiles, FILES],
  ['GET', '/v1/files/{id}', ['complete'], batches.retrieveFile, FILES],
  ['DELETE', '/v1/files/{id}', ['complete'], batches.deleteFile, FILES],
  [
    'GET',
    '/v1/files/{id}/content',
    ['complete'],
    batches.readFileContent,
    FILES,
    { type: 'application/octet-stream' },
  ],
  ['POST', '/v1/batches', ['complete'], batches.createBatch, BATCHES, { schema: 'BatchRequest' }],
  ['GET', '/v1/batches', ['complete'], batches.listBatches, BATCHES],
  ['GET', '/v1/batches/{id}', ['complete'], batches.retrieveBatch, BATCHES],
  ['POST', '/v1/batches/{id}/cancel', ['complete'], batches.cancelBatch, BATCHES],
  ['POST', '/tokenize', ['complete'], tokens.tokenize, TOKENS, { schema: 'TokenizeBody' }],
  ['POST', '/detokenize', ['complete'], tokens.detokenize, TOKENS, { schema: 'DetokenizeBody' }],
  ['GET', '/v1/models', ['complete', 'read'], served.listServedModels, AVAILABLE],
  ['GET', '/v1/models/{id}', ['complete', 'read'], served.retrieveServedModel, AVAILABLE],
  ['GET', '/health', null, async () => json({ status: 'ok' }), 'whether it runs'],
  [
    'GET',
    '/metrics',
    ['read'],
    models.metrics,
    "for Prometheus: requests, durations, the engine's numbers",
    { type: 'text/plain' },
  ],
  ['GET', '/load', ['complete', 'read'], models.showLoad, '`server_load`: requests that are being answered'],
  ['GET', '/openapi.json', null, showOpenApi, 'these endpoints in the form of OpenAPI 3.1'],
  ['GET', '/version', null, async () => json({ version: packageVersion() }), 'the version of the package'],
];

/** Returns the endpoints of Tinker's API. */
function tinkerRows(): Row[] {
  const post: readonly (readonly [string, EndpointHandler, NonNullable<Row[5]>])[] = [
    ['client/config', tinker.showClientConfig, { schema: 'TinkerConfigBody' }],
    ['client/dynamic_config', tinker.showClientChanges, { schema: 'TinkerConfigBody' }],
    ['telemetry', tinker.dropTelemetry, { schema: 'TinkerTelemetryBody' }],
    ['create_session', tinker.createSession, { schema: 'TinkerSessionBody' }],
    ['session_heartbeat', tinker.keepSession, { schema: 'TinkerHeartbeatBody' }],
    ['create_model', tinker.createModel, { schema: 'TinkerModelBody' }],
    ['get_info', tinker.showModel, { schema: 'TinkerModelIdBody' }],
    ['unload_model', tinker.unloadModel, { schema: 'TinkerModelIdBody' }],
    ['forward_backward', tinker.learnData, {}],
    ['optim_step', tinker.takeStep, { schema: 'TinkerStepBody' }],
    ['save_weights', tinker.saveWeights, { schema: 'TinkerSaveBody' }],
    ['load_weights', tinker.loadWeights, { schema: 'TinkerLoadBody' }],
    ['save_weights_for_sampler', tinker.publishWeights, { schema: 'TinkerPublishBody' }],
    ['weights_info', tinker.showWeights, { schema: 'TinkerWeightsBody' }],
    ['create_sampling_session', tinker.createSamplingSession, { schema: 'TinkerSamplingSessionBody' }],
    ['asample', tinker.sample, { schema: 'TinkerSampleBody' }],
    ['retrieve_future', tinker.readResult, { schema: 'TinkerFutureBody' }],
  ];
  const get: readonly (readonly [string, EndpointHandler])[] = [
    ['get_server_capabilities', tinker.showCapabilities],
    ['samplers/{id}', tinker.showSampler],
  ];
  return [
    ...post.map(([name, handle, more]): Row => ['POST', `/api/v1/${name}`, ['train'], handle, TINKER, more]),
    ...get.map(([name, handle]): Row => ['GET', `/api/v1/${name}`, ['train'], handle, TINKER]),
    ['GET', '/api/v1/healthz', null, async () => json({ status: 'ok' }), 'whether it runs'],
  ];
}

export const endpoints: readonly Endpoint[] = ROWS.map(([method, path, scopes, handle, docs, more]) => ({
  ...{ method, path, scopes, handle, docs },
  ...{ schema: null, upload: null, type: 'application/json', name: null, isAnswered: false },
  ...more,
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

/** Returns the form of errors at a path. The path need not exist. */
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
