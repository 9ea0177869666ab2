/** A name and tagged parameters -> calls, of the families with XML. Values are converted to JSON piece by piece. */
import type { Reading } from '../common/index.ts';
import { type CallContext, expect, type Family, NOT_A_CALL, readName, takeEnd } from './context.ts';
import { isStringOnly, parameterTypes } from './parameter-values.ts';
import { readValue } from './read-value.ts';

const CDATA = '<![CDATA[';

/** The syntax of parameters. */
export type XmlCalls = {
  /** Optional markers around one or more calls. */
  readonly sections?: { readonly begins: readonly string[]; readonly ends: readonly string[] };
  readonly callBegin: string;
  readonly nameEnd: string;
  /** Markers that end a name without its own end marker. They are not consumed. */
  readonly nameLookahead?: readonly string[];
  readonly callEnd: string;
  readonly parameterBegin: string;
  readonly keyEnd: string;
  /** Marker between `keyEnd` and the value. */
  readonly valueBegin?: string;
  readonly valueEnds: readonly string[];
  /** Markers that end a value without its own end marker. They are not consumed. */
  readonly valueLookahead?: readonly string[];
  /** Whether one line break after the key is not part of the value. */
  readonly hasLineBreak?: boolean;
  /** What follows the key, up to `end`, says with `string` whether the value is a string. */
  readonly typeAttribute?: { readonly end: string; readonly string: string };
  /** Attributes follow the name, up to this. */
  readonly attributesEnd?: string;
  /** Whether values may be CDATA blocks. */
  readonly hasCdata?: boolean;
};

/** Calls with tagged parameters. */
export function xmlCalls(calls: XmlCalls): Family {
  const { sections, callBegin } = calls;
  return {
    markers: [...(sections?.begins ?? []), callBegin],
    literals: [
      ...(sections?.begins ?? []),
      ...(sections?.ends ?? []),
      ...[
        callBegin,
        calls.nameEnd,
        calls.callEnd,
        calls.parameterBegin,
        calls.keyEnd,
        calls.valueBegin ?? '',
        calls.attributesEnd ?? '',
      ],
      ...calls.valueEnds,
    ].filter((literal) => literal !== ''),
    *read(context, marker) {
      const { reader } = context;
      if (marker !== callBegin) {
        yield* reader.space();
        yield* expect(reader, callBegin);
      }
      do yield* readCall(context, calls);
      while (sections && (yield* takeEnd(reader, [callBegin])));
      if (sections) yield* takeEnd(reader, sections.ends);
    },
  };
}

function* readCall(context: CallContext, calls: XmlCalls): Reading {
  const { reader, sink } = context;
  const { name, end } = yield* readName(reader, [calls.nameEnd, ...(calls.nameLookahead ?? [])]);
  if (end !== calls.nameEnd) reader.giveBack(end);
  if (calls.attributesEnd !== undefined) yield* reader.until([calls.attributesEnd], () => {});
  sink.start(name);
  let separator = '{';
  for (;;) {
    yield* reader.space();
    if (yield* reader.takes(calls.callEnd)) break;
    yield* expect(reader, calls.parameterBegin);
    sink.arguments(separator);
    separator = ', ';
    yield* readParameter(context, calls, context.tools.get(name));
  }
  if (separator !== '{') sink.arguments('}');
  sink.end();
}

function* readParameter({ reader, sink }: CallContext, calls: XmlCalls, parameters: unknown): Reading {
  const { name } = yield* readName(reader, [calls.keyEnd]);
  sink.arguments(`${JSON.stringify(name)}: `);
  if (calls.valueBegin !== undefined) {
    yield* reader.space();
    yield* expect(reader, calls.valueBegin);
  }
  let types = parameterTypes(parameters, name);
  if (calls.typeAttribute) {
    let attribute = '';
    yield* reader.until([calls.typeAttribute.end], (text) => {
      attribute += text;
    });
    // The attribute decides only if the schema allows strings and other types.
    const isOpen = types === null || (types.has('string') && !isStringOnly(types));
    if (isOpen) types = attribute.includes(calls.typeAttribute.string) ? new Set(['string']) : null;
  }
  if (calls.hasLineBreak) yield* reader.takes('\n');
  const isCdata = calls.hasCdata && (yield* reader.takes(CDATA));
  if (calls.hasCdata && reader.hasEnded && CDATA.startsWith(reader.available())) throw NOT_A_CALL;
  const lookahead = calls.valueLookahead ?? [];
  const end = yield* readValue(
    { reader, sink },
    [...(isCdata ? [']]>'] : calls.valueEnds), ...lookahead],
    types,
  );
  if (lookahead.includes(end)) reader.giveBack(end);
  if (isCdata) yield* expect(reader, calls.valueEnds[0]!);
}
