/** A model's text, piece by piece -> content and tool calls; tools -> the structural tag that enforces them. */

export type { ToolCallIdFactory, ToolCallIdInput } from './call-sink.ts';
export type { TextArgument, ToolDefinition } from './context.ts';
export { detectToolFormat, toolCallMarkers, toolFormat } from './detect.ts';
export {
  foldToolCallEvents,
  type ToolCall,
  type ToolCallEvent,
  type ToolCallMessage,
} from './events.ts';
export { formatRow, TOOL_FORMATS, type ToolFormat } from './formats.ts';
export { HARMONY, harmonyRecipient, MAX_HEADER_LENGTH } from './harmony-calls.ts';
export { createToolCallIds } from './ids.ts';
export { createToolCallParser, type ToolCallParser, type ToolCallParserOptions } from './parser.ts';
export {
  type StructuralFormat,
  type StructuralTag,
  type ToolCallChoice,
  toolCallStructuralTag,
} from './structural-tag.ts';
export { withoutComments } from './template-text.ts';
