/** A name and tagged parameters -> calls, of the families with XML. Values are converted to JSON piece by piece. */
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
import type { ArgumentStyle, FormatRow, ToolCallSyntax } from './format-row.ts';
import { readValue } from './read-value.ts';
import { isStringOnly, parameterTypes } from './schema-types.ts';

const CDATA = '<![CDATA[';
/** The types of a value that the call marks as not being a string. */
const NO_STRING = new Set(['number', 'integer', 'boolean', 'object', 'array', 'null']);

/** The syntax of parameters. */
export type XmlCalls = {
  /** Optional markers around one or more calls. */
  readonly sections?: { readonly begins: readonly string[]; readonly ends: readonly string[] };
  readonly callBegin: string;
  readonly nameEnd: string;
  /** Markers that end a name which has no end marker. They are not consumed. */
  readonly nameLookahead?: readonly string[];
  readonly callEnd: string;
  readonly parameterBegin: string;
  readonly keyEnd: string;
  /** Marker between `keyEnd` and the value. */
  readonly valueBegin?: string;
  readonly valueEnds: readonly string[];
  /** Markers that end a value which has no end marker. They are not consumed. */
  readonly valueLookahead?: readonly string[];
  /** True if one line break after the key is not part of the value. */
  readonly hasLineBreak?: boolean;
  /** An attribute after the key, up to `end`. The value is a string if the attribute contains `string`. */
  readonly typeAttribute?: { readonly end: string; readonly string: string };
  /** Marker that ends the attributes after the name. */
  readonly attributesEnd?: string;
  /** True if values may be CDATA blocks. */
  readonly hasCdata?: boolean;
  /** The marker that ends the name of a call without parameters and without `callEnd`. */
  readonly emptyEnds?: readonly string[];
  /** True if quotes and ampersands in names and keys are escaped, as in XML. */
  readonly hasEscapes?: boolean;
};

/** The parts of the syntax of calls with tagged parameters that do not follow from their markers. */
type XmlLayout = Partial<ToolCallSyntax> & {
  /** True if each call has a separate section, with line breaks inside it. */
  readonly isEachInSection?: boolean;
};

/** Returns the row of a format with tagged parameters. `style` is that of the grammar engine. */
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

/** Returns the family of calls with tagged parameters. */
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
  const emptyEnds = calls.emptyEnds ?? [];
  const ends = [calls.nameEnd, ...(calls.nameLookahead ?? []), ...emptyEnds];
  const { name: written, end } = yield* readName(reader, ends);
  if (calls.nameLookahead?.includes(end)) reader.giveBack(end);
  if (calls.attributesEnd !== undefined) yield* reader.until([calls.attributesEnd], () => {});
  const name = unescaped(written, calls);
  sink.start(name);
  if (emptyEnds.includes(end)) return sink.end();
  yield* reader.space();
  if ((yield* reader.peek()) === '{') return yield* readJsonBody(context, calls);
  let separator = '{';
  while (!(yield* takesCallEnd(reader, calls, separator !== '{'))) {
    yield* expect(reader, calls.parameterBegin);
    sink.arguments(separator);
    separator = ', ';
    yield* readParameter(context, calls, context.tools.get(name));
    yield* reader.space();
  }
  if (separator !== '{') sink.arguments('}');
  sink.end();
}

/** Reads JSON instead of parameters, as some models write it. */
function* readJsonBody(context: CallContext, calls: XmlCalls): Reading {
  yield* readArgumentsToEnd(context);
  yield* takeEnd(context.reader, [calls.callEnd]);
}

/** Returns true if the call ends here. A call with parameters also ends at the next call or at the end of the section. */
function* takesCallEnd(reader: TextReader, calls: XmlCalls, hasParameters: boolean): Reading<boolean> {
  if (yield* reader.takes(calls.callEnd)) return true;
  if (!hasParameters) return false;
  for (const next of [calls.callBegin, ...(calls.sections?.ends ?? [])]) {
    if (!(yield* reader.takes(next))) continue;
    reader.giveBack(next);
    return true;
  }
  return false;
}

function unescaped(name: string, { hasEscapes }: XmlCalls): string {
  return hasEscapes ? name.replaceAll('&quot;', '"').replaceAll('&amp;', '&') : name;
}

function* readParameter({ reader, sink }: CallContext, calls: XmlCalls, parameters: unknown): Reading {
  const { name: written } = yield* readName(reader, [calls.keyEnd], true);
  const name = unescaped(written, calls);
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
    if (attribute.endsWith('/')) return sink.arguments('""'); // an element without content
    // The attribute decides only if the schema allows strings and other types.
    const isOpen = types === null || (types.has('string') && !isStringOnly(types));
    if (isOpen) types = attribute.includes(calls.typeAttribute.string) ? new Set(['string']) : NO_STRING;
  }
  if (calls.hasLineBreak) yield* reader.takes('\n');
  const isCdata = calls.hasCdata && (yield* reader.takes(CDATA));
  if (calls.hasCdata && reader.hasEnded && CDATA.startsWith(reader.available())) throw NOT_A_CALL;
  const lookahead = calls.valueLookahead ?? [];
  const end = yield* readValue(
    reader,
    (json) => sink.arguments(json),
    [...(isCdata ? [']]>'] : calls.valueEnds), ...lookahead],
    types,
  );
  if (lookahead.includes(end)) reader.giveBack(end);
  if (isCdata) yield* expect(reader, calls.valueEnds[0]!);
}
