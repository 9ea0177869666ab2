/** A value -> text of Python's str() and repr(), and HTML escaping. */

import { reprFloat } from './float-text.ts';
import { intText } from './numbers.ts';
import type { RenderState } from './render-state.ts';
import { escapeCode, isPrintable } from './unicode.ts';
import { Dict, isList, Markup, PyFloat, Tuple, Undefined, type Value } from './values.ts';

export function toText(state: RenderState, value: Value): string {
  if (typeof value === 'string') return value;
  if (value === null) return 'None';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value instanceof Markup) return value.text;
  if (value instanceof Undefined) {
    value.useAsEmpty();
    return '';
  }
  return repr(state, value);
}

export function repr(state: RenderState, value: Value): string {
  const writer = new ReprWriter(state);
  writer.write(value);
  return writer.text;
}

/** A growing text within the limits of a render, because the text of shared lists can be exponentially large. */
export class TextWriter {
  text = '';
  protected readonly state: RenderState;

  constructor(state: RenderState) {
    this.state = state;
  }

  protected add(text: string): void {
    this.state.reserve(text.length);
    this.text += text;
    if (this.text.length > this.state.limits.maxValueCharacters) this.state.reserve(this.text.length);
  }

  /** Writes items between two brackets, one nesting level deeper. */
  protected nested<T>(
    open: string,
    items: Iterable<T>,
    separator: string,
    close: string,
    write: (item: T) => void,
  ): void {
    this.state.enter();
    this.add(open);
    let isFirst = true;
    for (const item of items) {
      if (!isFirst) this.add(separator);
      isFirst = false;
      write(item);
    }
    this.add(close);
    this.state.leave();
  }
}

/** Writes nested values and counts each. A list that contains itself ends at the depth limit. */
class ReprWriter extends TextWriter {
  write(value: Value): void {
    this.state.step();
    if (typeof value === 'string') this.add(reprText(value));
    else if (value === null) this.add('None');
    else if (typeof value === 'boolean') this.add(value ? 'True' : 'False');
    else if (typeof value === 'number' || typeof value === 'bigint') this.add(intText(value));
    else if (value instanceof PyFloat) this.add(reprFloat(value.value));
    else if (value instanceof Markup) this.add(`Markup(${reprText(value.text)})`);
    else if (value instanceof Undefined) this.add('Undefined');
    else if (isList(value)) this.nested('[', value, ', ', ']', (item) => this.write(item));
    else if (value instanceof Tuple) {
      const close = value.items.length === 1 ? ',)' : ')';
      this.nested('(', value.items, ', ', close, (item) => this.write(item));
    } else if (value instanceof Dict)
      this.nested('{', value.entries(), ', ', '}', ([key, item]) => {
        this.write(key);
        this.add(': ');
        this.write(item);
      });
    else {
      const shown = value.repr(this.state);
      if (typeof shown === 'string') return this.add(shown);
      this.add(shown.before);
      this.write(shown.inner);
      this.add(shown.after);
    }
  }
}

const SHORT_ESCAPES = new Map(Object.entries({ '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' }));

function reprText(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let result = quote;
  for (const char of text) {
    const short = SHORT_ESCAPES.get(char);
    if (short !== undefined) result += short;
    else if (char === quote) result += `\\${quote}`;
    else if (isPrintable(char)) result += char;
    else result += escapeCode(char.codePointAt(0)!);
  }
  return result + quote;
}

/** Returns the text with each match replaced, within the limits. Unlike String.replace it writes each match before it searches on. */
export function replaceEach(
  state: RenderState,
  text: string,
  pattern: RegExp,
  replace: (match: RegExpExecArray) => string,
): string {
  let result = '';
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    state.step();
    result += text.slice(at, match.index) + replace(match);
    at = match.index + match[0].length;
    if (result.length > state.limits.maxValueCharacters) state.reserve(result.length);
  }
  return state.made(result + text.slice(at));
}

const HTML_ESCAPES = new Map(
  Object.entries({ '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#39;', '"': '&#34;' }),
);

export function escapeHtml(state: RenderState, text: string): string {
  state.scan(text.length);
  return state.made(text.replace(/[&<>'"]/g, (char) => HTML_ESCAPES.get(char)!));
}

/** Works as markupsafe.escape: returns Markup unchanged, and other values as escaped text. */
export function escapeValue(state: RenderState, value: Value): Markup {
  return value instanceof Markup ? value : new Markup(escapeHtml(state, toText(state, value)));
}
