/** The service in this process: wires models, engines and answers together. READ FIRST. */
import type { AdapterLease } from './adapters.ts';
import { answer } from './answer.ts';
import { type EngineStats, sumStats } from './engine.ts';
import { OnpolicyError } from './errors.ts';
import { Models } from './models.ts';
import { loadAddon } from './native.ts';
import { fault, throwFaults } from './protocol/faults.ts';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  checkVocabulary,
  validateChatRequest,
} from './protocol/index.ts';
import { type CheckedOptions, checkOptions, type RuntimeOptions } from './runtime-options.ts';
import type { CallOptions, Completions } from './service.ts';
import { serve } from './serving.ts';
import type { ChatCompletionStream } from './stream.ts';
import { detokenize } from './tokenizer.ts';

const LOG_LEVELS = ['debug', 'debug', 'info', 'warn', 'error'] as const;

/** A service whose models run in this process. */
export class Runtime implements Completions {
  readonly #options: CheckedOptions;
  readonly #models: Models;
  readonly #stopLog: (() => void) | undefined;
  readonly #requestIds = new Set<string>(); // of requests that run
  #arrivals = 0;
  #closed: Promise<void> | null = null;

  /** @internal Use {@link createRuntime}. */
  constructor(options: CheckedOptions) {
    this.#options = options;
    this.#models = new Models(
      { ...options, onProgress: options.onProgress },
      options.model,
      options.models ?? {},
    );
    const { log } = options;
    if (log)
      this.#stopLog = loadAddon().setLog((level, text) => log(LOG_LEVELS[level] ?? 'info', text.trimEnd()));
  }

  /** Answers a chat completion request as a stream of chunks. */
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
  async createCompletion(
    request: ChatCompletionRequest,
    { signal }: CallOptions = {},
  ): Promise<ChatCompletion | ChatCompletionStream> {
    this.#requireOpen();
    const { scheduling, maxLogprobs, allowRequestTemplate, logprobsMode, kvTransferFolder } = this.#options;
    const valid = validateChatRequest(request, { scheduling, maxLogprobs, allowRequestTemplate });
    if (signal?.aborted)
      throw new OnpolicyError('ABORTED', 'the request was aborted', { cause: signal.reason });
    const releaseId = this.#claimId(valid.request_id);
    let adapter: AdapterLease | null = null;
    const onEnd = (): void => {
      releaseId();
      adapter?.release();
    };
    try {
      const serving = await serve(this.#models, async () => null, valid.model, signal);
      adapter = serving.adapter;
      checkVocabulary(valid, serving.model.tokenizer.vocabSize);
      this.#requireOpen();
      return await answer(serving.model, valid, {
        signal,
        adapter,
        onEnd,
        processedLogprobs: logprobsMode === 'processed',
        kvTransferFolder,
        arrival: this.#arrivals++,
      });
    } catch (error) {
      onEnd();
      throw error;
    }
  }

  /** The token ids of a text. */
  async tokenize(
    text: string,
    options: { model?: string; addSpecialTokens?: boolean; parseSpecial?: boolean } = {},
  ): Promise<number[]> {
    this.#requireOpen();
    const { tokenizer } = await this.#models.get(options.model ?? null);
    const ids = await tokenizer.encode(text, {
      addSpecial: options.addSpecialTokens ?? false,
      parseSpecial: options.parseSpecial ?? false,
    });
    return Array.from(ids);
  }

  /** The text of token ids. */
  async detokenize(
    ids: readonly number[],
    options: { model?: string; skipSpecialTokens?: boolean } = {},
  ): Promise<string> {
    this.#requireOpen();
    const { tokenizer } = await this.#models.get(options.model ?? null);
    return detokenize(tokenizer, ids, options.skipSpecialTokens ?? false);
  }

  /** Numbers about the engines of all loaded models together. */
  stats(): EngineStats {
    return sumStats([...this.#models.loaded()].map(({ engine }) => engine.stats()));
  }

  /** Ends what runs with code `CLOSED` and frees all models. Closing twice is fine. */
  async close(): Promise<void> {
    this.#closed ??= this.#models.close().finally(() => this.#stopLog?.());
    await this.#closed;
  }

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Keeps a request's id from others until the function that it returns is called. */
  #claimId(id: string | null): () => void {
    if (id === null) return () => {};
    if (this.#requestIds.has(id))
      throwFaults([fault(['request_id'], 'conflict', 'an id that no request has which still runs', id)]);
    this.#requestIds.add(id);
    let isHeld = true;
    return () => {
      if (isHeld) this.#requestIds.delete(id);
      isHeld = false;
    };
  }

  #requireOpen(): void {
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the runtime is closed');
  }
}

/**
 * Opens a runtime with its own models and limits.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export async function createRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  return new Runtime(checkOptions(options));
}
