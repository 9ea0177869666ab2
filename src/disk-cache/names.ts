/** Tokens of a prompt, and what computes them -> the names of its caches. Names say nothing about the text. */
import { createHash } from 'node:crypto';

/** A part of a prompt's cache: tokens `from` to `to`, as they are behind all the tokens before them. */
export type CachePart = { readonly name: string; readonly from: number; readonly to: number };

/** The parts of `tokens` that end at these places, ascending. With `isWhole` each begins with the first token, else where the one before ends. */
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

/** How many tokens a cache of this name ends behind; null: no name of a cache. */
export function endOf(name: string): number | null {
  const [, end] = NAME.exec(name) ?? [];
  return end === undefined ? null : Number(end);
}
