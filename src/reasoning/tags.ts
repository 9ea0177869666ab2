/** text with reasoning between two markers -> reasoning and content. */
import type { Reading, TextReader } from '../common/index.ts';
import type { ReasoningSink } from './events.ts';
import type { ReasoningFormat } from './formats.ts';

type TagFormat = Extract<ReasoningFormat, { kind: 'tags' }>;

/**
 * Reads all of the text. Reasoning stands at the beginning, and elsewhere only if the format says so. Without a closing
 * marker it lasts to the end.
 */
export function* readTagged(
  reader: TextReader,
  sink: ReasoningSink,
  format: TagFormat,
  startsInside: boolean,
): Reading {
  const space = yield* reader.space();
  const isOpened = yield* reader.takes(format.begin); // models repeat a marker that the prompt has opened
  if (isOpened || startsInside) yield* readReasoning(reader, sink, format, isOpened ? '' : space);
  else sink.emit('content', space);
  const markers = [...(format.answerMarkers ?? []), ...(format.isRepeatable ? [format.begin] : [])];
  for (;;) {
    const marker = yield* reader.until(markers, (text) => sink.emit('content', text));
    if (marker === null) return;
    if (marker === format.begin) yield* readReasoning(reader, sink, format, '');
  }
}

function* readReasoning(reader: TextReader, sink: ReasoningSink, format: TagFormat, space: string): Reading {
  sink.phase = 'reasoning';
  sink.emit('reasoning', space);
  const end = yield* reader.until([format.end], (text) => sink.emit('reasoning', text));
  if (end !== null) sink.phase = 'content';
}
