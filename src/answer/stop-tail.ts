/** A token -> the end of a text that may grow into a stop string. Each text has its own immutable value, so texts can branch. */

import { decodeWhole, NO_BYTES, type Tokenizer, textBytes } from '../engine/tokenizer/index.ts';
import { StopScanner } from './stop-strings.ts';
import type { StopRules } from './text-out.ts';

/** State of a text before its next token. */
export type StopTail = {
  readonly text: string;
  /** Bytes of an incomplete character at the end. */
  readonly bytes: Uint8Array;
  /** The last token, or -1 before the first. */
  readonly token: number;
};

/** State before the first token. */
export const EMPTY_TAIL: StopTail = { text: '', bytes: NO_BYTES, token: -1 };

/** Reads one more token. Returns null if a stop string is complete. Requires `rules.stops`. */
export function extendTail(
  tail: StopTail,
  token: number,
  rules: StopRules,
  tokenizer: Tokenizer,
): StopTail | null {
  const added = textBytes(tokenizer, token, tail.token, rules);
  if (added.length === 0) return { ...tail, token };
  const { text: more, open } = decodeWhole(tail.bytes, added);
  const text = tail.text + more;
  if (new StopScanner(rules.stops!).push(text)) return null;
  const kept = Math.max(0, text.length - rules.stops!.longest + 1);
  return { text: text.slice(kept), bytes: open, token };
}
