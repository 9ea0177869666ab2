/** One line of text -> lines of at most a width: Python's textwrap.wrap without tab and whitespace changes. */
import { valueError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { codePointLength, WHITESPACE_CLASS } from '../python/unicode.ts';

/** Options of wrapping. */
export type WrapOptions = {
  readonly width: number;
  readonly breakLongWords: boolean;
  readonly breakOnHyphens: boolean;
};

const SPACES = /([\t-\r ]+)/;
const LETTER = '\\p{L}\\p{N}_';
/** Whitespace, dashes between words, or a word that may end at a hyphen between letters. */
const CHUNKS = new RegExp(
  `([\\t-\\r ]+|(?<=[${LETTER}!"'&.,?])-{2,}(?=[${LETTER}])|[^\\t-\\r ]+?(?:` +
    '-(?:(?<=[\\p{L}_]{2}-)|(?<=[\\p{L}_]-[' +
    `${LETTER}!"'&.,?]-))(?=[\\p{L}_]-?[\\p{L}_])` +
    `|(?=[\\t-\\r ]|$)|(?<=[${LETTER}!"'&.,?])(?=-{2,}[${LETTER}])))`,
  'u',
);

const BLANK = new RegExp(`^[${WHITESPACE_CLASS}]*$`);

function isBlank(chunk: string): boolean {
  return BLANK.test(chunk);
}

/** Wraps one paragraph. */
export function wrapParagraph(state: RenderState, text: string, options: WrapOptions): string[] {
  const { width } = options;
  if (width <= 0) return valueError(`invalid width ${width} (must be > 0)`);
  state.work(text.length);
  const chunks = text
    .split(options.breakOnHyphens ? CHUNKS : SPACES)
    .filter((chunk) => chunk !== '')
    .reverse();
  const lines: string[] = [];
  while (chunks.length > 0) {
    state.step();
    if (lines.length > 0 && isBlank(chunks.at(-1)!)) chunks.pop();
    const line: string[] = [];
    let length = 0;
    while (chunks.length > 0) {
      const next = codePointLength(chunks.at(-1)!);
      if (length + next > width) break;
      line.push(chunks.pop()!);
      length += next;
    }
    if (chunks.length > 0 && codePointLength(chunks.at(-1)!) > width)
      length += takeLongWord(chunks, line, length, options);
    if (line.length > 0 && isBlank(line.at(-1)!)) line.pop();
    if (line.length > 0) lines.push(line.join(''));
  }
  return lines;
}

/** Splits a word that is longer than a line: adds as much of it as fits. */
function takeLongWord(chunks: string[], line: string[], used: number, options: WrapOptions): number {
  const room = options.width < 1 ? 1 : options.width - used;
  if (!options.breakLongWords) {
    if (line.length === 0) line.push(chunks.pop()!);
    return 0;
  }
  const characters = [...chunks.at(-1)!];
  let end = room;
  if (options.breakOnHyphens && characters.length > room) {
    const hyphen = characters.slice(0, room).lastIndexOf('-');
    if (hyphen > 0 && characters.slice(0, hyphen).some((char) => char !== '-')) end = hyphen + 1;
  }
  line.push(characters.slice(0, end).join(''));
  chunks[chunks.length - 1] = characters.slice(end).join('');
  return end;
}
