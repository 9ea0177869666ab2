/** The methods of every service that answer requests, as callers see them. */
import type {
  CallOptions,
  ChatCompletionRequest,
  ClassifyRequest,
  ClassifyResponse,
  Decision,
  DecisionRequest,
  EmbeddingRequest,
  EmbeddingResponse,
  RenderedPrompt,
  RerankRequest,
  RerankResponse,
  ScoreRequest,
  ScoreResponse,
  TextCompletion,
  TextCompletionRequest,
} from '../index.ts';
import type {
  Answer,
  StreamFlag,
  TextCompletionStream,
  TypedChatAnswer,
  TypedChatRequest,
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
