/** A model's text, as it grows -> reasoning and content. The content goes on to the tool-call parser. */

export type { ReasoningEvent, ReasoningPhase } from './events.ts';
export {
  detectReasoning,
  isReasoningOpen,
  REASONING_FORMATS,
  type ReasoningFormat,
  type ReasoningFormatName,
  reasoningMarkers,
} from './formats.ts';
export { createReasoningParser, type ReasoningParser, type ReasoningParserOptions } from './parser.ts';
