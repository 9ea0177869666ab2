/**
 * Tokens that have filled a context -> the same tokens without the oldest, to be computed again. Recomputing works with any model, adapter
 * and cache, and gives the same tokens as a request with the tokens that are left.
 */

/** Rule for dropping tokens when a context is full. */
export type ContextShift = {
  /** Leading tokens that are never dropped. */
  readonly keep: number;
  readonly contextSize: number;
  /** Number of prompt tokens that were dropped. */
  readonly dropped: number;
};

/**
 * Returns how many tokens behind the first `keep` are dropped, so that one more fits: 0, or a multiple of half the rest. Dropping whole
 * blocks makes the next turn of a chat mostly drop the same tokens, so that it finds the others in the cache.
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

/** Returns the tokens without those that are dropped. */
export function withoutDropped(tokens: Int32Array, keep: number, dropped: number): Int32Array {
  if (dropped === 0) return tokens.slice();
  const left = new Int32Array(tokens.length - dropped);
  left.set(tokens.subarray(0, keep));
  left.set(tokens.subarray(keep + dropped), keep);
  return left;
}
