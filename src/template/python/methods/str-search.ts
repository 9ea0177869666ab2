/** A text and a pattern -> positions or parts, with Python's rules for bounds, whitespace and line ends. */
import { valueError } from '../py-error.ts';
import type { RenderState } from '../render-state.ts';
import { codePointLength, isPlain, isSpaceUnit, unitOffset } from '../unicode.ts';

/** Bounds `[start, end)` of a slice in code points, clamped as Python clamps them. */
function clampBounds(length: number, start: number | null, end: number | null): [number, number] {
  const clamp = (at: number): number => (at < 0 ? Math.max(0, at + length) : at);
  return [start === null ? 0 : clamp(start), end === null ? length : Math.min(length, clamp(end))];
}

/** The part of the text between two bounds, with the offset of its first unit. */
export type Window = { readonly text: string; readonly from: number; readonly to: number };

/** A window of a text in UTF-16 units; null if the bounds cross or start after the end. */
export function windowOf(text: string, start: number | null, end: number | null): Window | null {
  if (start === null && end === null) return { text, from: 0, to: text.length };
  const plain = isPlain(text);
  const length = plain ? text.length : codePointLength(text);
  const [from, to] = clampBounds(length, start, end);
  if (from > to) return null;
  return plain ? { text, from, to } : { text, from: unitOffset(text, from), to: unitOffset(text, to) };
}

/** `find` in a window: the code point index in the whole text, or -1. */
export function find(window: Window, part: string, fromRight: boolean): number {
  const { text, from, to } = window;
  const at = fromRight ? text.lastIndexOf(part, to - part.length) : text.indexOf(part, from);
  if (at < from || at + part.length > to || to - part.length < from) return -1;
  return isPlain(text) ? at : codePointLength(text.slice(0, at));
}

/** `count` in a window: occurrences that do not overlap. */
export function count(window: Window, part: string): number {
  const text = window.text.slice(window.from, window.to);
  if (part === '') return codePointLength(text) + 1;
  let total = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) total++;
  return total;
}

/** `split(sep, maxsplit)` with a separator. `limit` < 0 means no limit. */
export function splitBy(state: RenderState, text: string, separator: string, limit: number): string[] {
  if (separator === '') return valueError('empty separator');
  const parts: string[] = [];
  let start = 0;
  while (limit < 0 || parts.length < limit) {
    const at = text.indexOf(separator, start);
    if (at < 0) break;
    state.step();
    parts.push(text.slice(start, at));
    start = at + separator.length;
  }
  parts.push(text.slice(start));
  return parts;
}

/** `rsplit(sep, maxsplit)` with a separator. */
export function splitByFromRight(
  state: RenderState,
  text: string,
  separator: string,
  limit: number,
): string[] {
  if (separator === '') return valueError('empty separator');
  const parts: string[] = [];
  let end = text.length;
  while (limit < 0 || parts.length < limit) {
    if (end < separator.length) break;
    const at = text.lastIndexOf(separator, end - separator.length);
    if (at < 0) break;
    state.step();
    parts.push(text.slice(at + separator.length, end));
    end = at;
  }
  parts.push(text.slice(0, end));
  return parts.reverse();
}

/** `split(None, maxsplit)`: splits at runs of whitespace, without empty parts. */
export function splitSpaces(state: RenderState, text: string, limit: number): string[] {
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    while (at < text.length && isSpaceUnit(text.charCodeAt(at))) at++;
    if (at >= text.length) return parts;
    if (limit >= 0 && parts.length >= limit) {
      parts.push(text.slice(at));
      return parts;
    }
    const start = at;
    while (at < text.length && !isSpaceUnit(text.charCodeAt(at))) at++;
    state.step();
    parts.push(text.slice(start, at));
  }
}

/** `rsplit(None, maxsplit)`. */
export function splitSpacesFromRight(state: RenderState, text: string, limit: number): string[] {
  if (limit < 0) return splitSpaces(state, text, -1);
  const parts: string[] = [];
  let end = text.length;
  for (;;) {
    while (end > 0 && isSpaceUnit(text.charCodeAt(end - 1))) end--;
    if (end === 0) break;
    if (parts.length >= limit) {
      parts.push(text.slice(0, end));
      break;
    }
    const stop = end;
    while (end > 0 && !isSpaceUnit(text.charCodeAt(end - 1))) end--;
    state.step();
    parts.push(text.slice(end, stop));
  }
  return parts.reverse();
}

/** Strips Python whitespace. Linear in the text. */
export function stripSpaces(text: string, left: boolean, right: boolean): string {
  let start = 0;
  let end = text.length;
  if (left) while (start < end && isSpaceUnit(text.charCodeAt(start))) start++;
  if (right) while (end > start && isSpaceUnit(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Strips the given characters. */
export function stripCharacters(text: string, characters: string, left: boolean, right: boolean): string {
  const set = new Set(characters);
  let start = 0;
  let end = text.length;
  if (left)
    while (start < end) {
      const char = String.fromCodePoint(text.codePointAt(start)!);
      if (!set.has(char)) break;
      start += char.length;
    }
  if (right)
    while (end > start) {
      const low = text.charCodeAt(end - 1);
      const isPair = low >= 0xdc00 && low <= 0xdfff && end - 2 >= start;
      const char = text.slice(isPair ? end - 2 : end - 1, end);
      if (!set.has(char)) break;
      end -= char.length;
    }
  return text.slice(start, end);
}

function isLineEnd(unit: number): boolean {
  return (
    (unit >= 10 && unit <= 13) ||
    (unit >= 0x1c && unit <= 0x1e) ||
    unit === 0x85 ||
    unit === 0x2028 ||
    unit === 0x2029
  );
}

/** `splitlines(keepends)`. */
export function splitLines(state: RenderState, text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  while (start < text.length) {
    let end = start;
    while (end < text.length && !isLineEnd(text.charCodeAt(end))) end++;
    let next = Math.min(end + 1, text.length);
    if (text[end] === '\r' && text[end + 1] === '\n') next++;
    state.step();
    lines.push(text.slice(start, keepEnds ? next : end));
    start = next;
  }
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
  if (limit === 0) return text;
  if (old === '') return replaceEmpty(state, text, replacement, limit);
  let result = '';
  let start = 0;
  for (let done = 0; limit < 0 || done < limit; done++) {
    const at = text.indexOf(old, start);
    if (at < 0) break;
    state.step();
    result += text.slice(start, at) + replacement;
    if (result.length > state.limits.maxValueCharacters) state.reserve(result.length);
    start = at + old.length;
  }
  return state.made(result + text.slice(start));
}

function replaceEmpty(state: RenderState, text: string, replacement: string, limit: number): string {
  const characters = [...text];
  const places = limit < 0 ? characters.length + 1 : Math.min(limit, characters.length + 1);
  state.work(places);
  state.reserve(text.length + places * replacement.length);
  let result = '';
  characters.forEach((char, index) => {
    result += (index < places ? replacement : '') + char;
  });
  return places > characters.length ? result + replacement : result;
}
