/** A text with marks around the assistant's parts -> the text without marks, and the spans. */
import { OnpolicyError } from '../errors.ts';

/** A range `[start, end)` in UTF-16 units. */
export type AssistantSpan = readonly [start: number, end: number];

/** Noncharacters of Unicode, reserved for use inside a program. */
const FIRST_NONCHARACTER = 0xfdd0;
const NONCHARACTER_COUNT = 32;

/** Returns two characters that do not occur in the text. */
export function chooseMarks(text: string): readonly [string, string] {
  const free: string[] = [];
  for (let i = 0; i < NONCHARACTER_COUNT && free.length < 2; i++) {
    const char = String.fromCharCode(FIRST_NONCHARACTER + i);
    if (!text.includes(char)) free.push(char);
  }
  if (free.length < 2)
    throw new OnpolicyError('UNSUPPORTED', 'the text holds every character that could mark the spans');
  return [free[0]!, free[1]!];
}

/** Removes the marks. Nested spans are merged. */
export function splitMarked(
  marked: string,
  [open, close]: readonly [string, string],
): { readonly text: string; readonly spans: readonly AssistantSpan[] } {
  const spans: AssistantSpan[] = [];
  let text = '';
  let depth = 0;
  let spanStart = 0;
  let from = 0;
  const mark = new RegExp(`[${open}${close}]`, 'g');
  for (const match of marked.matchAll(mark)) {
    text += marked.slice(from, match.index);
    from = match.index + 1;
    if (match[0] === open) {
      if (depth === 0) spanStart = text.length;
      depth++;
    } else if (depth > 0 && --depth === 0) spans.push([spanStart, text.length]);
  }
  return { text: text + marked.slice(from), spans };
}
