/** A literal of Python or Gemma -> JSON text, piece by piece. */
import type { Reading, TextReader } from '../common/index.ts';
import { NOT_A_CALL } from './context.ts';

/** The syntax of values. */
export type Dialect = {
  /** Quotes of strings. */
  readonly quotes: readonly string[];
  /** Whether strings have backslash escapes; those in double quotes do. */
  readonly hasEscapes: boolean;
  /** Whether keys and unknown words are strings without quotes. */
  readonly hasBareStrings: boolean;
};

export const PYTHON: Dialect = { quotes: ["'''", '"""', "'", '"'], hasEscapes: true, hasBareStrings: false };

type OnText = (text: string) => void;

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
  '/': '/', // of JSON
  '0': '\0',
  '\n': '',
};
const HEX_LENGTH: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const MAX_DEPTH = 64;
const WORD_END = /[\s,:\]})]/;

/** The content of a JSON string, escaped. */
export function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Reads one value. */
export function* readLiteral(reader: TextReader, dialect: Dialect, onText: OnText, depth = 0): Reading {
  if (depth > MAX_DEPTH) throw NOT_A_CALL;
  const first = yield* reader.peek();
  if (first === '{') {
    reader.consume(1);
    return yield* readLiteralObject(reader, dialect, onText, depth);
  }
  if (first === '[' || (first === '(' && dialect === PYTHON))
    return yield* readList(reader, dialect, onText, depth);
  for (const quote of dialect.quotes) {
    if (yield* reader.takes(quote)) return yield* readString(reader, dialect, quote, onText);
  }
  onText(wordToJson(yield* readWord(reader, dialect, depth > 0), dialect));
}

/** Reads an object whose opening brace is consumed. */
export function* readLiteralObject(reader: TextReader, dialect: Dialect, onText: OnText, depth = 0): Reading {
  onText('{');
  let separator = '';
  for (;;) {
    yield* reader.space();
    if (yield* reader.takes('}')) return onText('}');
    onText(separator);
    separator = ', ';
    yield* readKey(reader, dialect, onText);
    onText(': ');
    yield* reader.space();
    yield* readLiteral(reader, dialect, onText, depth + 1);
    yield* expectSeparator(reader, '}');
  }
}

function* readList(reader: TextReader, dialect: Dialect, onText: OnText, depth: number): Reading {
  const end = (yield* reader.takes('(')) ? ')' : ']';
  if (end === ']') reader.consume(1);
  onText('[');
  let separator = '';
  for (;;) {
    yield* reader.space();
    if (yield* reader.takes(end)) return onText(']');
    onText(separator);
    separator = ', ';
    yield* readLiteral(reader, dialect, onText, depth + 1);
    yield* expectSeparator(reader, end);
  }
}

/** After an item: consumes a comma. Without one the container must end. */
function* expectSeparator(reader: TextReader, end: string): Reading {
  yield* reader.space();
  if (!(yield* reader.takes(',')) && (yield* reader.peek()) !== end) throw NOT_A_CALL;
}

function* readKey(reader: TextReader, dialect: Dialect, onText: OnText): Reading {
  let isQuoted = false;
  for (const quote of dialect.quotes) {
    if (isQuoted || !(yield* reader.takes(quote))) continue;
    isQuoted = true;
    yield* readString(reader, dialect, quote, onText);
  }
  if (!isQuoted) {
    const key = yield* readWord(reader, dialect, true);
    if (!dialect.hasBareStrings && Number.isNaN(Number(key))) throw NOT_A_CALL;
    onText(JSON.stringify(key));
  }
  yield* reader.space();
  if (!(yield* reader.takes(':'))) throw NOT_A_CALL;
}

/** Reads a string whose opening quote is consumed. */
function* readString(reader: TextReader, dialect: Dialect, quote: string, onText: OnText): Reading {
  onText('"');
  for (;;) {
    const take = (text: string): void => onText(escapeJson(text));
    const ends = dialect.hasEscapes || quote === '"' ? [quote, '\\'] : [quote];
    const end = yield* reader.until(ends, take, Number.POSITIVE_INFINITY, true);
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

function wordToJson(word: string, dialect: Dialect): string {
  const known = WORDS[word];
  if (known !== undefined) return known;
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(word)) return word;
  if (/^[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?$/.test(word)) {
    const value = Number(word.replaceAll('_', ''));
    if (Number.isFinite(value)) return JSON.stringify(value);
  }
  if (dialect.hasBareStrings) return JSON.stringify(word);
  throw NOT_A_CALL;
}
