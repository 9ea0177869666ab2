/** A text and a pattern -> positions or parts, with Python's rules for bounds, whitespace and line ends. */
import { valueError } from '../py-error.ts';
import type { RenderState } from '../render-state.ts';
import { codePointLength, isPlain, WHITESPACE } from '../unicode.ts';

/** A part of a text, and the number of code points before it. */
type Window = { readonly text: string; readonly offset: number };

/** Returns the part `[start, end)` in code points, clamped as in Python. Null if it starts after its end. */
export function windowOf(text: string, start: number | null, end: number | null): Window | null {
  if (start === null && end === null) return { text, offset: 0 };
  const units = isPlain(text) ? text : [...text];
  const clamp = (at: number): number => (at < 0 ? Math.max(0, at + units.length) : at);
  const from = start === null ? 0 : clamp(start);
  const to = end === null ? units.length : Math.min(units.length, clamp(end));
  if (from > to) return null;
  const part = units.slice(from, to);
  return { text: typeof part === 'string' ? part : part.join(''), offset: from };
}

/** Searches in a window. Returns the code point index in the whole text, or -1. */
export function find({ text, offset }: Window, part: string, fromRight: boolean): number {
  const at = fromRight ? text.lastIndexOf(part) : text.indexOf(part);
  return at < 0 ? -1 : offset + codePointLength(text.slice(0, at));
}

/** Counts occurrences in a window that do not overlap. */
export function count({ text }: Window, part: string): number {
  if (part === '') return codePointLength(text) + 1;
  let total = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) total++;
  return total;
}

/** `split(sep, maxsplit)` with a separator. `limit` < 0 means no limit. */
export function splitBy(state: RenderState, text: string, separator: string, limit: number): string[] {
  if (separator === '') return valueError('empty separator');
  const parts = text.split(separator);
  state.work(parts.length);
  if (limit < 0 || parts.length <= limit) return parts;
  return [...parts.slice(0, limit), parts.slice(limit).join(separator)];
}

const WORD = new RegExp(`[^${WHITESPACE}]+`, 'g');

/** `split(None, maxsplit)`: splits at runs of whitespace, without empty parts. */
export function splitSpaces(state: RenderState, text: string, limit: number): string[] {
  const parts: string[] = [];
  for (const word of text.matchAll(WORD)) {
    if (limit >= 0 && parts.length >= limit) return [...parts, text.slice(word.index)];
    state.step();
    parts.push(word[0]);
  }
  return parts;
}

/** Returns the UTF-16 units of a text from last to first. A search from the right is a search in this text. */
export function backwards(text: string): string {
  return text.split('').reverse().join('');
}

/** Returns the text without these characters at its ends. Takes linear time. */
export function strip(text: string, characters: ReadonlySet<string>, left: boolean, right: boolean): string {
  let start = 0;
  let end = text.length;
  while (left && start < end) {
    const char = String.fromCodePoint(text.codePointAt(start)!);
    if (!characters.has(char)) break;
    start += char.length;
  }
  while (right && end > start) {
    const pair = text.slice(Math.max(start, end - 2), end);
    const char = pair.codePointAt(0)! > 0xffff ? pair : pair.slice(-1);
    if (!characters.has(char)) break;
    end -= char.length;
  }
  return text.slice(start, end);
}

export function splitLines(state: RenderState, text: string, keepEnds: boolean): string[] {
  const parts = text.split(/(\r\n|[\n-\r\x1c-\x1e\x85\u2028\u2029])/); // lines and their line ends
  state.work(parts.length);
  const lines: string[] = [];
  for (let i = 0; i < parts.length; i += 2) lines.push(parts[i]! + (keepEnds ? (parts[i + 1] ?? '') : ''));
  if (parts.at(-1) === '') lines.pop();
  return lines;
}

/** `replace(old, new, count)`; `limit` < 0 replaces all. */
export function replace(
  state: RenderState,
  text: string,
  old: string,
  replacement: string,
  limit: number,
): string {
  state.scan(text.length);
  if (limit === 0 || !text.includes(old)) return state.made(text);
  const parts = old === '' ? ['', ...text, ''] : text.split(old);
  state.work(parts.length);
  const count = limit < 0 ? parts.length - 1 : Math.min(limit, parts.length - 1);
  state.reserve(text.length + count * (replacement.length - old.length));
  return [parts.slice(0, count + 1).join(replacement), ...parts.slice(count + 1)].join(old);
}
