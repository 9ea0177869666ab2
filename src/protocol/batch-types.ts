/** Types of batches: their source, their rows and their summary. */
import type { Readable } from 'node:stream';
import type { ErrorCode } from '../errors.ts';
import type { ChatCompletion } from './chat-completion-response.ts';
import type { Decision } from './decision-response.ts';
import type { EmbeddingResponse } from './embedding-response.ts';
import type { BatchOptions, BatchUrl } from './generated/argument-types.ts';
import type {
  ChatCompletionRequest,
  ClassifyRequest,
  DecisionRequest,
  EmbeddingRequest,
  MessageRequest,
  RerankRequest,
  ResponseRequest,
  ScoreRequest,
  TextCompletionRequest,
} from './generated/request-types.ts';
import type { MessageResponse } from './messages-response.ts';
import type { ClassifyResponse, RerankResponse, ScoreResponse } from './rank-responses.ts';
import type { ResponseObject } from './responses-response.ts';
import type { TypedFormat } from './standard-schema.ts';
import type { TextCompletion } from './text-completion-response.ts';

/**
 * Rows of a batch: the path of a file of JSON lines, a stream of such a file's bytes, or rows one by one, as objects or as lines
 * of JSON. With `toRequest`, rows that are given one by one reach it as they are, also texts.
 * A row is a request, or a line of OpenAI's batch format: `{ custom_id, method, url, body }`.
 */
export type BatchSource<Row = unknown> =
  | string
  | Readable
  | ReadableStream<Uint8Array>
  | Iterable<Row>
  | AsyncIterable<Row>;

/** The request and the answer of a row, by its url. */
type BatchCalls = {
  '/v1/chat/completions': [ChatCompletionRequest, ChatCompletion];
  '/v1/completions': [TextCompletionRequest, TextCompletion];
  '/v1/embeddings': [EmbeddingRequest, EmbeddingResponse];
  '/v1/responses': [ResponseRequest, ResponseObject];
  '/v1/messages': [MessageRequest, MessageResponse];
  '/v1/rerank': [RerankRequest, RerankResponse];
  '/v1/score': [ScoreRequest, ScoreResponse];
  '/v1/classify': [ClassifyRequest, ClassifyResponse];
  '/v1/decisions': [DecisionRequest, Decision];
};

/** The url of rows, unless the option `url` is another one. */
export type ChatUrl = '/v1/chat/completions';

/** The result of `toRequest`: a request, or one with its id. */
export type BatchLine<Url extends BatchUrl = ChatUrl> = {
  [To in Url]:
    | (BatchCalls[To][0] & { readonly custom_id?: string | undefined; readonly body?: undefined })
    | {
        readonly custom_id?: string | undefined;
        readonly method?: 'POST' | undefined;
        /** Default: the option `url`. */
        readonly url?: To | undefined;
        readonly body: BatchCalls[To][0];
      };
}[Url];

/** The options of `batch`, with the types of its rows: what `toRequest` is called with, the url of requests, the form of answers. */
export type TypedBatchOptions<Row, Url extends BatchUrl = ChatUrl, Parsed = undefined> = Omit<
  BatchOptions,
  'toRequest' | 'url' | 'response_format'
> & {
  /** Makes the request of a row. */
  readonly toRequest?: ((row: Row, index: number) => BatchLine<Url> | Promise<BatchLine<Url>>) | undefined;
  readonly url?: Url | undefined;
  readonly response_format?: BatchOptions['response_format'] | TypedFormat<Parsed>;
};

/**
 * One row's line in the output, or among the errors, in OpenAI's form. `Body` is its answer, `Parsed` what the schema of `response_format`
 * reads in it.
 */
export type BatchRow<Body extends object = object, Parsed = undefined> = {
  readonly id: string;
  /** The id that the row gives, otherwise `row-7` for line 7. Null means that the line could not be read. */
  readonly custom_id: string | null;
  /** Line number in the input, from 1. Present if the row failed. */
  readonly line?: number;
  /** Null means that the line is not a request. */
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly body: Body;
    /** Paths of unknown fields of the request, over HTTP. In process they are errors. */
    readonly ignored_fields?: readonly string[];
  } | null;
  /** The reason why the line is not a request. */
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly param: string | null;
  } | null;
} & ([Parsed] extends [undefined]
  ? unknown
  : {
      /** The value of the answer, for readers: it is not in the file. Null if the row failed. */
      readonly parsed: Parsed | null;
    });

/** The row of a batch with such options. */
export type TypedBatchRow<Url extends BatchUrl = ChatUrl, Parsed = undefined> = BatchRow<
  BatchCalls[Url][1],
  Parsed
>;

/** Counts of a finished batch. */
export type BatchSummary = {
  readonly rows: number;
  /** Rows with an answer. */
  readonly completed: number;
  readonly failed: number;
  /** Rows among the completed ones whose answer was cut by its token limit or the context, those of earlier runs included. */
  readonly cut: number;
  /** `custom_id` of the first 100 of them in this run. */
  readonly cutIds: readonly string[];
  /** Rows that earlier runs had done. */
  readonly resumed: number;
  /** Prompt tokens of this run. The counts below are of this run, too. */
  readonly promptTokens: number;
  /** Prompt tokens that came from the prefix cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Rows that took the answer of an equal row. */
  readonly shared: number;
  readonly seconds: number;
};

/** A batch. It starts when `done` is first read or the first row is requested. */
export interface BatchRun<Row extends BatchRow = BatchRow> extends AsyncIterable<Row> {
  /** Resolves when every row has its line. Rejects with the error that ended the run early; `resume` then continues it. */
  readonly done: Promise<BatchSummary>;
}
