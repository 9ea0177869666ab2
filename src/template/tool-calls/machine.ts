/** Text -> content and calls: finds a family's markers and runs its parser; all other text is content. */
import { isMark, type Reading } from '../text-reader.ts';
import { type CallContext, type Family, NOT_A_CALL } from './context.ts';

/** Parses the whole text. */
export function* readCalls(context: CallContext, family: Family): Reading {
  const { reader, sink } = context;
  const { readStart } = family;
  if (readStart) yield* attempt(context, '', () => readStart(context));
  for (;;) {
    const marker = yield* reader.until(
      family.markers,
      (text) => sink.content(text),
      Number.POSITIVE_INFINITY,
      'markDropped',
    );
    if (marker === null) break;
    yield* attempt(context, marker, () => family.read(context, marker));
  }
  sink.finish();
}

function* attempt(context: CallContext, marker: string, read: () => Reading): Reading {
  const { reader, sink } = context;
  const countBefore = sink.count;
  reader.record(marker);
  try {
    yield* read();
  } catch (error) {
    if (error !== NOT_A_CALL) throw error;
    giveUp(context, marker, sink.count > countBefore);
  }
  reader.stopRecording();
}

/**
 * Treats the text since the last complete call as content, unless the text has ended inside an announced call, or after a marker
 * that only calls begin with. If no call was announced and the text goes on, the text after the marker is searched for calls again.
 */
function giveUp({ reader, sink }: CallContext, marker: string, hasCalls: boolean): void {
  const written = reader.recorded();
  if (sink.isOpen) {
    sink.broken(reader.hasEnded ? '' : written);
    if (reader.hasEnded) reader.consume(reader.available().length);
  } else if (reader.isAtEnd()) sink.content(isMark(marker) ? '' : written);
  else if (hasCalls) reader.rewind();
  else {
    sink.content(marker);
    reader.rewind(marker.length);
  }
}
