/** Marker, name, marker, `{...}` -> calls, of the families with the name outside the JSON. */
import type { Reading, TextReader } from '../text-reader.ts';
import {
  type CallContext,
  expect,
  type Family,
  NOT_A_CALL,
  readArgumentsToEnd,
  readName,
  takeEnd,
} from './context.ts';
import type { FormatRow, ToolCallSyntax } from './format-row.ts';
import { readJsonCalls } from './json-calls.ts';

/** Syntax of a name, then a JSON object. */
export const NAMED = { name: 'plain', arguments: 'json', separator: '' } as const;

/** The syntax of a name and a JSON object. */
export type NamedJson = {
  /** Markers around a list of calls. */
  readonly section?: { readonly begin: string; readonly end: string };
  readonly callBegin: string;
  /** Marker that may end a text between `callBegin` and the name. */
  readonly prefixEnd?: string;
  readonly nameEnd: string;
  /** Markers around the JSON object. */
  readonly fence?: { readonly begin: string; readonly end: string };
  readonly callEnd?: string;
  /** Splits the text before the arguments into name and id. */
  readonly splitName?: (text: string) => { name: string; id: string };
};

/** Returns the row of a format with such calls. `layout` has the parts of their syntax that do not follow from the markers. */
export function namedRow(
  calls: NamedJson,
  layout: Partial<ToolCallSyntax> = {},
): Pick<FormatRow, 'reads' | 'writes'> {
  const { section, callBegin, nameEnd, callEnd = '' } = calls;
  return {
    reads: namedJson(calls),
    writes: {
      ...NAMED,
      ...(section ? { section } : {}),
      begin: callBegin,
      middle: [nameEnd],
      end: callEnd,
      trigger: section?.begin ?? callBegin,
      ...layout,
    },
  };
}

/** Returns the family of calls `callBegin name nameEnd {...} callEnd`, with or without a section. */
export function namedJson(calls: NamedJson): Family {
  const { section, callBegin } = calls;
  return {
    markers: section ? [section.begin, callBegin] : [callBegin],
    literals: [section?.begin, callBegin, calls.prefixEnd, calls.nameEnd, calls.callEnd, section?.end].filter(
      (literal) => literal !== undefined,
    ),
    *read(context, marker) {
      if (marker !== callBegin) yield* expectAfterSpace(context.reader, callBegin);
      do yield* readCall(context, calls);
      while (yield* takeEnd(context.reader, [callBegin]));
      if (section) yield* takeEnd(context.reader, [section.end]);
    },
  };
}

function* readCall(context: CallContext, calls: NamedJson): Reading {
  const { reader, sink } = context;
  if (calls.prefixEnd !== undefined) yield* readName(reader, [calls.prefixEnd]);
  const written = (yield* readName(reader, [calls.nameEnd])).name;
  const { name, id } = calls.splitName?.(written) ?? { name: written, id: null };
  if (name === '') throw NOT_A_CALL;
  sink.start(name, id);
  if (calls.fence) yield* expectAfterSpace(reader, calls.fence.begin);
  yield* readArgumentsToEnd(context);
  if (calls.fence) yield* takeEnd(reader, [calls.fence.end]);
  if (calls.callEnd !== undefined) yield* takeEnd(reader, [calls.callEnd]);
}

function* expectAfterSpace(reader: TextReader, literal: string): Reading {
  yield* reader.space();
  yield* expect(reader, literal);
}

/** Splits `functions.NAME:INDEX`, with optional prefix and index. The whole text is the id. */
export function splitIndexedName(text: string): { name: string; id: string } {
  return { name: text.replace(/^functions\./, '').replace(/:\d+$/, ''), id: text };
}

/** Returns the family of `[TOOL_CALLS]` and a JSON list, or `NAME[ARGS]{...}` with an optional id after the name. */
export function mistralCalls(): Family {
  return {
    markers: ['[TOOL_CALLS]'],
    literals: ['[TOOL_CALLS]', '[ARGS]', '[CALL_ID]'],
    *read(context) {
      const { reader, sink } = context;
      yield* reader.space();
      const first = yield* reader.peek();
      if (first === '[' || first === '{') return yield* readJsonCalls(context, { begins: [] });
      const { name, end } = yield* readName(reader, ['[ARGS]', '[CALL_ID]', '{']);
      const id = end === '[CALL_ID]' ? (yield* readName(reader, ['[ARGS]'])).name : null;
      if (end === '{') reader.giveBack(end);
      sink.start(name, id);
      yield* readArgumentsToEnd(context);
    },
  };
}

/** The name that announces plain text. */
export const FUNCTIONARY_TEXT = 'all';

/** Returns the family of `>>>NAME`, a line break and the arguments. The name `all` announces text. The prompt ends with `>>>`. */
export function functionaryCalls(): Family {
  function* read(context: CallContext, isKnown: (name: string) => boolean): Reading {
    const { name } = yield* readName(context.reader, ['\n']);
    if (name === FUNCTIONARY_TEXT) return;
    if (!isKnown(name)) throw NOT_A_CALL;
    context.sink.start(name);
    yield* readArgumentsToEnd(context);
  }
  return {
    markers: ['>>>'],
    literals: ['>>>'],
    read: (context) => read(context, () => true),
    readStart: (context) => read(context, (name) => context.tools.has(name)),
  };
}
