/** The text of a prompt and its tokens -> the part of the text that each token spells. */
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { AssistantSpan } from '../template/index.ts';

/** A range `[start, end)` of bytes. */
export type TokenSpan = readonly [start: number, end: number];

const SPACE = 0x20;

/**
 * Returns the bytes that each token spells; nothing for tokens that the tokenizer added. Null if the tokens spell another text, as behind
 * a tokenizer that changes its input.
 */
export function tokenSpans(
  text: string,
  ids: Int32Array,
  tokenizer: Pick<Tokenizer, 'bytesOf' | 'isSpecial'>,
): TokenSpan[] | null {
  const bytes = Buffer.from(text);
  const spells = (token: Uint8Array, at: number): boolean =>
    bytes.subarray(at, at + token.length).equals(token);
  const spans: TokenSpan[] = [];
  let at = 0;
  for (const id of ids) {
    const token = tokenizer.bytesOf(id);
    const start = at;
    if (spells(token, at)) at += token.length;
    else if (token[0] === SPACE && spells(token.subarray(1), at))
      at += token.length - 1; // a space that the tokenizer puts before a text
    else if (!tokenizer.isSpecial(id)) return null;
    spans.push([start, at]);
  }
  return at === bytes.length ? spans : null;
}

/** Converts spans of bytes to characters (code points, as in Python). A token inside a character has the whole character. */
export function characterSpans(text: string, spans: readonly TokenSpan[]): [number, number][] {
  const begun = new Uint32Array(Buffer.byteLength(text) + 1); // characters that begin before a byte
  let byte = 0;
  let characters = 0;
  for (const character of text) {
    begun[byte] = characters++;
    const end = byte + Buffer.byteLength(character);
    begun.fill(characters, byte + 1, end + 1);
    byte = end;
  }
  return spans.map(([start, end]) =>
    start === end ? [begun[start]!, begun[start]!] : [begun[start + 1]! - 1, begun[end]!],
  );
}

/** Returns 1 for each token that has a part of what the assistant wrote, else 0. */
export function assistantMask(
  text: string,
  written: readonly AssistantSpan[],
  spans: readonly TokenSpan[],
): number[] {
  const ranges = written.map((range) => range.map((unit) => Buffer.byteLength(text.slice(0, unit))));
  return spans.map(([start, end]) => Number(ranges.some(([from, to]) => start < to! && end > from!)));
}
