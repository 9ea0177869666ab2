/** Growing text -> answers to a parser, which is written as if all text were there and pauses until it is. */

/** A piece of a parser. It yields when it needs more text, and returns its answer. */
export type Reading<T = void> = Generator<void, T, void>;

/** A cursor on text that arrives in pieces. The results do not depend on the boundaries of the pieces. */
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

  /** Marks the end of the text. Pending reads are answered with the text that is there. */
  end(): void {
    this.#ended = true;
  }

  /** Returns true if the text has ended and all of it is consumed. */
  isAtEnd(): boolean {
    return this.#ended && this.#at === this.#text.length;
  }

  /** True if no more text will arrive. */
  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Returns the text that has arrived and is not consumed yet. */
  available(): string {
    return this.#text.slice(this.#at);
  }

  /** Consumes characters of the available text. */
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

  /** Starts to record consumed text. `consumed` is text before it that belongs to the record. */
  record(consumed = ''): void {
    this.#recorded = consumed;
  }

  /** Stops recording. */
  stopRecording(): void {
    this.#recorded = null;
  }

  /** Returns the text consumed since `record`. */
  recorded(): string {
    return this.#recorded ?? '';
  }

  /** Puts back the text consumed since `record`, except its first `keep` characters. */
  rewind(keep = 0): void {
    this.giveBack(this.recorded().slice(keep));
  }

  /** Returns the next UTF-16 unit, or '' at the end of the text. */
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

  /** If the text has ended and the rest is the beginning of one of these markers, consumes it and returns true. */
  takesCutMark(markers: readonly string[]): boolean {
    const length = this.#ended ? cutMark(this.#text, this.#at, markers) : 0;
    if (length === 0 || length < this.#text.length - this.#at) return false;
    this.consume(length);
    return true;
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
   * The text before it is passed to `onText` as it arrives, except a tail that may still become a marker. The longest of several
   * markers at the same position counts. Also returns null after more than `limit` characters without a marker. `tail` is the
   * treatment of the beginning of a marker at the end of the text.
   */
  *until(
    markers: readonly string[],
    onText: (text: string) => void,
    limit = Number.POSITIVE_INFINITY,
    tail: CutTail = 'kept',
  ): Reading<string | null> {
    const search = searchFor(markers);
    for (let left = limit; ; ) {
      // text beyond the limit is not searched, as it may be long
      const text = this.#text.slice(0, this.#at + left + search.maxLength + 1);
      const found = search.find(text, this.#at);
      const isWhole = this.#ended && text.length === this.#text.length;
      const open =
        isWhole && tail !== 'dropped'
          ? text.length - (tail === 'kept' ? 0 : cutMark(text, this.#at, markers))
          : openTail(text, this.#at, markers);
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

/**
 * Treatment of the beginning of a marker at the end of the text: it counts as text or is dropped. `markDropped`: it is dropped only
 * if it cannot be the end of an ordinary text.
 */
export type CutTail = 'kept' | 'dropped' | 'markDropped';

/** Returns true if a marker starts with a bracket and has more characters, so that its first two differ from ordinary text. */
export function isMark(marker: string): boolean {
  return marker.length > 1 && /^[<[\]◁]/.test(marker);
}

/** Returns the length of the beginning of a marker, at least two characters, at the end of an ended text. 0 if there is none. */
function cutMark(text: string, from: number, markers: readonly string[]): number {
  const length = text.length - openTail(text, from, markers.filter(isMark));
  return length > 1 ? length : 0;
}

type Search = {
  readonly maxLength: number;
  /** Returns the first marker from `from` on. */
  readonly find: (text: string, from: number) => { at: number; marker: string } | null;
};

const searches = new WeakMap<readonly string[], Search>();

/** Returns a search for all markers in one pass over the text. It is created once per list of markers. */
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

/** Returns the offset of a tail that may still become a marker, or that is the first half of a surrogate pair. */
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

/** Runs a parser: passes it text, and resumes it until it needs more. */
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
