/** `{"name": ..., "arguments": {...}}`, alone, in a row or in a list -> calls. */
import type { Reading, TextReader } from '../text-reader.ts';
import {
  type CallContext,
  expect,
  type Family,
  NOT_A_CALL,
  readArguments,
  readJson,
  readJsonText,
  takeCut,
  takeEnd,
} from './context.ts';

/** The syntax of a family with calls as JSON. */
export type JsonCalls = {
  /** Markers before the JSON. */
  readonly begins: readonly string[];
  /** Markers that may follow the JSON. */
  readonly ends?: readonly string[];
  /** A marker that may stand between `begins` and the JSON. */
  readonly prefix?: string;
  readonly nameKey?: string;
  /** A further key of the arguments, besides `arguments` and `parameters`. */
  readonly argumentsKey?: string;
  /** True if a call is `{"NAME": {...}}`. */
  readonly isKeyed?: boolean;
  /** True if only names of given tools are calls. */
  readonly isGated?: boolean;
};

const FENCE = '```';
/** Keys that may precede the name in a call without a marker. */
const HARMLESS_KEYS = ['type', 'id'];

/** Returns the family of calls after a marker. */
export function jsonCalls(calls: JsonCalls): Family {
  return {
    markers: calls.begins,
    literals: [...calls.begins, ...(calls.prefix ? [calls.prefix] : []), ...(calls.ends ?? [])],
    *read(context) {
      const { reader } = context;
      yield* reader.space();
      if (calls.prefix !== undefined) {
        if (yield* reader.takes(calls.prefix)) yield* reader.space();
        else takeCut(reader, calls.prefix);
      }
      yield* readFencedCalls(context, calls);
    },
  };
}

/** Returns the family of calls without a marker: JSON at the beginning of a line with the name of a given tool. */
export function bareJsonCalls(calls: Omit<JsonCalls, 'begins'>): Family {
  return {
    markers: ['{', '[', FENCE],
    literals: [],
    *read(context, marker) {
      if (!context.sink.isLineBlank) throw NOT_A_CALL;
      context.reader.giveBack(marker);
      yield* readFencedCalls(context, { ...calls, begins: [], isGated: true });
    },
  };
}

/** Reads calls that may be in a fenced block. The fence is not content. */
function* readFencedCalls(context: CallContext, calls: JsonCalls): Reading {
  const { reader } = context;
  if (!(yield* reader.takes(FENCE))) return yield* readJsonCalls(context, calls);
  while (/\w/.test(yield* reader.peek())) reader.consume(1); // the language
  yield* reader.space();
  yield* readJsonCalls(context, { ...calls, ends: [] });
  yield* takeEnd(reader, [FENCE]);
  yield* takeEnd(reader, calls.ends ?? []);
}

/** Reads one call, several in a row, or a list of them. */
export function* readJsonCalls(context: CallContext, calls: JsonCalls): Reading {
  const isList = yield* context.reader.takes('[');
  yield* readJsonItems(context, calls, isList);
}

/** Reads calls after the opening bracket of a list, or without a list. */
export function* readJsonItems(context: CallContext, calls: JsonCalls, isList: boolean): Reading {
  const { reader } = context;
  if (isList) yield* reader.space();
  do yield* readCall(context, calls);
  while (yield* takesSeparator(reader, isList));
  if (isList) yield* expect(reader, ']');
  yield* takeEnd(reader, calls.ends ?? []);
}

/** Returns true if another call follows, and consumes the text before it. */
function* takesSeparator(reader: TextReader, isList: boolean): Reading<boolean> {
  reader.record();
  yield* reader.space();
  if (isList) {
    if (!(yield* reader.takes(','))) return false;
    yield* reader.space();
    return true;
  }
  if (!(yield* reader.takes(','))) yield* reader.takes(';');
  yield* reader.space();
  if ((yield* reader.peek()) === '{') return true;
  reader.rewind();
  return false;
}

/** Reads one object. The call ends with its arguments; later keys and a missing brace are ignored. */
function* readCall(context: CallContext, calls: JsonCalls): Reading {
  const { reader, sink } = context;
  yield* expect(reader, '{');
  let name: string | null = null;
  let early: string | null = null; // arguments that came before the name
  do {
    yield* reader.space();
    const key = yield* readKey(reader);
    if (calls.isKeyed) name = checkName(context, calls, key);
    const areArguments = key === 'arguments' || key === 'parameters' || key === calls.argumentsKey;
    if (calls.isKeyed || areArguments) {
      if (name !== null) {
        if (!sink.isOpen) sink.start(name);
        yield* readArguments(reader, (text) => sink.arguments(text));
        return yield* endCall(context);
      }
      early = '';
      yield* readArguments(reader, (piece) => {
        early += piece;
      });
    } else if (key === (calls.nameKey ?? 'name')) {
      name = checkName(context, calls, JSON.parse(yield* readJsonText(reader)));
      // without a marker, `{"name": ...}` may be plain text
      if (early !== null || !calls.isGated) sink.start(name);
      if (early !== null) {
        sink.arguments(early);
        return yield* endCall(context);
      }
    } else if (calls.isGated && name === null && !HARMLESS_KEYS.includes(key)) throw NOT_A_CALL;
    else yield* readJson(reader, () => {});
    yield* reader.space();
  } while (yield* reader.takes(','));
  yield* expect(reader, '}');
  if (!sink.isOpen) throw NOT_A_CALL;
  sink.end(); // a call without arguments
}

function* readKey(reader: TextReader): Reading<string> {
  if ((yield* reader.peek()) !== '"') throw NOT_A_CALL;
  const key: string = JSON.parse(yield* readJsonText(reader));
  yield* reader.space();
  yield* expect(reader, ':');
  yield* reader.space();
  return key;
}

/** Ends the call, and consumes the rest of its object as far as it is valid. */
function* endCall({ reader, sink }: CallContext): Reading {
  sink.end();
  for (;;) {
    reader.record(); // the call is complete, so later text cannot change it
    yield* reader.space();
    if (yield* reader.takes('}')) return;
    if (!(yield* reader.takes(','))) return reader.rewind();
    yield* reader.space();
    yield* readKey(reader);
    yield* readJson(reader, () => {});
  }
}

function checkName({ sink, tools }: CallContext, calls: JsonCalls, name: unknown): string {
  if (typeof name !== 'string' || name === '' || sink.isOpen) throw NOT_A_CALL;
  if (calls.isGated && !tools.has(name)) throw NOT_A_CALL;
  return name;
}
