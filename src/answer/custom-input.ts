/** JSON arguments of a custom tool's call, piece by piece -> the text of their one member. */
import { CUSTOM_INPUT } from '../protocol/index.ts';

/** Parts of the JSON before the text. White space is allowed before each. */
const HEAD = ['{', `"${CUSTOM_INPUT}"`, ':', '"'] as const;

/** Reads the arguments of one call. If the JSON has another form, as a model may write without a constraint, it is returned unchanged. */
export class CustomInput {
  #state: 'head' | 'text' | 'json' | 'end' = 'head';
  #rest = ''; // not yet passed on

  push(json: string): string {
    this.#rest += json;
    if (this.#state === 'head') this.#readHead();
    switch (this.#state) {
      case 'text':
        return this.#readText();
      case 'json':
        return this.#take(this.#rest.length);
      default:
        return '';
    }
  }

  #readHead(): void {
    let at = 0;
    for (const part of HEAD) {
      while (/\s/.test(this.#rest[at] ?? '')) at += 1;
      const found = this.#rest.slice(at, at + part.length);
      if (found === '}' && part === HEAD[1]) {
        this.#state = 'end'; // no arguments
        return;
      }
      if (!part.startsWith(found)) {
        this.#state = 'json';
        return;
      }
      if (found.length < part.length) return; // there may be more to come
      at += part.length;
    }
    this.#take(at);
    this.#state = 'text';
  }

  #readText(): string {
    let end = 0; // end of the complete characters
    while (end < this.#rest.length && this.#rest[end] !== '"') {
      const length = this.#rest[end] === '\\' ? escapeLength(this.#rest, end) : 1;
      if (end + length > this.#rest.length) break;
      end += length;
    }
    const isEnd = this.#rest[end] === '"';
    const text = JSON.parse(`"${this.#take(end)}"`) as string;
    if (isEnd) this.#state = 'end';
    return text;
  }

  #take(length: number): string {
    const taken = this.#rest.slice(0, length);
    this.#rest = this.#rest.slice(length);
    return taken;
  }
}

/** Returns the length of an escape sequence. The two halves of a surrogate pair count as one. */
function escapeLength(text: string, at: number): number {
  if (text[at + 1] !== 'u') return 2;
  const isHigh = /^d[89ab]/i.test(text.slice(at + 2, at + 4));
  const next = text.slice(at + 6, at + 8);
  if (!isHigh || !'\\u'.startsWith(next)) return 6;
  return 12;
}
