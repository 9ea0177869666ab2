/** A model's text, piece by piece -> content and tool calls; tools -> the structural tag that enforces them. */

export { MUSE } from './atem-calls.ts';
export { type CallsAhead, callsAhead, readCallsAhead } from './calls-ahead.ts';
export type { ToolDefinition } from './context.ts';
export { detectToolFormat, toolCallMarkers, toolFormat } from './detect.ts';
export type { ToolCallEvent } from './events.ts';
export { formatRow, TOOL_FORMATS, type ToolFormat } from './formats.ts';
export { HARMONY, harmonyRecipient, MAX_HEADER_LENGTH } from './harmony-calls.ts';
export { createToolCallIds } from './ids.ts';
export { INKLING } from './inkling-calls.ts';
export { createToolCallParser, type ToolCallParser } from './parser.ts';
export {
  type StructuralFormat,
  type StructuralTag,
  type ToolCallChoice,
  toolCallStructuralTag,
} from './structural-tag.ts';
export { withoutComments } from './template-text.ts';
export { callsText } from './write-calls.ts';
