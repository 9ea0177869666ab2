/** The steps over a prompt -> reports of how much of it is computed, the newest when it is taken. */
import type { PromptProgress } from '../protocol/index.ts';

/** Collects the progress of one prompt. */
export class PromptMeter {
  readonly #total: number;
  readonly #onNews: () => void;
  #cached = 0;
  #processed = 0;
  #startedMs = 0;
  #hasNews = false;

  /** @param onNews called when there is a new report */
  constructor(total: number, onNews: () => void) {
    this.#total = total;
    this.#onNews = onNews;
  }

  /** Call it when the prompt gets its place, with the tokens that the prefix cache saved. */
  start(cached: number): void {
    this.#startedMs = performance.now();
    this.#cached = cached;
    this.#report(cached);
  }

  /** Call it after each step, with the tokens that are computed. */
  advance(computed: number): void {
    const processed = Math.min(computed, this.#total);
    if (processed > this.#processed) this.#report(processed);
  }

  /** True if there is a report that was not taken. */
  get hasNews(): boolean {
    return this.#hasNews;
  }

  /** Returns the newest report, or null if it was taken. */
  take(): PromptProgress | null {
    if (!this.#hasNews) return null;
    this.#hasNews = false;
    return {
      total: this.#total,
      cache: this.#cached,
      processed: this.#processed,
      time_ms: performance.now() - this.#startedMs,
    };
  }

  #report(processed: number): void {
    this.#processed = processed;
    this.#hasNews = true;
    this.#onNews();
  }
}
