/** A model's text, piece by piece -> content and tool calls; tools -> the structural tag that enforces them. */

export type { ToolDefinition } from './context.ts';
export { detectToolFormat, toolCallMarkers, toolFormat } from './detect.ts';
export type { ToolCallEvent } from './events.ts';
export { formatRow, TOOL_FORMATS, type ToolFormat } from './formats.ts';
export { HARMONY, harmonyRecipient, MAX_HEADER_LENGTH } from './harmony-calls.ts';
export { createToolCallIds } from './ids.ts';
export { createToolCallParser, type ToolCallParser } from './parser.ts';
export { type StructuralFormat, type StructuralTag, toolCallStructuralTag } from './structural-tag.ts';
export { withoutComments } from './template-text.ts';
