/** A name and tagged parameters -> calls, of the families with XML. Values are converted to JSON piece by piece. */
import type { Reading } from '../common/index.ts';
import { type CallContext, expect, type Family, NOT_A_CALL, readName, takeEnd } from './context.ts';
import type { ArgumentStyle, FormatRow, ToolCallSyntax } from './format-row.ts';
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

/** How a model writes calls with tagged parameters, where that differs from their markers one after the other. */
type XmlLayout = Partial<ToolCallSyntax> & {
  /** Each call has a section of its own, and line breaks inside it. */
  readonly isEachInSection?: boolean;
};

/** The row of a format with tagged parameters. `style`: of the grammar engine. */
export function xmlRow(
  calls: XmlCalls,
  style: ArgumentStyle,
  { isEachInSection = false, ...layout }: XmlLayout = {},
): Pick<FormatRow, 'reads' | 'writes'> {
  const { sections, callBegin, nameEnd, callEnd, parameterBegin, keyEnd, valueBegin, typeAttribute } = calls;
  const [begin, end] = [sections?.begins[0], sections?.ends[0]];
  const toValue = typeAttribute ? ` string=${typeAttribute.string}${typeAttribute.end}` : '';
  const lineBreak = calls.hasLineBreak || valueBegin !== undefined ? '\n' : '';
  return {
    reads: xmlCalls(calls),
    writes: {
      ...(begin !== undefined && !isEachInSection
        ? { section: { begin: `${begin}\n`, end: `\n${end}` } }
        : {}),
      begin: isEachInSection ? `${begin}\n${callBegin}` : callBegin,
      name: 'plain',
      middle: [isEachInSection ? `${nameEnd}\n` : nameEnd],
      arguments: style,
      textArgument: (name) => [
        `${parameterBegin}${name}${keyEnd}${toValue}${lineBreak}${valueBegin ?? ''}`,
        calls.valueEnds[0]!,
      ],
      end: isEachInSection ? `\n${callEnd}\n${end}` : callEnd,
      separator: '\n',
      trigger: begin ?? callBegin,
      ...layout,
    },
  };
}

/** Calls with tagged parameters. */
export function xmlCalls(calls: XmlCalls): Family {
  const { sections, callBegin } = calls;
  return {
    markers: [...(sections?.begins ?? []), callBegin],
    literals: [
      ...(sections?.begins ?? []),
      ...(sections?.ends ?? []),
      ...[callBegin, calls.nameEnd, calls.callEnd, calls.parameterBegin, calls.keyEnd],
      ...[calls.valueBegin, calls.attributesEnd].filter((literal) => literal !== undefined),
      ...calls.valueEnds,
    ],
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
