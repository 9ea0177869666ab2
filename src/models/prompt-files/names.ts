/** Tokens of a prompt, and the identity that computes them -> the names of its caches. Names reveal nothing about the text. */
import { createHash } from 'node:crypto';

/** A part of a prompt's cache: tokens `from` to `to`, computed after all the tokens before them. */
export type CachePart = { readonly name: string; readonly from: number; readonly to: number };

/**
 * Returns the parts of `tokens` that end at these positions, ascending. With `isWhole` each part begins with the first token, else after
 * the previous part.
 */
export function partsAt(
  cacheKey: string,
  tokens: Int32Array,
  ends: readonly number[],
  isWhole: boolean,
): CachePart[] {
  const hash = createHash('sha256').update(`${JSON.stringify(cacheKey)}\n`);
  let from = 0;
  return ends.map((to) => {
    const ids = tokens.subarray(from, to);
    hash.update(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength));
    const part = { name: `${to}-${hash.copy().digest('hex')}.kv`, from: isWhole ? 0 : from, to };
    from = to;
    return part;
  });
}

const NAME = /^([1-9][0-9]{0,9})-[0-9a-f]{64}\.kv$/;

/** Returns the number of tokens up to the end of the cache with this name. Returns null for other names. */
export function endOf(name: string): number | null {
  const [, end] = NAME.exec(name) ?? [];
  return end === undefined ? null : Number(end);
}
