/** Text after the marker of a call inside reasoning -> whether a call ends the reasoning there. */
import { ParserRun, type Reading, TextReader } from '../text-reader.ts';
import { CallSink } from './call-sink.ts';
import { type CallContext, type Family, NOT_A_CALL, type ToolDefinition } from './context.ts';
import { formatRow, type ToolFormat } from './formats.ts';

/** The calls that are searched for in reasoning. */
export type CallsAhead = {
  readonly family: Family;
  /** The parameter schemas of the tools that may be called. */
  readonly tools: CallContext['tools'];
  readonly markers: readonly string[];
};

/** The surroundings of a call's marker. */
export type CallPlace = {
  readonly marker: string;
  /** The text before the marker on its line. */
  readonly line: string;
  /** The end marker of the reasoning. */
  readonly end: string;
  /** Other markers that may stand at the end of the answer. */
  readonly others: readonly string[];
};

/** Returns a search for calls of these tools, or null if the format has no calls. */
export function callsAhead(format: ToolFormat, definitions: readonly ToolDefinition[]): CallsAhead | null {
  const family = formatRow(format).reads;
  const { markers } = family;
  if (markers.length === 0 || definitions.length === 0) return null;
  const tools = new Map(definitions.map((tool) => [tool.function.name, tool.function.parameters]));
  return { family, tools, markers };
}

/**
 * Reads the text after a consumed marker. Calls of given tools end the reasoning if they end the answer: only white space and an
 * end marker may follow, and the text may end inside the last call, after its name. A call that is followed by other text, inside
 * the reasoning or after it, is only a mention. Returns the text that was read, including the marker: if there are calls, all text
 * up to the end marker, otherwise only the part that is certainly not a call.
 */
export function* readCallsAhead(
  reader: TextReader,
  { family, tools }: CallsAhead,
  { marker, line, end, others }: CallPlace,
): Reading<{ readonly isCall: boolean; readonly text: string }> {
  const inner = new TextReader();
  const sink = new CallSink(() => '', { has: (name) => !tools.has(name) });
  sink.content(line);
  let verdict: Verdict | null = null;
  const probe = function* (): Reading {
    verdict = yield* readVerdict({ reader: inner, sink, tools }, family, marker);
  };
  const run = new ParserRun(inner, probe());
  let text = marker;
  const take = (piece: string): void => {
    text += piece;
    run.push(piece);
  };
  const upToEnd = reader.until([end, ...others], take, Number.POSITIVE_INFINITY, 'markDropped');
  let step = upToEnd.next();
  for (; !step.done && verdict === null; step = upToEnd.next()) yield;
  if (verdict === null) run.finish();
  if (verdict === 'calls') {
    const isClosed = step.value === end;
    const space = isClosed ? yield* reader.space() : '';
    if (!isClosed || (yield* reader.peek()) === '') return { isCall: true, text };
    reader.giveBack(end + space);
    return { isCall: false, text };
  }
  if (step.done && step.value !== null) reader.giveBack(step.value);
  const read = verdict === 'talk' ? text.slice(0, text.length - inner.available().length) : marker;
  reader.giveBack(text.slice(read.length));
  return { isCall: false, text: read };
}

/** `calls`: calls end the text. `talk`: other text follows them. `none`: there is no call. */
type Verdict = 'calls' | 'talk' | 'none';

function* readVerdict(context: CallContext, family: Family, first: string): Reading<Verdict> {
  const { reader, sink } = context;
  try {
    for (let marker: string | null = first; marker !== null; ) {
      yield* family.read(context, marker);
      yield* reader.space();
      if ((yield* reader.peek()) === '') return sink.count > 0 ? 'calls' : 'none';
      marker = null;
      for (const next of family.markers) if (marker === null && (yield* reader.takes(next))) marker = next;
    }
    return 'talk';
  } catch (error) {
    if (error !== NOT_A_CALL) throw error;
    return sink.isOpen && reader.isAtEnd() ? 'calls' : 'none';
  }
}
