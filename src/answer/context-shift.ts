/**
 * Tokens that have filled a context -> the same without the oldest, computed again. So it goes on with any model, adapter and
 * cache, and its tokens are those that a request with the tokens that are left would give.
 */

/** What stays when a context is full. */
export type ContextShift = {
  /** Leading tokens that are never dropped. */
  readonly keep: number;
  readonly contextSize: number;
  /** Tokens of the prompt that were dropped. */
  readonly dropped: number;
};

/**
 * How many tokens behind the first `keep` are dropped, so that one more fits: none, or whole blocks of half the rest. The next turn of a
 * chat then mostly drops the same ones, and finds what is left in the cache.
 */
export function tokensToDrop(
  length: number,
  { keep, contextSize }: Pick<ContextShift, 'keep' | 'contextSize'>,
): number {
  const tooMany = length + 1 - contextSize;
  if (tooMany <= 0) return 0;
  const block = Math.floor((contextSize - keep) / 2);
  return Math.ceil(tooMany / block) * block;
}

/** The tokens without those that are dropped. */
export function withoutDropped(tokens: Int32Array, keep: number, dropped: number): Int32Array {
  if (dropped === 0) return tokens.slice();
  const left = new Int32Array(tokens.length - dropped);
  left.set(tokens.subarray(0, keep));
  left.set(tokens.subarray(keep + dropped), keep);
  return left;
}
