/** `name(key=value, ...)` -> calls, of the families with calls in Python. */
import type { Reading, TextReader } from '../common/index.ts';
import { type CallContext, expect, type Family, NOT_A_CALL, takeEnd } from './context.ts';
import { PYTHON, readLiteral } from './literal.ts';

const NAME_CHARACTER = /[\w.-]/;
const MAX_NAME_LENGTH = 256;

/** A list `[f(...), g(...)]` between two markers. */
export function pythonListCalls(begin: string, end: string): Family {
  return {
    markers: [begin],
    literals: [begin, end],
    *read(context) {
      yield* context.reader.space();
      yield* readCallList(context, () => true);
      yield* takeEnd(context.reader, [end]);
    },
  };
}

/** A list `[f(...), g(...)]` without markers: at the beginning of a line, and the first name is a given tool's. */
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

/** A fenced block with one call per line, optionally inside `print(...)`. */
export function fencedPythonCalls(begin: string, end: string): Family {
  return {
    markers: [begin],
    literals: [begin, end],
    *read(context) {
      const { reader } = context;
      do {
        yield* reader.space();
        const isPrinted = yield* reader.takes('print(');
        yield* readPythonCall(context, () => true);
        if (isPrinted) yield* takeEnd(reader, [')']);
        yield* takeEnd(reader, [';']);
      } while (yield* startsName(reader));
      yield* takeEnd(reader, [end]);
    },
  };
}

/** Reads one call. Positional values are named by the tool's parameters, in order. */
export function* readPythonCall(context: CallContext, isKnown: (name: string) => boolean): Reading {
  const { reader, sink } = context;
  const name = toolName(yield* readIdentifier(reader), context.tools);
  yield* expect(reader, '(');
  if (!isKnown(name)) throw NOT_A_CALL;
  sink.start(name);
  const keys = parameterNames(context.tools.get(name));
  let position = 0;
  for (let separator = '{'; ; separator = ', ') {
    yield* reader.space();
    if (yield* reader.takes(')')) {
      if (separator !== '{') sink.arguments('}');
      return sink.end();
    }
    sink.arguments(separator);
    yield* readArgument(context, keys[position++]);
    yield* reader.space();
    if (!(yield* reader.takes(',')) && (yield* reader.peek()) !== ')') throw NOT_A_CALL;
  }
}

function* readCallList(context: CallContext, isKnown: (name: string) => boolean): Reading {
  const { reader } = context;
  yield* expect(reader, '[');
  yield* reader.space();
  yield* readPythonCall(context, isKnown);
  while (yield* takeEnd(reader, [','])) {
    yield* reader.space();
    yield* readPythonCall(context, () => true);
  }
  yield* takeEnd(reader, [']']);
}

function* readArgument({ reader, sink }: CallContext, positionalKey: string | undefined): Reading {
  const emit = (text: string): void => sink.arguments(text);
  const word = (yield* startsWord(reader)) ? yield* readIdentifier(reader) : '';
  const space = word === '' ? '' : yield* reader.space();
  if (word !== '' && (yield* reader.takes('='))) {
    emit(`${JSON.stringify(word)}: `);
    yield* reader.space();
  } else {
    if (positionalKey === undefined) throw NOT_A_CALL;
    emit(`${JSON.stringify(positionalKey)}: `);
    reader.giveBack(word + space);
  }
  yield* readLiteral(reader, PYTHON, emit);
}

/** Whether another call follows. */
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

/** The tool of `module.tool` and `tool.call`, unless a tool has the whole name. */
function toolName(written: string, tools: CallContext['tools']): string {
  if (tools.has(written)) return written;
  const parts = written.replace(/\.call$/, '').split('.');
  return parts.length > 1 && tools.has(parts.at(-1)!) ? parts.at(-1)! : parts.join('.');
}

function parameterNames(parameters: unknown): string[] {
  const properties = (parameters as { properties?: unknown } | null | undefined)?.properties;
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
}
