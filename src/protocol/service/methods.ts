/** The methods of services: one table with all properties that servers, clients, pools, batches and isolated processes use. */
import {
  type CallOptions,
  CHAT_FIELD,
  type ChatCompletionRequest,
  type ClassifyRequest,
  type ClassifyResponse,
  checkChatRequest,
  checkDecisionRequest,
  checkEmbeddingRequest,
  checkParseAnswerRequest,
  checkPrefixCacheQuery,
  checkScoreRequest,
  checkTextCompletionRequest,
  type Decision,
  type DecisionRequest,
  type EmbeddingRequest,
  type EmbeddingResponse,
  type ParseAnswerRequest,
  type RenderedPrompt,
  type RerankRequest,
  type RerankResponse,
  type ScoreRequest,
  type ScoreResponse,
  type TextCompletion,
  type TextCompletionRequest,
  withChatSchemas,
  withJsonSchemas,
} from '../index.ts';
import { always, checked, checkedBy, field, first, type Method } from './method.ts';
import {
  type Answer,
  type ChatAnswer,
  ChatCompletionStream,
  completeChat,
  type StreamFlag,
  TextCompletionStream,
  TranscriptionStream,
  type TypedChatAnswer,
  type TypedChatRequest,
} from './streams.ts';
import { PREVIEW, TRAINING_METHODS } from './training-methods.ts';

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
  /**
   * Returns the answer that a chat completion request would have got with tokens that were generated elsewhere: content, reasoning, calls,
   * usage. Absent if the service does not support it.
   * @throws OnpolicyError as `createCompletion` does for the chat request; `INVALID_REQUEST` for tokens that the model does not have
   */
  parseAnswer?<Parsed = undefined, Tools extends ChatCompletionRequest['tools'] = undefined>(
    request: Omit<ParseAnswerRequest, 'chat_request'> & {
      readonly chat_request?: TypedChatRequest<StreamFlag, Parsed, Tools> | null | undefined;
    },
    options?: CallOptions,
  ): Promise<TypedChatAnswer<undefined, Parsed, Tools>>;
  /** Ends running requests and frees all resources. Can be called twice. */
  close(): Promise<void>;
  /** The same as {@link close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

const modelOf = field(0, 'model');
const chatOf = field(0, CHAT_FIELD);
/** Properties that methods which read the prompt of a request share. */
const PROMPT = { args: ['request'], repeats: always, model: modelOf } as const;
/** Properties that methods which answer requests share. */
const ANSWER = { ...PROMPT, isQueued: true } as const;

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
  parseAnswer: {
    ...PROMPT,
    what: 'the reading of answers',
    ...checked('ParseAnswerRequest', checkParseAnswerRequest),
    translate: withChatSchemas,
    complete: (answer: ChatAnswer, request: unknown) => completeChat(answer, chatOf([request])),
    model: (args) => modelOf(args) || modelOf([chatOf(args)]),
    http: ['POST', '/v1/chat/completions/derender', 'complete'],
    docs: '[the answer](clients.md#answers-from-tokens) to such a request whose tokens were generated elsewhere, as in vLLM',
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
  ...TRAINING_METHODS,
} as const satisfies Readonly<Record<string, Method>>;

/** The name of a method in the table. */
export type MethodName = keyof typeof METHODS;

/** The names and properties of all methods. */
export const methods = Object.entries(METHODS) as readonly [MethodName, Method][];

/** The methods that answer requests by a model, which every facade has. */
export type AnswerName = keyof Omit<Completions, 'close' | typeof Symbol.asyncDispose>;
