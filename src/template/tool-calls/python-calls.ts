/** `name(key=value, ...)` -> calls, of the families with calls in Python. */
import type { Reading, TextReader } from '../text-reader.ts';
import { type CallContext, expect, type Family, NOT_A_CALL, takeEnd } from './context.ts';
import { readJsonItems } from './json-calls.ts';
import { PYTHON, readLiteral } from './literal.ts';
import { inside, type Typed } from './schema-types.ts';

const NAME_CHARACTER = /[\w.-]/;
const MAX_NAME_LENGTH = 256;

/** Returns the family of a list `[f(...), g(...)]` between two markers, or calls in JSON. */
export function pythonListCalls(begin: string, end: string): Family {
  return {
    markers: [begin],
    literals: [begin, end],
    *read(context) {
      const { reader } = context;
      yield* reader.space();
      const isList = yield* reader.takes('[');
      if (isList) yield* reader.space();
      if ((yield* reader.peek()) === '{') yield* readJsonItems(context, { begins: [] }, isList);
      else if (isList) yield* readCallItems(context, () => true);
      else throw NOT_A_CALL;
      yield* takeEnd(reader, [end]);
    },
  };
}

/** Returns the family of calls between two markers, one per line. */
export function pythonLineCalls(begin: string, end: string): Family {
  return {
    markers: [begin],
    literals: [begin, end],
    read: (context) => readCallLines(context, end),
  };
}

/** Returns the family of a list `[f(...), g(...)]` without markers, at the beginning of a line, whose first name is that of a tool. */
export function barePythonCalls(): Family {
  return {
    markers: ['['],
    literals: [],
    *read(context, marker) {
      if (!context.sink.isLineBlank) throw NOT_A_CALL;
      context.reader.giveBack(marker);
      yield* readCallList(context, (name) => context.tools.has(name));
    },
  };
}

/** Returns the family of a fenced block with one call per line. */
export function fencedPythonCalls(begin: string, end: string): Family {
  return {
    markers: [begin],
    literals: [begin, end],
    read: (context) => readCallLines(context, end),
  };
}

/** Reads calls, one per line, each optionally inside `print(...)`. */
function* readCallLines(context: CallContext, end: string): Reading {
  const { reader } = context;
  do {
    yield* reader.space();
    const isPrinted = yield* reader.takes('print(');
    yield* readPythonCall(context, () => true);
    if (isPrinted) yield* takeEnd(reader, [')']);
    yield* takeEnd(reader, [';']);
  } while (yield* startsName(reader));
  yield* takeEnd(reader, [end]);
}

/** Reads one call. Positional values are named by the tool's parameters, in order. */
export function* readPythonCall(context: CallContext, isKnown: (name: string) => boolean): Reading {
  const { reader, sink } = context;
  const name = toolName(yield* readIdentifier(reader), context.tools);
  yield* expect(reader, '(');
  if (!isKnown(name)) throw NOT_A_CALL;
  sink.start(name);
  const root = context.tools.get(name);
  const keys = parameterNames(root);
  let position = 0;
  for (let separator = '{'; ; separator = ', ') {
    yield* reader.space();
    if (yield* reader.takes(')')) {
      if (separator !== '{') sink.arguments('}');
      return sink.end();
    }
    sink.arguments(separator);
    yield* readArgument(context, keys[position++], { schema: root, root });
    yield* reader.space();
    if (!(yield* reader.takes(',')) && (yield* reader.peek()) !== ')') throw NOT_A_CALL;
  }
}

function* readCallList(context: CallContext, isKnown: (name: string) => boolean): Reading {
  const { reader } = context;
  yield* expect(reader, '[');
  yield* reader.space();
  yield* readCallItems(context, isKnown);
}

/** Reads calls after the opening bracket of a list, and the end of the list. */
function* readCallItems(context: CallContext, isKnown: (name: string) => boolean): Reading {
  const { reader } = context;
  yield* readPythonCall(context, isKnown);
  while (yield* takeEnd(reader, [','])) {
    yield* reader.space();
    yield* readPythonCall(context, () => true);
  }
  yield* takeEnd(reader, [']']);
}

function* readArgument(
  { reader, sink }: CallContext,
  positionalKey: string | undefined,
  parameters: Typed,
): Reading {
  const emit = (text: string): void => sink.arguments(text);
  const word = (yield* startsWord(reader)) ? yield* readIdentifier(reader) : '';
  const space = word === '' ? '' : yield* reader.space();
  const isNamed = word !== '' && (yield* reader.takes('='));
  const key = isNamed ? word : positionalKey;
  if (key === undefined) throw NOT_A_CALL;
  emit(`${JSON.stringify(key)}: `);
  if (isNamed) yield* reader.space();
  else reader.giveBack(word + space);
  yield* readLiteral(reader, PYTHON, emit, { typed: inside(parameters, key), depth: 0 });
}

/** Returns true if another call follows. */
function* startsName(reader: TextReader): Reading<boolean> {
  reader.record();
  yield* reader.space();
  return yield* startsWord(reader);
}

function* startsWord(reader: TextReader): Reading<boolean> {
  return /[A-Za-z_]/.test(yield* reader.peek());
}

function* readIdentifier(reader: TextReader): Reading<string> {
  let name = '';
  for (;;) {
    const next = yield* reader.peek();
    if (next === '' || !NAME_CHARACTER.test(next)) break;
    name += next;
    if (name.length > MAX_NAME_LENGTH) throw NOT_A_CALL;
    reader.consume(1);
  }
  if (!/^[A-Za-z_]/.test(name)) throw NOT_A_CALL;
  return name;
}

/** Returns the tool's name in `module.tool` and `tool.call`, or the whole name if a tool has it. */
function toolName(written: string, tools: CallContext['tools']): string {
  if (tools.has(written)) return written;
  const parts = written.replace(/\.call$/, '').split('.');
  return parts.length > 1 && tools.has(parts.at(-1)!) ? parts.at(-1)! : parts.join('.');
}

function parameterNames(parameters: unknown): string[] {
  const properties = (parameters as { properties?: unknown } | null | undefined)?.properties;
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
}
