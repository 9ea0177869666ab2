/** A model's text, piece by piece -> reasoning and content. */

import { ParserRun, TextReader } from '../common/index.ts';
import type { ReasoningEvent, ReasoningPhase } from './events.ts';
import { ReasoningSink } from './events.ts';
import type { ReasoningFormat } from './formats.ts';
import { readHarmony } from './harmony.ts';
import { readTagged } from './tags.ts';

/** Options of {@link createReasoningParser}. */
export type ReasoningParserOptions = {
  /** Whether the prompt has opened the reasoning, see {@link isReasoningOpen}. Then text without an end marker is reasoning. */
  readonly startsInside: boolean;
};

/** Splits the text of one answer. */
export type ReasoningParser = {
  /** Parses a piece of text; returns the new events. */
  push(delta: string): ReasoningEvent[];
  /** Ends the text; returns the last events. Call it once. */
  finish(): ReasoningEvent[];
  /** Whether the text so far ends before or in the reasoning. A grammar for the answer applies only afterwards. */
  isInside(): boolean;
  /** The state of the answer: `start` until the first text or marker. */
  phase(): ReasoningPhase;
};

/** Creates the parser of one answer. */
export function createReasoningParser(
  format: ReasoningFormat,
  options: ReasoningParserOptions,
): ReasoningParser {
  const reader = new TextReader();
  const sink = new ReasoningSink();
  if (options.startsInside) sink.phase = 'reasoning';
  const run = new ParserRun(
    reader,
    format.kind === 'harmony'
      ? readHarmony(reader, sink, options.startsInside)
      : readTagged(reader, sink, format, options.startsInside),
  );
  return {
    push(delta) {
      run.push(delta);
      return sink.takeEvents();
    },
    finish() {
      run.finish();
      return sink.takeEvents();
    },
    // in harmony only the final message is the answer; its header comes before it
    isInside: () => (format.kind === 'harmony' ? sink.phase !== 'content' : sink.phase === 'reasoning'),
    phase: () => sink.phase,
  };
}
