/** Text with reasoning between two markers -> reasoning and content. */
import type { Reading, TextReader } from '../common/index.ts';
import type { ReasoningSink } from './events.ts';
import type { ReasoningFormat } from './formats.ts';

/**
 * Parses the whole text. Reasoning is at the beginning, and elsewhere only if the format allows it. Without an end marker it
 * continues to the end.
 */
export function* readTagged(
  reader: TextReader,
  sink: ReasoningSink,
  format: ReasoningFormat,
  startsInside: boolean,
): Reading {
  const space = yield* reader.space();
  const isOpened = yield* reader.takes(format.begin); // some models repeat the marker of the prompt
  if (isOpened || startsInside) yield* readReasoning(reader, sink, format, isOpened ? '' : space);
  else sink.emit('content', space);
  const markers = [...(format.answerMarkers ?? []), ...(format.isRepeatable ? [format.begin] : [])];
  for (;;) {
    const marker = yield* reader.until(markers, (text) => sink.emit('content', text));
    if (marker === null) return;
    if (marker === format.begin) yield* readReasoning(reader, sink, format, '');
  }
}

function* readReasoning(
  reader: TextReader,
  sink: ReasoningSink,
  format: ReasoningFormat,
  space: string,
): Reading {
  sink.phase = 'reasoning';
  sink.emit('reasoning', space);
  const end = yield* reader.until([format.end], (text) => sink.emit('reasoning', text));
  if (end !== null) sink.phase = 'content';
}
