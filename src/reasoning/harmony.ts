/** harmony messages -> reasoning (analysis) and content (final, commentary). Messages to tools are unchanged content. */
import type { Reading, TextReader } from '../common/index.ts';
import { HARMONY, harmonyRecipient, MAX_HEADER_LENGTH } from '../tool-calls/index.ts';
import type { ReasoningEvent, ReasoningSink } from './events.ts';

const HEADER_STARTS = [HARMONY.start, HARMONY.channel, ' to='];

/** Parses the whole text, which begins after the generation prompt `<|start|>assistant`, or inside a message. */
export function* readHarmony(reader: TextReader, sink: ReasoningSink, startsInside: boolean): Reading {
  let written: ReasoningEvent['kind'] | null = null; // of the previous message
  let isFirst = true;
  for (;;) {
    const header: string | null =
      startsInside && isFirst ? `${HARMONY.channel}analysis` : yield* readHeader(reader);
    isFirst = false;
    if (header === null) break;
    const isCall = harmonyRecipient(header) !== null;
    const kind = !isCall && header.includes(`${HARMONY.channel}analysis`) ? 'reasoning' : 'content';
    if (kind === written && !isCall) sink.emit(kind, '\n');
    sink.phase = kind;
    if (isCall)
      sink.emit(
        'content',
        (header.startsWith(' ') ? `${HARMONY.start}assistant` : '') + header + HARMONY.message,
      );
    const end = yield* reader.until([HARMONY.end, HARMONY.return, HARMONY.call, HARMONY.start], (text) =>
      sink.emit(kind, text),
    );
    if (isCall && (end === HARMONY.call || end === HARMONY.end)) sink.emit('content', end);
    if (end === HARMONY.start) reader.giveBack(end);
    written = isCall ? null : kind;
    sink.phase = 'start';
  }
  yield* reader.until([], (text) => sink.emit('content', text));
}

/** Reads a header up to `<|message|>` and returns it without the marker; null if the text is no header. */
function* readHeader(reader: TextReader): Reading<string | null> {
  reader.record();
  for (const start of HEADER_STARTS) {
    if (!(yield* reader.takes(start))) continue;
    const end = yield* reader.until([HARMONY.message, HARMONY.end], () => {}, MAX_HEADER_LENGTH);
    if (end !== HARMONY.message) break;
    const header = reader.recorded().slice(0, -HARMONY.message.length);
    reader.stopRecording();
    return header;
  }
  reader.rewind();
  reader.stopRecording();
  return null;
}
