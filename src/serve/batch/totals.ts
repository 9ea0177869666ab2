/** Rows that end -> the numbers of a run: its progress and its summary. */
import type { BatchProgress, BatchSummary } from '../../protocol/index.ts';

const EVERY_MS = 500;
/** Most ids of cut answers that a summary lists. */
const MOST_CUT_IDS = 100;

/** Token counts of an answer, in the fields of every wire format. */
type Usage = {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cache_read_input_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
  readonly input_tokens_details?: { readonly cached_tokens?: number } | null;
};

/** Token counts of one answer. */
export type Tokens = { readonly prompt: number; readonly cached: number; readonly completion: number };

/** Returns the token counts of an answer. Cached tokens are added to Anthropic's prompt count, which leaves them out. */
export function tokensOf(body: object): Tokens {
  const { usage } = body as { usage?: Usage | null };
  const read = usage?.cache_read_input_tokens ?? 0;
  const cached =
    usage?.prompt_tokens_details?.cached_tokens ?? usage?.input_tokens_details?.cached_tokens ?? read;
  const prompt = usage?.prompt_tokens ?? (usage?.input_tokens ?? 0) + read;
  return { prompt, cached, completion: usage?.completion_tokens ?? usage?.output_tokens ?? 0 };
}

/** Counters of a run. Fields named as in `BatchSummary` have the same meaning. */
export class Totals {
  completed = 0;
  failed = 0;
  resumed = 0;
  shared = 0;
  running = 0;
  /** Answers that a token limit cut, and the ids of the first of this run. */
  cut = 0;
  readonly #cutIds: string[] = [];
  readonly #startMs = performance.now();
  readonly #listener: ((progress: BatchProgress) => void) | null;
  #promptTokens = 0;
  #cachedTokens = 0;
  #completionTokens = 0;
  #bytes = 0; // bytes of finished rows
  #resumedBytes = 0; // bytes of rows that earlier runs finished
  #toldMs = 0;
  /** Bytes of the input. Null if unknown. */
  totalBytes: number | null = null;

  constructor(listener: ((progress: BatchProgress) => void) | null) {
    this.#listener = listener;
  }

  /** Counts a row that an earlier run has finished. */
  skip(bytes: number): void {
    this.#bytes += bytes;
    this.#resumedBytes += bytes;
  }

  /** Counts an answer that a token limit cut. */
  addCut(customId: string): void {
    this.cut += 1;
    if (this.#cutIds.length < MOST_CUT_IDS) this.#cutIds.push(customId);
  }

  /** Counts a row that has its line. `tokens`: null if nothing was computed for it. */
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
      cut: this.cut,
      cutIds: [...this.#cutIds],
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
