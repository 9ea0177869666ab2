/** The contract that the in-process runtime, and whatever stands in for it elsewhere, fulfils. */
import type { ChatCompletion, ChatCompletionRequest } from './protocol/index.ts';
import type { ChatCompletionStream } from './stream.ts';

/** Options of one call. */
export type CallOptions = {
  /** Aborts the call; it rejects with code `ABORTED`. */
  readonly signal?: AbortSignal;
};

/** Answers requests. */
export interface Service {
  /**
   * Answers a chat completion request as a stream of chunks.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  createCompletion(
    request: ChatCompletionRequest & { stream: true },
    options?: CallOptions,
  ): Promise<ChatCompletionStream>;
  /** Answers a chat completion request as a whole. */
  createCompletion(
    request: ChatCompletionRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<ChatCompletion>;
  /** Answers a chat completion request, as the request's `stream` says. */
  createCompletion(
    request: ChatCompletionRequest,
    options?: CallOptions,
  ): Promise<ChatCompletion | ChatCompletionStream>;
  /** Ends what runs, frees everything. Closing twice is fine. */
  close(): Promise<void>;
  /** The same as {@link close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
