/** The bytes of a large JSON text -> its value, parsed in pieces, so that other requests are answered in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { OnpolicyError } from '../../../errors.ts';

/** Bytes that are parsed in one turn of the event loop. A single longer text or number still is one piece. */
export const PIECE_BYTES = 256 * 1024;

/** Deepest nesting of a large text. Every field of a request takes at most 256 levels. */
const MOST_LEVELS = 1000;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Estimated bytes that parsed values take in memory, in addition to their texts. */
const CONTAINER_COST = 56;
const MEMBER_COST = 32;
const ITEM_COST = 8;

/** Estimates the memory of the values in a JSON text before they are parsed, from the parts of the text in their order. */
export class JsonCost {
  /** Estimated bytes so far. */
  bytes = 0;
  #isInText = false;
  #isEscaped = false;

  add(part: Uint8Array): void {
    for (let i = 0; i < part.length; i++) {
      if (this.#isInText) {
        i = this.#endOfText(part, i);
        continue;
      }
      const byte = part[i]!;
      if (byte === QUOTE) this.#isInText = true;
      else if (byte === COMMA) this.bytes += ITEM_COST;
      else if (byte === COLON) this.bytes += MEMBER_COST;
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.bytes += CONTAINER_COST;
    }
  }

  /** Returns the index of the quote that ends a text, or that of the last byte if the text goes on in the next part. */
  #endOfText(part: Uint8Array, from: number): number {
    let start = from;
    if (this.#isEscaped) start += 1;
    this.#isEscaped = false;
    const end = endOfText(part, start);
    if (end < part.length) this.#isInText = false;
    else this.#isEscaped = end > part.length; // its backslash is the last byte of this part
    return end;
  }
}

/** Returns the index of the quote that ends a text; the length if there is none, and one more if a backslash ends the bytes. */
function endOfText(bytes: Uint8Array, from: number): number {
  let start = from;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, start);
    const end = quote < 0 ? bytes.length : quote;
    let backslashes = 0;
    while (end - backslashes > start && bytes[end - backslashes - 1] === BACKSLASH) backslashes += 1;
    const isEscaped = backslashes % 2 === 1;
    if (quote < 0) return isEscaped ? end + 1 : end;
    if (!isEscaped) return quote;
    start = quote + 1;
  }
}

type Container = unknown[] | Record<string, unknown>;

/** A list or an object that is parsed in part. */
type Level = {
  readonly isList: boolean;
  /** Index of its bracket. */
  readonly start: number;
  /** Index of the first byte that is not parsed. */
  from: number;
  /** The items or members that are parsed. Null before the first one. */
  value: Container | null;
  /** True after a container that was parsed in pieces. A comma or the end of this level must follow. */
  isAfterValue: boolean;
  /** Indices of the quotes of the last text in this level. If a container follows, this text is its key. */
  lastText: readonly [start: number, end: number];
};

/**
 * Parses the bytes of a JSON text at once.
 * @throws OnpolicyError `INVALID_REQUEST` if it is not UTF-8 or not JSON
 */
export function parseAtOnce(bytes: Uint8Array): unknown {
  const text = withoutMark(bytes);
  return parse(text, 0, text.length);
}

/**
 * Parses the bytes of a JSON text. The bytes must not change until the end.
 * @throws OnpolicyError `INVALID_REQUEST` if it is not UTF-8, not JSON or nested too deeply
 */
