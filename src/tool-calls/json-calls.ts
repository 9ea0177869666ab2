/** `{"name": ..., "arguments": {...}}`, alone, in a row or in a list -> calls. */
import type { Reading, TextReader } from '../common/index.ts';
import {
  type CallContext,
  expect,
  type Family,
  NOT_A_CALL,
  readArguments,
  readJson,
  readJsonText,
  takeEnd,
} from './context.ts';

/** The syntax of a family with calls as JSON. */
export type JsonCalls = {
  /** Markers before the JSON. */
  readonly begins: readonly string[];
  /** Markers that may follow it. */
  readonly ends?: readonly string[];
  /** Text that may stand between `begins` and the JSON. */
  readonly fence?: string;
  readonly nameKey?: string;
  /** Whether a call is `{"NAME": {...}}`. */
  readonly isKeyed?: boolean;
  /** Whether only names of given tools are calls. */
  readonly isGated?: boolean;
};

/** Keys that may precede the name in a call without a marker. */
const HARMLESS_KEYS = ['type', 'id'];

/** Calls after a marker. */
export function jsonCalls(calls: JsonCalls): Family {
  return {
    markers: calls.begins,
    literals: [...calls.begins, ...(calls.ends ?? [])],
    *read(context) {
      yield* context.reader.space();
      if (calls.fence !== undefined && (yield* context.reader.takes(calls.fence)))
        yield* context.reader.space();
      yield* readJsonCalls(context, calls);
    },
  };
}

/** Calls without a marker: JSON at the beginning of a line with the name of a given tool. */
export function bareJsonCalls(calls: Omit<JsonCalls, 'begins'>): Family {
  return {
    markers: ['{', '['],
    literals: [],
    *read(context, marker) {
      if (!context.sink.isLineBlank) throw NOT_A_CALL;
      context.reader.giveBack(marker);
      yield* readJsonCalls(context, { ...calls, begins: [], isGated: true });
    },
  };
}

/** Reads one call, several in a row, or a list of them. */
export function* readJsonCalls(context: CallContext, calls: JsonCalls): Reading {
  const { reader } = context;
  const isList = yield* reader.takes('[');
  if (isList) yield* reader.space();
  do yield* readCall(context, calls);
  while (yield* takesSeparator(reader, isList));
  if (isList) yield* expect(reader, ']');
  yield* takeEnd(reader, calls.ends ?? []);
}

/** Whether another call follows. Consumes the text between the two. */
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
    if (calls.isKeyed || key === 'arguments' || key === 'parameters') {
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
    reader.record(); // the call is complete: later text cannot change it
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
