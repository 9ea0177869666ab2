/** Messages with headers -> reasoning and content, without the headers. Messages to tools are passed on unchanged as content. */
import type { Reading, TextReader } from '../text-reader.ts';
import { MAX_HEADER_LENGTH } from '../tool-calls/index.ts';
import type { ReasoningEvent, ReasoningSink } from './events.ts';
import type { Framing } from './framings.ts';

/** Options of reading one text. */
export type MessagesOptions = {
  /** True if the text begins inside a message of reasoning. */
  readonly startsInside: boolean;
  readonly isTool: (name: string) => boolean;
};

/**
 * Parses the whole text. It begins inside a message, or after the start of the first header, which is in the generation prompt.
 * Headers are never part of the result, and an incomplete header is dropped. Text without a header is content.
 */
export function* readMessages(
  reader: TextReader,
  sink: ReasoningSink,
  framing: Framing,
  { startsInside, isTool }: MessagesOptions,
): Reading {
  let written: ReasoningEvent['kind'] | null = null; // kind of the previous message
  for (let isFirst = true; !reader.isAtEnd(); isFirst = false) {
    const header: string | null =
      isFirst && startsInside ? framing.reasoning : yield* readHeader(reader, framing, isFirst);
    const kind = header === null ? 'content' : framing.kindOf(header, isTool);
    if (kind === written && header !== null) sink.emit(kind, '\n');
    if (kind !== 'dropped') sink.phase = kind === 'reasoning' ? kind : 'content';
    if (kind === 'call') sink.emit('content', framing.callHeader(header!));
    const take = (text: string): void => {
      if (kind !== 'dropped') sink.emit(kind === 'reasoning' ? kind : 'content', text);
    };
    const end = yield* reader.until(framing.ends, take, Number.POSITIVE_INFINITY, 'markDropped');
    if (end === null) return;
    if (framing.starts.includes(end)) reader.giveBack(end);
    else if (kind === 'call') sink.emit('content', end);
    written = kind === 'reasoning' || kind === 'content' ? kind : null;
    sink.phase = 'start';
    yield* reader.peek();
  }
}

/** Reads a header, including the marker that begins the message. Returns null if there is none. */
function* readHeader(reader: TextReader, framing: Framing, isFirst: boolean): Reading<string | null> {
  reader.record();
  let start = '';
  for (const one of framing.starts) if (start === '' && (yield* reader.takes(one))) start = one;
  if (framing.bodies.includes(start)) return endHeader(reader);
  for (;;) {
    for (const body of framing.bodies) if (yield* reader.takes(body)) return endHeader(reader);
    // a header without a message
    for (const end of framing.ends)
      if (!framing.starts.includes(end) && reader.recorded() !== '' && (yield* reader.takes(end)))
        return yield* readHeader(reader, framing, false);
    const next = yield* reader.peek();
    const text = reader.recorded() + next;
    const isOpen = text.length <= MAX_HEADER_LENGTH && (start !== '' || (isFirst && framing.isHeader(text)));
    if (next !== '' && isOpen) {
      reader.consume(1);
      continue;
    }
    const isCut = next === '' && (start !== '' || framing.isCut(text));
    if (!isCut) reader.rewind(start.length); // the text after the start marker is not a header
    reader.stopRecording();
    return null;
  }
}

function endHeader(reader: TextReader): string {
  const header = reader.recorded();
  reader.stopRecording();
  return header;
}
