/** Rows that end -> the numbers of a run: its progress and its summary. */
import type { BatchProgress, BatchSummary } from '../protocol/index.ts';

const EVERY_MS = 500;

/** What answers of every wire say of their tokens. */
type Usage = {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cache_read_input_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
  readonly input_tokens_details?: { readonly cached_tokens?: number } | null;
};

/** Tokens of an answer. */
export type Tokens = { readonly prompt: number; readonly cached: number; readonly completion: number };

/** The tokens of an answer; Anthropic's prompt leaves out those that were cached. */
export function tokensOf(body: object): Tokens {
  const { usage } = body as { usage?: Usage | null };
  const read = usage?.cache_read_input_tokens ?? 0;
  const cached =
    usage?.prompt_tokens_details?.cached_tokens ?? usage?.input_tokens_details?.cached_tokens ?? read;
  const prompt = usage?.prompt_tokens ?? (usage?.input_tokens ?? 0) + read;
  return { prompt, cached, completion: usage?.completion_tokens ?? usage?.output_tokens ?? 0 };
}

/** Counts. Those with a name of `BatchSummary` mean the same. */
export class Totals {
  completed = 0;
  failed = 0;
  resumed = 0;
  shared = 0;
  running = 0;
  readonly #startMs = performance.now();
  readonly #listener: ((progress: BatchProgress) => void) | null;
  #promptTokens = 0;
  #cachedTokens = 0;
  #completionTokens = 0;
  #bytes = 0; // of rows that are done
  #resumedBytes = 0; // of these, by earlier runs
  #toldMs = 0;
  /** Of the input; null: not known. */
  totalBytes: number | null = null;

  constructor(listener: ((progress: BatchProgress) => void) | null) {
    this.#listener = listener;
  }

  /** A row was done by an earlier run. */
  skip(bytes: number): void {
    this.#bytes += bytes;
    this.#resumedBytes += bytes;
  }

  /** A row has its line. `tokens`: null where nothing was computed for it. */
  end(bytes: number, isFailed: boolean, tokens: Tokens | null): void {
    if (isFailed) this.failed += 1;
    else this.completed += 1;
    this.#bytes += bytes;
    if (tokens) {
      this.#promptTokens += tokens.prompt;
      this.#cachedTokens += tokens.cached;
      this.#completionTokens += tokens.completion;
    }
    const nowMs = performance.now();
    if (this.#listener && nowMs - this.#toldMs >= EVERY_MS) this.tell(nowMs);
  }

  tell(nowMs = performance.now()): void {
    this.#toldMs = nowMs;
    this.#listener?.(this.#progress(nowMs));
  }

  summary(): BatchSummary {
    return {
      rows: this.completed + this.failed,
      completed: this.completed,
      failed: this.failed,
      resumed: this.resumed,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      completionTokens: this.#completionTokens,
      shared: this.shared,
      seconds: (performance.now() - this.#startMs) / 1000,
    };
  }

  #progress(nowMs: number): BatchProgress {
    const seconds = (nowMs - this.#startMs) / 1000;
    const fraction = this.totalBytes ? Math.min(1, this.#bytes / this.totalBytes) : null;
    const bytesPerSecond = (this.#bytes - this.#resumedBytes) / seconds;
    return {
      rows: this.completed + this.failed,
      failed: this.failed,
      running: this.running,
      tokensPerSecond: (this.#promptTokens + this.#completionTokens) / seconds,
      cachedShare: this.#promptTokens > 0 ? this.#cachedTokens / this.#promptTokens : null,
      fraction,
      secondsLeft:
        this.totalBytes && bytesPerSecond > 0 ? (this.totalBytes - this.#bytes) / bytesPerSecond : null,
    };
  }
}
