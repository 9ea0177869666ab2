/** A model's text, piece by piece -> reasoning and content. */

import { ParserRun, TextReader } from '../text-reader.ts';
import { callsAhead, type ToolDefinition, type ToolFormat } from '../tool-calls/index.ts';
import type { ReasoningEvent, ReasoningPhase } from './events.ts';
import { ReasoningSink } from './events.ts';
import type { ReasoningFormat } from './formats.ts';
import { FRAMINGS } from './framings.ts';
import { readMessages } from './messages.ts';
import { readTagged } from './tags.ts';

/** Options of {@link createReasoningParser}. */
export type ReasoningParserOptions = {
  /** True if the prompt has opened the reasoning, see {@link isReasoningOpen}. Text without an end marker is then reasoning. */
  readonly startsInside: boolean;
  /** Tools that may be called, and the format of calls: a call at the end of reasoning ends it. Absent or null if there are none. */
  readonly calls?: { readonly format: ToolFormat; readonly tools: readonly ToolDefinition[] } | null;
};

/** Splits the text of one answer. */
export type ReasoningParser = {
  /** Parses a piece of text; returns the new events. */
  push(delta: string): ReasoningEvent[];
  /** Ends the text; returns the last events. Call it once. */
  finish(): ReasoningEvent[];
  /** Returns true while the text ends before or in the reasoning. A grammar for the answer applies only afterwards. */
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
  const { startsInside, calls } = options;
  const names = new Set(calls?.tools.map((tool) => tool.function.name));
  const run = new ParserRun(
    reader,
    format.kind === 'messages'
      ? readMessages(reader, sink, FRAMINGS[format.name as keyof typeof FRAMINGS], {
          startsInside,
          isTool: (name) => names.has(name),
        })
      : readTagged(reader, sink, format, {
          startsInside,
          calls: calls ? callsAhead(calls.format, calls.tools) : null,
        }),
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
    // a message with the answer has a header before it
    isInside: () => (format.kind === 'messages' ? sink.phase !== 'content' : sink.phase === 'reasoning'),
    phase: () => sink.phase,
  };
}
