/** Batches: what goes in and what comes out. */
import type { Readable } from 'node:stream';
import type { ErrorCode } from '../errors.ts';

/**
 * Rows of a batch: the path of a file of JSON lines, a stream of such a file's bytes, or rows one by one, as lines of JSON or as objects.
 * A row is a request, or a line of OpenAI's batch format: `{ custom_id, method, url, body }`.
 */
export type BatchSource =
  | string
  | Readable
  | ReadableStream<Uint8Array>
  | Iterable<unknown>
  | AsyncIterable<unknown>;

/** One row's line in the output, or among the errors, in OpenAI's form. */
export type BatchRow = {
  readonly id: string;
  /** Of the row, or `row-7` for line 7 without one; null: the line could not be read. */
  readonly custom_id: string | null;
  /** Of a row that failed: its line in the input, from 1. */
  readonly line?: number;
  /** Null: the line is no request. */
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly body: object;
  } | null;
  /** Why the line is no request. */
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly param: string | null;
  } | null;
};

/** What became of a batch. */
export type BatchSummary = {
  readonly rows: number;
  /** Rows with an answer. */
  readonly completed: number;
  readonly failed: number;
  /** Rows that earlier runs had done. */
  readonly resumed: number;
  /** Of this run, as all below. */
  readonly promptTokens: number;
  /** Of the prompts' tokens, those from the prefix cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Rows that took the answer of an equal one. */
  readonly shared: number;
  readonly seconds: number;
};

/** A batch, which runs from the first look at `done` or at a row. */
export interface BatchRun extends AsyncIterable<BatchRow> {
  /** Resolves when every row has its line. Rejects with what ended the run before; `resume` then continues it. */
  readonly done: Promise<BatchSummary>;
}
