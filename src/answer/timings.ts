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

/** Milliseconds of the parts of a request over all its choices, and its tokens. A part that has not begun takes 0 ms. */
type Parts = {
  readonly promptMs: number;
  readonly answerMs: number;
  /** Milliseconds between the first and the last token of each choice, summed. */
  readonly gapMs: number;
  readonly tokens: number;
  /** Tokens behind the first one of their choice. */
  readonly gaps: number;
};

/** Every chunk of a stream may have timings, so this makes no lists. */
function partsOf({ times, counts }: TimedRequest): Parts {
  let [firstMs, lastMs, gapMs, tokens, gaps] = [Number.POSITIVE_INFINITY, 0, 0, 0, 0];
  for (const { firstTokenMs, lastTokenMs } of times) {
    if (firstTokenMs <= 0) continue;
    firstMs = Math.min(firstMs, firstTokenMs);
    lastMs = Math.max(lastMs, lastTokenMs);
    gapMs += lastTokenMs - firstTokenMs;
  }
  for (const count of counts) {
    tokens += count;
    gaps += Math.max(0, count - 1);
  }
  const hasBegun = lastMs > 0;
  return {
    promptMs: hasBegun ? firstMs - times[0]!.startedMs : 0,
    answerMs: hasBegun ? lastMs - firstMs : 0,
    gapMs,
    tokens,
    gaps,
  };
}

/** Returns how long the parts of a request took, in the names of vLLM's server. */
export function metricsOf(request: TimedRequest): CompletionMetrics {
  const { promptMs, answerMs, gapMs, gaps } = partsOf(request);
  const { startedMs, submittedMs } = request.times[0]!;
  return {
    queue_time_ms: startedMs > 0 ? startedMs - submittedMs : 0,
    time_to_first_token_ms: promptMs,
    generation_time_ms: answerMs,
    mean_itl_ms: share(gapMs, gaps),
    tokens_per_second: share(1000 * gaps, answerMs),
  };
}

/** Returns how long the parts of a request took, in the names of llama.cpp's server. */
export function timingsOf(request: TimedRequest): CompletionTimings {
  const { promptMs, answerMs, tokens, gaps } = partsOf(request);
  const { cachedTokens, draftedTokens, acceptedTokens } = request;
  const computed = request.promptTokens - cachedTokens;
  const timings: CompletionTimings = {
    cache_n: cachedTokens,
    prompt_n: computed,
    prompt_ms: promptMs,
    prompt_per_token_ms: share(promptMs, computed),
    prompt_per_second: share(1000 * computed, promptMs),
    predicted_n: tokens,
    predicted_ms: answerMs,
    predicted_per_token_ms: share(answerMs, gaps),
    predicted_per_second: share(1000 * gaps, answerMs),
  };
  return draftedTokens > 0
    ? { ...timings, draft_n: draftedTokens, draft_n_accepted: acceptedTokens }
    : timings;
}

/** Returns a quotient, or 0 if nothing was counted. */
function share(amount: number, count: number): number {
  return count > 0 ? amount / count : 0;
}