export async function parseInPieces(given: Uint8Array, pieceBytes = PIECE_BYTES): Promise<unknown> {
  const bytes = withoutMark(given);
  const levels: Level[] = [];
  let parsedTo = 0; // no level has parsed anything behind this index
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    const level = levels.at(-1);
    if (byte === QUOTE) {
      const start = i;
      i = endOfText(bytes, start + 1);
      if (level) level.lastText = [start, i];
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (levels.length === MOST_LEVELS) throw invalid(`it has more than ${MOST_LEVELS} levels`);
      const isList = byte === OPEN_LIST;
      const none = { value: null, isAfterValue: false, lastText: [i, i] as const };
      levels.push({ isList, start: i, from: i + 1, ...none });
    } else if (byte === COMMA && level && (level.isAfterValue || i - parsedTo > pieceBytes)) {
      parseRun(bytes, level, i);
      level.from = i + 1;
      parsedTo = i;
      await nextTurn();
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      if (level?.isList !== (byte === CLOSE_LIST)) throw invalid(`a bracket at byte ${i} has no partner`);
      const isOutermost = levels.length === 1;
      if (level.value === null && !isOutermost) {
        levels.pop(); // its text is parsed together with the text around it
        continue;
      }
      if (level.value === null) return parse(bytes, 0, bytes.length);
      parseRun(bytes, level, i);
      await nextTurn();
      levels.pop();
      if (isOutermost) {
        const isAlone = isBlank(bytes, 0, level.start) && isBlank(bytes, i + 1, bytes.length);
        if (!isAlone) throw invalid(`it is not alone: it ends at byte ${i}`);
        return level.value;
      }
      adopt(bytes, levels.at(-1)!, level, i + 1);
      parsedTo = i;
    }
  }
  return parse(bytes, 0, bytes.length); // a single text or number, or a container without an end
}

/** Parses the items or members of a level up to a comma or the end of the level. Throws if the comma before them is missing. */
function parseRun(bytes: Uint8Array, level: Level, end: number): void {
  if (level.isAfterValue) {
    if (!isBlank(bytes, level.from, end)) throw invalid(`a comma is missing before byte ${end}`);
    level.isAfterValue = false;
    return;
  }
  const { isList, from } = level;
  const run = parse(
    bytes,
    from,
    end,
    ...(isList ? (['[', ']'] as const) : (['{', '}'] as const)),
  ) as Container;
  if ((Array.isArray(run) ? run : Object.keys(run)).length === 0)
    throw invalid(`a value is missing before byte ${end}`);
  extend(level, run);
}

/** Adds a container that was parsed in pieces to the level around it, after the values that precede it there. */
function adopt(bytes: Uint8Array, around: Level, { start, value }: Level, end: number): void {
  if (around.isAfterValue) throw invalid(`a comma is missing before byte ${start}`);
  const brackets = around.isList ? (['[', ' null]'] as const) : (['{', ' null}'] as const);
  const before = parse(bytes, around.from, start, ...brackets) as Container;
  if (Array.isArray(before)) before[before.length - 1] = value;
  else {
    const [from, to] = around.lastText;
    define(before, parse(bytes, from, to + 1) as string, value);
  }
  extend(around, before);
  around.from = end;
  around.isAfterValue = true;
}

function extend(level: Level, run: Container): void {
  if (level.value === null) level.value = run;
  else if (Array.isArray(run)) for (const item of run) (level.value as unknown[]).push(item);
  else for (const key of Object.keys(run)) define(level.value as Record<string, unknown>, key, run[key]);
}

/** Sets a member as `JSON.parse` does: `__proto__` is a name like any other. */
function define(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Parses a part of the bytes between two brackets. */
function parse(bytes: Uint8Array, from: number, to: number, open = '', close = ''): unknown {
  const text = open + decode(bytes.subarray(from, to)) + close;
  try {
    return JSON.parse(text);
  } catch (error) {
    const place = from === 0 ? '' : ` (positions count from byte ${from - open.length})`;
    throw invalid(`${(error as Error).message.slice(0, 200)}${place}`);
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new OnpolicyError('INVALID_REQUEST', 'the body is not UTF-8 text');
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns the bytes without a byte order mark. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

function isBlank(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (![0x20, 0x09, 0x0a, 0x0d].includes(bytes[i]!)) return false;
  return true;
}

function invalid(what: string): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', `the body is not JSON: ${what}`);
}
