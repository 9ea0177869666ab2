/** A model's text, piece by piece -> reasoning and content. The content is the input of the tool-call parser. */

export type { ReasoningEvent, ReasoningPhase } from './events.ts';
export {
  continuedReasoning,
  continuesReasoning,
  detectReasoning,
  isReasoningOpen,
  openReasoning,
  REASONING_FORMATS,
  type ReasoningFormat,
  type ReasoningFormatName,
  reasoningEnd,
  reasoningMarkers,
} from './formats.ts';
export { createReasoningParser, type ReasoningParser, type ReasoningParserOptions } from './parser.ts';
