/** The methods of services: one table with all properties that servers, clients, pools, batches and isolated processes use. */
import {
  type CallOptions,
  type ChatCompletionRequest,
  type ClassifyRequest,
  type ClassifyResponse,
  checkChatRequest,
  checkDecisionRequest,
  checkEmbeddingRequest,
  checkJobListQuery,
  checkListQuery,
  checkLogRequest,
  checkModelCreateRequest,
  checkOf,
  checkPrefixCacheQuery,
  checkScoreRequest,
  checkSftRequest,
  checkTextCompletionRequest,
  checkTrainingJobRequest,
  type Decision,
  type DecisionRequest,
  type EmbeddingRequest,
  type EmbeddingResponse,
  type RenderedPrompt,
  type RerankRequest,
  type RerankResponse,
  type ScoreRequest,
  type ScoreResponse,
  type TextCompletion,
  type TextCompletionRequest,
  withJsonSchemas,
} from '../index.ts';
import { always, checked, field, first, type Method } from './method.ts';
import {
  type Answer,
  ChatCompletionStream,
  completeChat,
  type StreamFlag,
  TextCompletionStream,
  TranscriptionStream,
  type TypedChatAnswer,
  type TypedChatRequest,
} from './streams.ts';

/** Answers requests. */
export interface Completions {
  /**
   * Answers a chat completion request: with `stream: true` as a stream of chunks, otherwise as a whole. With a `response_format` of
   * {@link schema} the answer has `parsed`.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createCompletion<
    Flag extends StreamFlag = undefined,
    Parsed = undefined,
    Tools extends ChatCompletionRequest['tools'] = undefined,
  >(
    request: TypedChatRequest<Flag, Parsed, Tools>,
    options?: CallOptions,
  ): Promise<TypedChatAnswer<Flag, Parsed, Tools>>;
  /**
   * Continues prompts without a chat template, as a stream of chunks or as a whole. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createTextCompletion?<Flag extends StreamFlag = undefined>(
    request: TextCompletionRequest & { stream?: Flag },
    options?: CallOptions,
  ): Promise<Answer<Flag, TextCompletionStream, TextCompletion>>;
  /**
   * Computes the vectors of texts with an embedding model. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model without embeddings, `CONTEXT_OVERFLOW` for long texts
   */
  createEmbeddings?(request: EmbeddingRequest, options?: CallOptions): Promise<EmbeddingResponse>;
  /**
   * Orders documents by how well they fit a query. See docs/vectors.md#rankings-scores-and-labels for the models that do. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model that cannot rank, `CONTEXT_OVERFLOW` for long texts
   */
  rerank?(request: RerankRequest, options?: CallOptions): Promise<RerankResponse>;
  /**
   * Compares pairs of texts. Absent if the service does not support it.
   * @throws OnpolicyError as `rerank` does
   */
  score?(request: ScoreRequest, options?: CallOptions): Promise<ScoreResponse>;
  /**
   * Labels texts with a model that has labels. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model without labels, `CONTEXT_OVERFLOW` for long texts
   */
  classify?(request: ClassifyRequest, options?: CallOptions): Promise<ClassifyResponse>;
  /**
   * Answers typed questions about an input by the probabilities of their values, read where the model's answer would begin. The input is
   * computed once. Absent if the service does not support it.
   * @throws OnpolicyError `INVALID_REQUEST`, `UNSUPPORTED` for a model that reasons before each answer or lacks labels of one token,
   * `CONTEXT_OVERFLOW`
   */
  decide?<const Questions extends DecisionRequest['questions']>(
    request: Omit<DecisionRequest, 'questions'> & { readonly questions: Questions },
    options?: CallOptions,
  ): Promise<Decision<Questions>>;
  /**
   * Returns the prompt of a chat completion request. Nothing is generated. Absent if the service does not support it.
   * @throws OnpolicyError as `createCompletion` does for the same request, `UNSUPPORTED` if the service does not support it
   */
  renderPrompt?(request: ChatCompletionRequest, options?: CallOptions): Promise<RenderedPrompt>;
  /** Ends running requests and frees all resources. Can be called twice. */
  close(): Promise<void>;
  /** The same as {@link close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Prefix of the paths of models and training. Errors on these paths have a different form. */
export const PREVIEW = '/v1/preview/';
const MODELS = `${PREVIEW}models` as const;
const JOBS = `${PREVIEW}training-jobs` as const;
const RUNS = '/v1/training/runs';

const checkedBy = <const Name extends Parameters<typeof checkOf>[0]>(name: Name) =>
  checked(name, checkOf(name));

/** Properties that methods which read the prompt of a request share. */
const PROMPT = { args: ['request'], repeats: always, model: field(0, 'model') } as const;
/** Properties that methods which answer requests share. */
const ANSWER = { ...PROMPT, isQueued: true } as const;
const LIST = { args: ['query'], ...checked('ListQuery', checkListQuery) } as const;
const TRAINED = 'models that are trained';
/** Properties of methods that write to the home folder. */
const HOME = { what: TRAINED, atHome: true } as const;
const RUN = { what: 'training runs', atHome: true } as const;

/** Path at which a client ends the reasoning of a stream that a server sends it. */
export const CONTROL_PATH = '/v1/chat/completions/control';

/** The methods by name. Those of resources are named like `models.create`. All other methods of services call these. */
export const METHODS = {
  createCompletion: {
    ...ANSWER,
    what: 'chat completions',
    ...checked('ChatCompletionRequest', checkChatRequest),
    translate: withJsonSchemas,
    complete: completeChat,
    http: ['POST', '/v1/chat/completions', 'complete'],
    docs: '[every field](request-fields.md); `stream: true` answers with server-sent events, `[DONE]` last',
    Stream: ChatCompletionStream,
  },
  createTextCompletion: {
    ...ANSWER,
    what: 'text completions',
    ...checked('TextCompletionRequest', checkTextCompletionRequest),
    http: ['POST', '/v1/completions', 'complete'],
    docs: '[text completions](clients.md#text-completions), also streamed',
    Stream: TextCompletionStream,
  },
  createEmbeddings: {
    ...ANSWER,
    what: 'embeddings',
    ...checked('EmbeddingRequest', checkEmbeddingRequest),
    http: ['POST', '/v1/embeddings', 'complete'],
    docs: '[embeddings](vectors.md#embeddings)',
  },
  rerank: {
    ...ANSWER,
    what: 'rankings',
    ...checkedBy('RerankRequest'),
    http: ['POST', '/v1/rerank', 'complete'],
    docs: '[rankings, scores and labels](vectors.md#rankings-scores-and-labels)',
  },
  score: {
    ...ANSWER,
    what: 'scores',
    ...checked('ScoreRequest', checkScoreRequest),
    http: ['POST', '/v1/score', 'complete'],
    docs: '[rankings, scores and labels](vectors.md#rankings-scores-and-labels)',
  },
  classify: {
    ...ANSWER,
    what: 'labels',
    ...checkedBy('ClassifyRequest'),
    http: ['POST', '/v1/classify', 'complete'],
    docs: '[rankings, scores and labels](vectors.md#rankings-scores-and-labels)',
  },
  decide: {
    ...ANSWER,
    what: 'decisions',
    ...checked('DecisionRequest', checkDecisionRequest),
    http: ['POST', '/v1/decisions', 'complete'],
    docs: '[decisions](decisions.md)',
  },
  renderPrompt: {
    ...PROMPT,
    what: 'prompts',
    ...checked('ChatCompletionRequest', checkChatRequest),
    translate: withJsonSchemas,
    http: ['POST', '/v1/chat/completions/render', 'complete'],
    docs: '[the prompt](clients.md#prompts-and-tokens) of such a request',
  },
  createResponse: {
    args: ['request'],
    what: 'responses',
    schema: 'ResponseRequest',
    http: ['POST', '/v1/responses', 'complete'],
    docs: "[OpenAI's responses](clients.md#openais-responses), also streamed",
    answers: true,
  },
  createMessage: {
    args: ['request'],
    what: 'messages',
    schema: 'MessageRequest',
    http: ['POST', '/v1/messages', 'complete'],
    docs: "[Anthropic's messages](clients.md#anthropics-messages), also streamed",
    answers: true,
  },
  transcribe: {
    args: ['request'],
    what: 'transcripts',
    http: ['POST', '/v1/audio/transcriptions', 'complete'],
    docs: '[transcripts](media.md#transcripts) of a sound in a form, also streamed',
    Stream: TranscriptionStream,
  },
  soundWindows: { args: ['request'], what: 'sounds', atHome: true },
  tokenize: { args: ['request', 'settings'], what: 'tokens', model: field(1, 'model') },
  detokenize: { args: ['request', 'settings'], what: 'tokens', model: field(1, 'model') },
  contextSize: { args: ['id'], what: 'tokens', model: first },
  unload: { args: ['id'], what: 'the unloading of models', model: first },
  loaded: {
    args: [],
    what: 'what is loaded',
    http: ['GET', `${PREVIEW}loaded-models`, 'read'],
    docs: 'models in memory, as in `runtime.loaded()`',
  },
  resetPrefixCache: {
    args: ['query'],
    what: 'prefix caches',
    ...checked('PrefixCacheQuery', checkPrefixCacheQuery),
    http: ['POST', '/reset_prefix_cache', 'admin'],
    docs: '[empties the prefix caches](clients.md#endpoints-of-vllm-and-llamacpp), as in vLLM: `{ success }`',
    repeats: always,
  },
  'adapters.load': { args: ['request'], what: 'adapters', model: field(0, 'base') },
  'adapters.unload': { args: ['id'], what: 'adapters', model: first },
  loadAdapter: {
    args: ['request'],
    what: 'adapters',
    schema: 'AdapterLoadBody',
    http: ['POST', '/v1/load_lora_adapter', 'admin'],
    docs: '[adapters](model-files.md#over-http), with the option `adapterFolders`',
  },
  unloadAdapter: {
    args: ['id'],
    what: 'adapters',
    schema: 'AdapterUnloadBody',
    http: ['POST', '/v1/unload_lora_adapter', 'admin'],
    docs: '[adapters](model-files.md#over-http), with the option `adapterFolders`',
  },
  'models.create': {
    args: ['request'],
    ...HOME,
    ...checked('ModelCreateRequest', checkModelCreateRequest),
    http: ['POST', MODELS, 'train'],
    docs: 'registers a model for training',
    repeats: ({ return_existing }) => return_existing === true,
  },
  'models.list': { ...LIST, what: TRAINED, http: ['GET', MODELS, 'read'], docs: 'registered models' },
  'models.retrieve': {
    args: ['id'],
    what: TRAINED,
    http: ['GET', `${MODELS}/{id}`, 'read'],
    docs: 'registered models',
  },
  'models.delete': {
    args: ['id'],
    ...HOME,
    http: ['DELETE', `${MODELS}/{id}`, 'admin'],
    docs: 'with its checkpoints, trajectories and run',
  },
  'models.log': {
    args: ['id', 'request'],
    ...HOME,
    ...checked('LogRequest', checkLogRequest),
    http: ['POST', `${MODELS}/{id}/log`, 'train'],
    docs: 'stores trajectories and returns their metrics',
  },
  'models.export': { args: ['request'], what: TRAINED, model: field(0, 'model') },
  'checkpoints.list': {
    args: ['id', 'query'],
    what: TRAINED,
    ...checked('ListQuery', checkListQuery),
    http: ['GET', `${MODELS}/{id}/checkpoints`, 'read'],
    docs: 'checkpoints of a model',
  },
  'checkpoints.delete': {
    args: ['id', 'request'],
    ...HOME,
    ...checkedBy('CheckpointDeleteRequest'),
    http: ['DELETE', `${MODELS}/{id}/checkpoints`, 'admin'],
    docs: 'deletes the checkpoints of `{ steps }`',
  },
  'checkpoints.prune': { args: ['id', 'request'], what: TRAINED, atHome: true },
  report: {
    args: ['id', 'settings'],
    what: 'reports',
    http: ['GET', `${MODELS}/{id}/report`, 'read'],
    docs: "a page that shows the training progress; `?compare=` another model's id adds its curves",
  },
  servedModels: {
    args: [],
    what: 'base models',
    http: ['GET', `${PREVIEW}base-models`, 'read'],
    docs: 'models that a registered one can start from',
  },
  train: {
    args: ['request'],
    what: 'training',
    ...checked('TrainingJobRequest', checkTrainingJobRequest),
    http: ['POST', JOBS, 'train'],
    docs: 'returns `{ id }` when the job is queued',
    atHome: true,
  },
  sft: {
    args: ['request'],
    what: 'supervised training',
    ...checked('SftRequest', checkSftRequest),
    http: ['POST', `${PREVIEW}sft-training-jobs`, 'train'],
    docs: '[supervised training](training.md#supervised-training): the body of `runtime.sft`; returns `{ id }` of a training job',
    atHome: true,
  },
  'trainingJobs.list': {
    args: ['query'],
    what: TRAINED,
    ...checked('JobListQuery', checkJobListQuery),
    http: ['GET', JOBS, 'read'],
    docs: 'a list, optionally filtered by `model_id` and `status`',
  },
  'trainingJobs.retrieve': {
    args: ['id'],
    what: TRAINED,
    http: ['GET', `${JOBS}/{id}`, 'read'],
    docs: 'the status of a job',
  },
  'trainingJobs.events': {
    args: ['id', 'query'],
    what: TRAINED,
    ...checked('ListQuery', checkListQuery),
    http: ['GET', `${JOBS}/{id}/events`, 'read'],
    docs: 'a page; with `?stream=true` server-sent events while the job runs, `[DONE]` last',
  },
  'trainingJobs.cancel': {
    args: ['id'],
    ...HOME,
    http: ['POST', `${JOBS}/{id}/cancel`, 'train'],
    docs: 'stops a job',
    repeats: always,
  },
  'trainingRuns.create': {
    args: ['request'],
    ...RUN,
    ...checkedBy('TrainingRunRequest'),
    http: ['POST', RUNS, 'train'],
    docs: 'opens a [training run](training.md#steps-of-your-own), `{ model, rank, alpha, seed }`',
  },
  'trainingRuns.list': { args: [], what: RUN.what, http: ['GET', RUNS, 'read'], docs: 'training runs' },
  'trainingRuns.retrieve': {
    args: ['id'],
    ...RUN,
    http: ['GET', `${RUNS}/{id}`, 'read'],
    docs: 'training runs',
  },
  'trainingRuns.call': {
    args: ['id', 'operation', 'request'],
    ...RUN,
    http: ['POST', `${RUNS}/{id}/{operation}`, 'train'],
    docs: 'steps of a run: `{ request_id, sequence, status, result }`; 202 and `pending` after 20 s or `wait_ms`',
    repeats: ({ idempotency_key }) => idempotency_key != null,
  },
  'trainingRuns.result': {
    args: ['id', 'query'],
    ...RUN,
    http: ['GET', '/v1/training/requests/{id}', 'train'],
    docs: 'the result of a pending step, awaited for `?wait_ms=`',
  },
  'trainingRuns.close': {
    args: ['id'],
    ...RUN,
    http: ['POST', `${RUNS}/{id}/close`, 'train'],
    docs: 'frees the memory of a run; deletes it',
    repeats: always,
  },
  'trainingRuns.delete': {
    args: ['id'],
    ...RUN,
    http: ['DELETE', `${RUNS}/{id}`, 'train'],
    docs: 'frees the memory of a run; deletes it',
  },
} as const satisfies Readonly<Record<string, Method>>;

/** The name of a method in the table. */
export type MethodName = keyof typeof METHODS;

/** The names and properties of all methods. */
export const methods = Object.entries(METHODS) as readonly [MethodName, Method][];

/** The methods that answer requests by a model, which every facade has. */
export type AnswerName = keyof Omit<Completions, 'close' | typeof Symbol.asyncDispose>;
