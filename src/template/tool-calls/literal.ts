/** A literal of Python or Gemma -> JSON text, piece by piece. */
import type { Reading, TextReader } from '../text-reader.ts';
import { NOT_A_CALL } from './context.ts';
import { isJsonNumber, isNumberText, numberToJson } from './numbers.ts';
import { inside, type ParameterTypes, type Typed, typesOf } from './schema-types.ts';

/** The syntax of values. */
export type Dialect = {
  /** Quotes of strings. */
  readonly quotes: readonly string[];
  /** True if all strings have backslash escapes. Strings in double quotes always have them. */
  readonly hasEscapes: boolean;
  /** True if keys and unknown words are strings without quotes. */
  readonly hasBareStrings: boolean;
};

export const PYTHON: Dialect = { quotes: ["'''", '"""', "'", '"'], hasEscapes: true, hasBareStrings: false };

type OnText = (text: string) => void;

/** The schema and the depth of a value. */
type Place = {
  /** The schema of the value. Null if there is none. */
  readonly typed: Typed | null;
  readonly depth: number;
};

const NOWHERE: Place = { typed: null, depth: 0 };

/** Returns the place of a member, or of an item if `name` is null. */
function within({ typed, depth }: Place, name: string | null): Place {
  return { typed: typed && inside(typed, name), depth: depth + 1 };
}

const WORDS: Readonly<Record<string, string>> = {
  True: 'true',
  true: 'true',
  False: 'false',
  false: 'false',
  None: 'null',
  null: 'null',
};
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
  '/': '/', // an escape of JSON
  '0': '\0',
  '\n': '',
};
const HEX_LENGTH: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const MAX_DEPTH = 64;
const WORD_END = /[\s,:\]})]/;

/** Returns a text escaped as the content of a JSON string. */
export function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Reads one value. The schema decides whether digits without quotes are a number. */
export function* readLiteral(
  reader: TextReader,
  dialect: Dialect,
  onText: OnText,
  place: Place = NOWHERE,
): Reading {
  if (place.depth > MAX_DEPTH) throw NOT_A_CALL;
  const first = yield* reader.peek();
  if (first === '{') {
    reader.consume(1);
    return yield* readLiteralObject(reader, dialect, onText, place);
  }
  if (first === '[' || (first === '(' && dialect === PYTHON))
    return yield* readList(reader, dialect, onText, place);
  for (const quote of dialect.quotes) {
    if (yield* reader.takes(quote)) return yield* readString(reader, dialect, quote, onText);
  }
  const word = yield* readWord(reader, dialect, place.depth > 0);
  onText(wordToJson(word, dialect, place.typed && typesOf(place.typed)));
}

/** Reads an object whose opening brace is consumed. */
export function* readLiteralObject(
  reader: TextReader,
  dialect: Dialect,
  onText: OnText,
  place: Place = NOWHERE,
): Reading {
  onText('{');
  let separator = '';
  for (;;) {
    yield* reader.space();
    if (yield* reader.takes('}')) return onText('}');
    onText(separator);
    separator = ', ';
    const key = yield* readKey(reader, dialect, onText);
    onText(': ');
    yield* reader.space();
    yield* readLiteral(reader, dialect, onText, within(place, key));
    yield* expectSeparator(reader, '}');
  }
}

function* readList(reader: TextReader, dialect: Dialect, onText: OnText, place: Place): Reading {
  const end = (yield* reader.takes('(')) ? ')' : ']';
  if (end === ']') reader.consume(1);
  onText('[');
  let separator = '';
  for (;;) {
    yield* reader.space();
    if (yield* reader.takes(end)) return onText(']');
    onText(separator);
    separator = ', ';
    yield* readLiteral(reader, dialect, onText, within(place, null));
    yield* expectSeparator(reader, end);
  }
}

/** Consumes a comma after an item. If there is none, the container must end. */
function* expectSeparator(reader: TextReader, end: string): Reading {
  yield* reader.space();
  if (!(yield* reader.takes(',')) && (yield* reader.peek()) !== end) throw NOT_A_CALL;
}

function* readKey(reader: TextReader, dialect: Dialect, onText: OnText): Reading<string> {
  let key = '';
  for (const quote of dialect.quotes) {
    if (key !== '' || !(yield* reader.takes(quote))) continue;
    yield* readString(reader, dialect, quote, (piece) => {
      key += piece;
      onText(piece);
    });
  }
  if (key === '') {
    const word = yield* readWord(reader, dialect, true);
    if (!dialect.hasBareStrings && Number.isNaN(Number(word))) throw NOT_A_CALL;
    key = JSON.stringify(word);
    onText(key);
  }
  yield* reader.space();
  if (!(yield* reader.takes(':'))) throw NOT_A_CALL;
  return JSON.parse(key) as string;
}

/** Reads a string whose opening quote is consumed. */
function* readString(reader: TextReader, dialect: Dialect, quote: string, onText: OnText): Reading {
  onText('"');
  for (;;) {
    const take = (text: string): void => onText(escapeJson(text));
    const ends = dialect.hasEscapes || quote === '"' ? [quote, '\\'] : [quote];
    const end = yield* reader.until(ends, take, Number.POSITIVE_INFINITY, 'dropped');
    if (end === null) throw NOT_A_CALL;
    if (end === quote) return onText('"');
    onText(escapeJson(yield* readEscape(reader)));
  }
}

/** Reads the text after a backslash. An unknown escape keeps its backslash, as in Python. */
function* readEscape(reader: TextReader): Reading<string> {
  const char = yield* reader.peek();
  if (char === '') throw NOT_A_CALL;
  reader.consume(1);
  const length = HEX_LENGTH[char];
  if (length === undefined) return ESCAPES[char] ?? (/['"\\]/.test(char) ? char : `\\${char}`);
  let digits = '';
  while (digits.length < length) {
    const digit = yield* reader.peek();
    if (!/^[\da-fA-F]$/.test(digit)) throw NOT_A_CALL;
    digits += digit;
    reader.consume(1);
  }
  const code = Number.parseInt(digits, 16);
  if (code > 0x10ffff) throw NOT_A_CALL;
  return String.fromCodePoint(code);
}

/** Reads up to the character that ends a number or a word. Inside a container, the end of the text cuts it. */
function* readWord(reader: TextReader, dialect: Dialect, isInside: boolean): Reading<string> {
  let word = '';
  for (;;) {
    const next = yield* reader.peek();
    if (next === '' && isInside) throw NOT_A_CALL;
    if (next === '' || (dialect.hasBareStrings ? /[,:\]}]/ : WORD_END).test(next)) break;
    word += next;
    reader.consume(1);
  }
  if (word.trim() === '') throw NOT_A_CALL;
  return word.trim();
}

function wordToJson(word: string, dialect: Dialect, types: ParameterTypes): string {
  const known = WORDS[word];
  if (known !== undefined) return known;
  if (isNumberText(word)) return numberToJson(word, types, isJsonNumber) ?? JSON.stringify(word);
  if (dialect.hasBareStrings) return JSON.stringify(word);
  throw NOT_A_CALL;
}
