/** Pieces of text -> the same pieces with line breaks between words, for a terminal of a given width. */
import { stripVTControlCharacters } from 'node:util';

/** Letters that take two columns: those of East Asian scripts, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
/** Letters that take no column of their own. */
const NARROW = /^[\p{Mn}\p{Me}\p{Cf}]/u;

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Returns the columns that a text takes in a terminal. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const { segment } of graphemes.segment(stripVTControlCharacters(text)))
    columns += NARROW.test(segment) ? 0 : WIDE.test(segment) ? 2 : 1;
  return columns;
}

/**
 * Breaks lines between words. The last word of a piece is held back until it ends or no longer fits. Words wider than the terminal, and
 * scripts without blanks, are left to the terminal.
 */
export class Wrapper {
  readonly #width: () => number;
  /** Columns of the current line that are written. */
  #column = 0;
  /** Blanks that are held back: they are dropped where a line breaks. */
  #blanks = '';
  #word = '';
  /** True while the current word is written as it comes, because its beginning already is. */
  #isOpen = false;

  /** `width` returns the columns of the terminal, which may change; `Infinity` breaks no lines. */
  constructor(width: () => number) {
    this.#width = width;
  }

  /** Returns what to write for a piece. */
  add(piece: string): string {
    if (this.#width() === Number.POSITIVE_INFINITY) return piece;
    let out = '';
    for (const part of piece.split(/(\n|[ \t]+)/)) {
      if (part === '') continue;
      if (part === '\n') {
        out += `${this.flush()}\n`;
        this.#column = 0;
      } else if (part.trim() === '') {
        out += this.#endWord();
        this.#blanks += part.replaceAll('\t', '    ');
      } else out += this.#addToWord(part);
    }
    return out;
  }

  /** Returns what was held back. */
  flush(): string {
    const out = this.#endWord() + this.#blanks;
    this.#column += this.#blanks.length;
    this.#blanks = '';
    return out;
  }

  #addToWord(part: string): string {
    if (this.#isOpen) {
      this.#column = (this.#column + columnsOf(part)) % this.#width();
      return part;
    }
    this.#word += part;
    const needed = this.#blanks.length + columnsOf(this.#word);
    if (this.#column + needed <= this.#width()) return '';
    return this.#placeWord(true);
  }

  #endWord(): string {
    const out = this.#word === '' ? '' : this.#placeWord(false);
    this.#isOpen = false;
    return out;
  }

  /** Writes the word on this line, or on the next if it does not fit. `isOpen`: the word goes on. */
  #placeWord(isOpen: boolean): string {
    const columns = columnsOf(this.#word);
    const fits = this.#column + this.#blanks.length + columns <= this.#width();
    const breaks = !fits && this.#column > 0;
    const out = (breaks ? '\n' : this.#blanks) + this.#word;
    this.#column = ((breaks ? 0 : this.#column + this.#blanks.length) + columns) % (this.#width() + 1);
    this.#blanks = '';
    this.#word = '';
    this.#isOpen = isOpen;
    return out;
  }
}
