/** model text -> reasoning and content, on a growing prefix. The content goes on to the tool-call parser. */

import { ParserRun, TextReader } from '../common/index.ts';
import type { ReasoningEvent, ReasoningPhase } from './events.ts';
import { ReasoningSink } from './events.ts';
import type { ReasoningFormat } from './formats.ts';
import { readHarmony } from './harmony.ts';
import { readTagged } from './tags.ts';

/** Options of {@link createReasoningParser}. */
export type ReasoningParserOptions = {
  /** The prompt has opened the reasoning already, see {@link isReasoningOpen}. Text without a closing marker is reasoning. */
  readonly startsInside: boolean;
};

/** Splits the text of one answer. */
export type ReasoningParser = {
  /** The events that this piece of text settles. */
  push(delta: string): ReasoningEvent[];
  /** The events of what was still open. Call it once, at the end of generation. */
  finish(): ReasoningEvent[];
  /** The text so far ends before or in the reasoning, so that a grammar for the answer must not act yet. */
  isInside(): boolean;
  /** Where the answer is: `start` until the first text or marker decides. */
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
    // harmony has framing to write before its final message, so only that message is the answer
    isInside: () => (format.kind === 'harmony' ? sink.phase !== 'content' : sink.phase === 'reasoning'),
    phase: () => sink.phase,
  };
}
