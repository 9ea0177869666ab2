/** Growing text -> answers to a parser, which reads as if all text were there and pauses while an answer is open. */

/** A piece of a parser. It yields when it needs more text, and returns its answer. */
export type Reading<T = void> = Generator<void, T, void>;

/** A cursor on text that arrives in pieces. How the text is cut into pieces changes no answer. */
export class TextReader {
  #text = '';
  #at = 0;
  #ended = false;
  #recorded: string | null = null; // consumed since `record`

  /** Adds text at the end. */
  push(delta: string): void {
    this.#text = this.#text.slice(this.#at) + delta;
    this.#at = 0;
  }

  /** Says that no more text will come: every open question is answered with what is there. */
  end(): void {
    this.#ended = true;
  }

  /** All text has come and was consumed. */
  isAtEnd(): boolean {
    return this.#ended && this.#at === this.#text.length;
  }

  /** No more text will come. */
  get hasEnded(): boolean {
    return this.#ended;
  }

  /** The text that is there and not consumed yet. */
  available(): string {
    return this.#text.slice(this.#at);
  }

  /** Consumes text that is there. */
  consume(count: number): void {
    if (this.#recorded !== null) this.#recorded += this.#text.slice(this.#at, this.#at + count);
    this.#at += count;
  }

  /** Puts consumed text back. */
  giveBack(text: string): void {
    const start = this.#at - text.length;
    if (start >= 0 && this.#text.startsWith(text, start)) this.#at = start;
    else {
      this.#text = text + this.available();
      this.#at = 0;
    }
    if (this.#recorded !== null) this.#recorded = this.#recorded.slice(0, -text.length || undefined);
  }

  /** Starts remembering what is consumed, as if `consumed` had been just now. */
  record(consumed = ''): void {
    this.#recorded = consumed;
  }

  /** Stops remembering. */
  stopRecording(): void {
    this.#recorded = null;
  }

  /** What was consumed since `record`. */
  recorded(): string {
    return this.#recorded ?? '';
  }

  /** Puts back all that was consumed since `record` but its first `keep` characters. */
  rewind(keep = 0): void {
    this.giveBack(this.recorded().slice(keep));
  }

  /** The next UTF-16 unit, '' at the end of the text. */
  *peek(): Reading<string> {
    while (this.#at === this.#text.length && !this.#ended) yield;
    return this.#text[this.#at] ?? '';
  }

  /** Consumes `literal` if it comes next. */
  *takes(literal: string): Reading<boolean> {
    for (;;) {
      const next = this.#text.slice(this.#at, this.#at + literal.length);
      if (next === literal) {
        this.consume(literal.length);
        return true;
      }
      if (this.#ended || !literal.startsWith(next)) return false;
      yield;
    }
  }

  /** Consumes white space and returns it. */
  *space(): Reading<string> {
    let space = '';
    for (;;) {
      const next = yield* this.peek();
      if (next === '' || !/\s/.test(next)) return space;
      space += next;
      this.consume(1);
    }
  }

  /**
   * Consumes text up to and including the first marker and returns the marker, null when the text ends without one.
   * The text before it goes to `onText` as it comes, except a tail that may still become a marker. Of markers that
   * start at the same place the longest wins. More than `limit` characters without a marker also give null. Where the text ends
   * inside a marker, `dropsTail` keeps that beginning from `onText`.
   */
  *until(
    markers: readonly string[],
    onText: (text: string) => void,
    limit = Number.POSITIVE_INFINITY,
    dropsTail = false,
  ): Reading<string | null> {
    const search = searchFor(markers);
    for (let left = limit; ; ) {
      // what lies beyond the limit is not looked at: it may be much
      const text = this.#text.slice(0, this.#at + left + search.maxLength + 1);
      const found = search.find(text, this.#at);
      const isWhole = this.#ended && text.length === this.#text.length;
      const open = isWhole && !dropsTail ? text.length : openTail(text, this.#at, markers);
      const isFound = found !== null && found.at < open;
      const before = text.slice(this.#at, Math.min(isFound ? found.at : open, this.#at + left + 1));
      if (before !== '') {
        this.consume(before.length);
        onText(before);
        left -= before.length;
      }
      if (left < 0) return null;
      if (isFound) {
        this.consume(found.marker.length);
        return found.marker;
      }
      if (this.#ended) return null;
      yield;
    }
  }
}

type Search = {
  readonly maxLength: number;
  /** The first marker from `from` on. */
  readonly find: (text: string, from: number) => { at: number; marker: string } | null;
};

const searches = new WeakMap<readonly string[], Search>();

/** One pass over the text for all markers, made once per list of markers. */
function searchFor(markers: readonly string[]): Search {
  const known = searches.get(markers);
  if (known) return known;
  const longestFirst = [...markers].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map((marker) => marker.replace(/\W/g, '\\$&')).join('|'), 'g');
  const search: Search = {
    maxLength: longestFirst[0]?.length ?? 0,
    find(text, from) {
      if (markers.length === 0) return null;
      pattern.lastIndex = from;
      const match = pattern.exec(text);
      return match && { at: match.index, marker: match[0] };
    },
  };
  searches.set(markers, search);
  return search;
}

/** Where the tail begins that may still become a marker, or the half of a character that is still open. */
function openTail(text: string, from: number, markers: readonly string[]): number {
  const end = text.length;
  let open = end;
  for (const marker of markers) {
    for (let at = Math.max(from, end - marker.length + 1); at < open; at++) {
      if (marker.startsWith(text.slice(at))) open = at;
    }
  }
  return open === end && end > from && isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : open;
}

/** Drives a parser: gives it text, and lets it run until it needs more. */
export class ParserRun {
  readonly #reader: TextReader;
  readonly #parser: Reading;

  constructor(reader: TextReader, parser: Reading) {
    this.#reader = reader;
    this.#parser = parser;
  }

  push(delta: string): void {
    this.#reader.push(delta);
    this.#parser.next();
  }

  finish(): void {
    this.#reader.end();
    this.#parser.next();
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
