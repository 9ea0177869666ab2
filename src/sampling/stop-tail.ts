/** The end of a text that may still become a stop string, for texts that branch: a value per text, never changed. */
import { StopScanner } from '../stop-strings.ts';
import type { StopRules } from '../text-out.ts';
import { type Tokenizer, textBytes } from '../tokenizer.ts';

/** What the next token is read after. */
export type StopTail = {
  readonly text: string;
  /** Bytes of a character that is not complete. */
  readonly bytes: Uint8Array;
  /** The last token; -1: none. */
  readonly token: number;
};

/** Before the first token. */
export const EMPTY_TAIL: StopTail = { text: '', bytes: new Uint8Array(0), token: -1 };

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Reads one more token. Null: a stop string is complete. Never asked without stop strings. */
export function extendTail(
  tail: StopTail,
  token: number,
  rules: StopRules,
  tokenizer: Tokenizer,
): StopTail | null {
  const added = textBytes(tokenizer, token, tail.token, rules);
  if (added.length === 0) return { ...tail, token };
  const bytes = concat(tail.bytes, added);
  const complete = bytes.length - openBytes(bytes);
  const text = tail.text + decoder.decode(bytes.subarray(0, complete));
  if (new StopScanner(rules.stops!).push(text)) return null;
  const kept = Math.max(0, text.length - rules.stops!.longest + 1);
  return { text: text.slice(kept), bytes: bytes.slice(complete), token };
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

/** How many bytes at the end begin a character that they do not complete. */
function openBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue; // inside a character
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? back : 0;
  }
  return 0;
}
