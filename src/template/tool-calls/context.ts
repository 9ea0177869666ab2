/** Text of a call -> its parts, with functions that the parsers of all families share. */
import type { Reading, TextReader } from '../text-reader.ts';
import { type CallSink, NOT_A_CALL } from './call-sink.ts';
import { JsonSpan } from './json-span.ts';

/** A tool of the request. */
export type ToolDefinition = {
  readonly function: { readonly name: string; readonly parameters?: unknown };
  /** If present, the only argument is a text that matches this grammar. */
  readonly text?: TextArgument;
};

/** A grammar for the only argument of a tool. */
export type TextArgument = {
  readonly argument: string;
  readonly syntax: 'lark' | 'regex';
  readonly definition: string;
};

/** Input and output of a parser. */
export type CallContext = {
  readonly reader: TextReader;
  readonly sink: CallSink;
  /** The parameter schema of each tool. */
  readonly tools: ReadonlyMap<string, unknown>;
};

/** The parser of one family. */
export type Family = {
  /** Texts that may begin a call or a list of calls. */
  readonly markers: readonly string[];
  /** All markers of the format. Special tokens with such a text must not be dropped. */
  readonly literals: readonly string[];
  /** Parses the calls after `marker`, which is consumed. Throws `NOT_A_CALL` if there is none. */
  readonly read: (context: CallContext, marker: string) => Reading;
  /** Parses a call at the start of the text, without a marker. */
  readonly readStart?: (context: CallContext) => Reading;
};

export { NOT_A_CALL };

/** Returns a family whose calls may have any of these forms. */
export function eitherOf(...families: readonly Family[]): Family {
  return {
    markers: families.flatMap(({ markers }) => markers),
    literals: families.flatMap(({ literals }) => literals),
    read: (context, marker) =>
      families.find(({ markers }) => markers.includes(marker))!.read(context, marker),
  };
}

const MAX_NAME_LENGTH = 256;

/** Consumes `literal`, which must come next, or its beginning if the text ends inside it. */
export function* expect(reader: TextReader, literal: string): Reading {
  if (yield* reader.takes(literal)) return;
  takeCut(reader, literal);
  throw NOT_A_CALL;
}

/** If the text has ended inside `literal`, consumes that beginning. */
export function takeCut(reader: TextReader, literal: string): void {
  const rest = reader.available();
  if (reader.hasEnded && literal.startsWith(rest)) reader.consume(rest.length);
}

/**
 * Reads a name or another short text on one line, up to one of `ends`, without the white space around it. `isKey`: it may have white space
 * inside. Text that is not a name is not consumed, so that it differs from an incomplete name.
 */
export function* readName(
  reader: TextReader,
  ends: readonly string[],
  isKey = false,
): Reading<{ name: string; end: string }> {
  yield* reader.space();
  let name = '';
  let end = yield* reader.until(
    [...ends, '\n'],
    (text) => {
      name += text;
    },
    MAX_NAME_LENGTH,
  );
  const isOpen = end === null;
  if (end === '\n' && !ends.includes('\n')) {
    yield* reader.space();
    end = yield* takesOneOf(reader, ends);
  }
  const isName = isKey || !/\S\s+\S/.test(name);
  if (isOpen && !isName) reader.giveBack(name);
  name = name.trim();
  if (end === null || name === '' || !isName) throw NOT_A_CALL;
  return { name, end };
}

/** Reads one JSON value and passes on each piece as it arrives. */
export function* readJson(reader: TextReader, onText: (text: string) => void): Reading {
  const span = new JsonSpan();
  for (;;) {
    if ((yield* reader.peek()) === '') throw NOT_A_CALL;
    reader.consume(span.scan(reader.available()));
    onText(span.output);
    if (span.isBroken) throw NOT_A_CALL;
    if (span.isComplete) return;
  }
}

/** Reads a whole JSON value. */
export function* readJsonText(reader: TextReader): Reading<string> {
  let text = '';
  yield* readJson(reader, (piece) => {
    text += piece;
  });
  return text;
}

/** Reads the arguments: an object, an object in a string, or null for none. */
export function* readArguments(reader: TextReader, onText: (text: string) => void): Reading {
  const first = yield* reader.peek();
  if (first === '{') return yield* readJson(reader, onText);
  if (first !== '"' && first !== 'n') throw NOT_A_CALL;
  const value: unknown = JSON.parse(yield* readJsonText(reader));
  if (value !== null) onText(requireObjectText(String(value)));
}

/** Reads the arguments of the open call and ends it. */
export function* readArgumentsToEnd({ reader, sink }: CallContext): Reading {
  yield* reader.space();
  yield* readArguments(reader, (text) => sink.arguments(text));
  sink.end();
}

/** After a complete call: consumes white space and one of `ends`, or nothing at all. The text may end inside an end. */
export function* takeEnd(reader: TextReader, ends: readonly string[]): Reading<boolean> {
  if (ends.length === 0) return false;
  reader.record();
  yield* reader.space();
  if ((yield* takesOneOf(reader, ends)) !== null) return true;
  const rest = reader.available();
  const isCut = reader.hasEnded && rest !== '' && ends.some((end) => end.startsWith(rest));
  if (isCut) reader.consume(rest.length);
  else reader.rewind();
  return false;
}

function* takesOneOf(reader: TextReader, literals: readonly string[]): Reading<string | null> {
  for (const literal of literals) if (yield* reader.takes(literal)) return literal;
  return null;
}

function requireObjectText(text: string): string {
  const trimmed = text.trim();
  const span = new JsonSpan();
  const used = span.scan(trimmed);
  if (!trimmed.startsWith('{') || !span.isComplete || used < trimmed.length) throw NOT_A_CALL;
  return span.output;
}
