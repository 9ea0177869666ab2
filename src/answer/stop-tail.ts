/** A token -> the end of a text that may grow into a stop string. Each text has its own immutable value, so texts can branch. */

import { decodeWhole, NO_BYTES, type Tokenizer, textBytes } from '../tokenizer/index.ts';
import { StopScanner } from './stop-strings.ts';
import type { StopRules } from './text-out.ts';

/** What the next token is read after. */
export type StopTail = {
  readonly text: string;
  /** Bytes of a character that is not complete. */
  readonly bytes: Uint8Array;
  /** The last token; -1: none. */
  readonly token: number;
};

/** Before the first token. */
export const EMPTY_TAIL: StopTail = { text: '', bytes: NO_BYTES, token: -1 };

/** Reads one more token. Null: a stop string is complete. Never asked without stop strings. */
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
