/** Text with reasoning between two markers -> reasoning and content. */
import { isMark, type Reading, type TextReader } from '../text-reader.ts';
import { type CallsAhead, readCallsAhead } from '../tool-calls/index.ts';
import type { ReasoningSink } from './events.ts';
import type { ReasoningFormat } from './formats.ts';

/** Options of reading one text. */
export type TaggedOptions = {
  /** True if the prompt has opened the reasoning. */
  readonly startsInside: boolean;
  /** The calls that end reasoning; null if there are no tools. */
  readonly calls: CallsAhead | null;
};

const FOREVER = Number.POSITIVE_INFINITY;

/**
 * Parses the whole text. Reasoning is at the beginning, and elsewhere only if the format allows it. Without an end marker it
 * continues to the end, or to calls at its end. An end marker without a begin marker is dropped if it cannot be meant as text:
 * before any content, at the end of a line or of the text, and everywhere if no answer contains such markers.
 */
export function* readTagged(
  reader: TextReader,
  sink: ReasoningSink,
  format: ReasoningFormat,
  { startsInside, calls }: TaggedOptions,
): Reading {
  const begin = format.channel ?? format.begin;
  const hasMarks = isMark(begin) && isMark(format.end);
  const markers = [...(format.answerMarkers ?? []), ...(hasMarks ? [begin, format.end] : [])];
  const space = yield* reader.space();
  let isBlank = true; // no content since the beginning or the last reasoning
  let isQuoted = false; // the content has a begin marker whose end is text as well
  const emit = (text: string): void => {
    if (text.trim() !== '') isBlank = false;
    sink.emit('content', text);
  };
  const isOpened = yield* reader.takes(begin); // some models repeat the marker of the prompt
  if (isOpened || startsInside) {
    sink.phase = 'reasoning';
    if (isOpened) yield* readChannelName(reader, format);
    yield* readReasoning(reader, sink, format, calls, isOpened ? '' : space);
  } else emit(space);
  if (reader.takesCutMark([begin])) return;
  for (;;) {
    const marker = yield* reader.until(markers, emit, FOREVER, 'markDropped');
    if (marker === null) return;
    if (marker === begin && format.isRepeatable) {
      sink.phase = 'reasoning';
      yield* readChannelName(reader, format);
      yield* readReasoning(reader, sink, format, calls, '');
      isBlank = true;
    } else if (marker === begin || (marker === format.end && isQuoted)) {
      emit(marker);
      isQuoted = marker === begin;
    } else if (marker === format.end && !isBlank && !format.isRepeatable) {
      const next = yield* reader.peek();
      if (next !== '' && next !== '\n') emit(marker);
    }
  }
}

/** Reads reasoning up to and including its end marker, or up to calls. */
function* readReasoning(
  reader: TextReader,
  sink: ReasoningSink,
  format: ReasoningFormat,
  calls: CallsAhead | null,
  space: string,
): Reading {
  let line = space.slice(space.lastIndexOf('\n') + 1);
  const emit = (text: string): void => {
    line = (text.includes('\n') ? '' : line) + text.slice(text.lastIndexOf('\n') + 1);
    sink.emit('reasoning', text);
  };
  emit(space);
  const ends = [format.end, ...(format.answerOpens === undefined ? [] : [format.answerOpens])];
  const markers = [...ends, ...(calls?.markers ?? [])];
  const others = [...ends.slice(1), ...(format.answerMarkers ?? [])];
  for (;;) {
    const marker = yield* reader.until(markers, emit, FOREVER, 'markDropped');
    if (marker === null) return;
    if (ends.includes(marker)) break;
    const { isCall, text } = yield* readCallsAhead(reader, calls!, { marker, line, end: format.end, others });
    if (isCall) {
      sink.emit('content', text);
      break;
    }
    emit(text);
  }
  sink.phase = 'content';
}

/**
 * Reads the name of a channel behind its begin marker, in formats with channels: one word of small letters, which ends the line or
 * the channel. Other text is left to the reasoning. A begin marker may be repeated.
 */
function* readChannelName(reader: TextReader, { channel, end }: ReasoningFormat): Reading {
  if (channel === undefined) return;
  reader.record();
  for (;;) {
    if (yield* reader.takes(channel)) reader.record();
    const next = yield* reader.peek();
    if (/[a-z_]/.test(next)) {
      reader.consume(1);
      continue;
    }
    const isName = next === '\n' || next === '' || (yield* reader.takes(end));
    if (next === '\n') reader.consume(1);
    else if (isName && next !== '') reader.giveBack(end);
    else if (!isName && next !== channel[0]) reader.rewind();
    else if (!isName) {
      // an incomplete begin marker, or other text that starts like one
      if (!reader.takesCutMark([channel])) reader.rewind();
    }
    return reader.stopRecording();
  }
}
