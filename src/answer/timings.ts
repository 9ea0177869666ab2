/** The times at which sequences of a request ran -> its timings, in the names of vLLM's server and of llama.cpp's. */
import type { Sequence } from '../engine/index.ts';
import type { CompletionMetrics, CompletionTimings } from '../protocol/index.ts';

/** The measurements of a request, so far or at its end. */
export type TimedRequest = {
  /** Times of the sequence of each choice. */
  readonly times: readonly Sequence['times'][];
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Number of tokens of each choice. */
  readonly counts: readonly number[];
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
};

/** Returns how long the parts of a request took, over all its choices. A part that has not begun takes 0 ms. */
export function timingsOf(request: TimedRequest): { metrics: CompletionMetrics; timings: CompletionTimings } {
  const { times, promptTokens, cachedTokens, counts, draftedTokens, acceptedTokens } = request;
  const [first] = times;
  const begun = times.filter(({ firstTokenMs }) => firstTokenMs > 0);
  const firstMs = Math.min(...begun.map(({ firstTokenMs }) => firstTokenMs));
  const lastMs = Math.max(...begun.map(({ lastTokenMs }) => lastTokenMs));
  const hasBegun = begun.length > 0;
  const promptMs = hasBegun ? firstMs - first!.startedMs : 0;
  const answerMs = hasBegun ? lastMs - firstMs : 0;
  const computed = promptTokens - cachedTokens;
  const tokens = counts.reduce((sum, count) => sum + count, 0);
  const gaps = counts.reduce((sum, count) => sum + Math.max(0, count - 1), 0);
  const gapMs = begun.reduce((sum, { firstTokenMs, lastTokenMs }) => sum + lastTokenMs - firstTokenMs, 0);
  return {
    metrics: {
      queue_time_ms: first!.startedMs > 0 ? first!.startedMs - first!.submittedMs : 0,
      time_to_first_token_ms: promptMs,
      generation_time_ms: answerMs,
      mean_itl_ms: share(gapMs, gaps),
      tokens_per_second: share(1000 * gaps, answerMs),
    },
    timings: {
      cache_n: cachedTokens,
      prompt_n: computed,
      prompt_ms: promptMs,
      prompt_per_token_ms: share(promptMs, computed),
      prompt_per_second: share(1000 * computed, promptMs),
      predicted_n: tokens,
      predicted_ms: answerMs,
      predicted_per_token_ms: share(answerMs, gaps),
      predicted_per_second: share(1000 * gaps, answerMs),
      ...(draftedTokens > 0 ? { draft_n: draftedTokens, draft_n_accepted: acceptedTokens } : {}),
    },
  };
}

/** Returns a quotient, or 0 if nothing was counted. */
function share(amount: number, count: number): number {
  return count > 0 ? amount / count : 0;
}
