/** A checked message of any variant -> the normalized form that chat templates read. */
import { fileText } from './file-text.ts';
import type {
  AssistantMessage,
  ContentPart,
  DeveloperMessage,
  FilePart,
  FunctionCall,
  Message,
  ToolCall,
  ToolMessage,
} from './generated/request-types.ts';
import { CUSTOM_INPUT, toFunctionTool } from './normalize-tools.ts';
import { TEXT_PART_FIELDS } from './schemas/message.ts';
import type { ChatContentPart, ChatMessage, ChatToolCall } from './valid-chat-request.ts';

/** Roles that have a schema variant. A message with any other role is a custom message. */
const KNOWN_ROLES = new Set(['developer', 'system', 'user', 'assistant', 'tool', 'function']);

/** The union of the fields of all variants. */
type AnyMessage = Omit<AssistantMessage, 'role'> &
  Omit<ToolMessage, 'role'> &
  Omit<DeveloperMessage, 'role'> & { readonly role: string };

/**
 * Normalizes messages. A `function_call` becomes a tool call with an id made of its index, and a message with the role
 * `function` becomes its result.
 */
export function normalizeMessages(messages: readonly Message[]): ChatMessage[] {
  let id: string | null = null; // id of the last `function_call`
  return messages.map((message, index) => {
    const old = oldCallOf(message);
    if (old) id = `call${String(index).padStart(5, '0')}`; // nine letters and digits, as some templates demand
    return normalizeMessage(message, old ? [{ id, function: old }] : callsOf(message), id);
  });
}

/** Copies only the fields of the message's variant, as others were not checked. */
function normalizeMessage(
  message: Message,
  calls: readonly ToolCall[] | null,
  resultOf: string | null,
): ChatMessage {
  const given = message as AnyMessage;
  const { role } = given;
  const isCustom = !KNOWN_ROLES.has(role);
  const speaks = isCustom || role === 'assistant';
  const answers = isCustom || role === 'tool';
  return {
    role: role === 'function' ? 'tool' : role,
    content: toParts(given.content ?? []),
    name: given.name ?? null,
    tool_calls: calls?.length ? calls.map(toToolCall) : null,
    tool_call_id: role === 'function' ? resultOf : answers ? (given.tool_call_id ?? null) : null,
    reasoning: speaks ? given.reasoning || (given.reasoning_content ?? given.reasoning ?? null) : null,
    refusal: role === 'assistant' ? (given.refusal ?? null) : null,
    tools: role === 'developer' ? (given.tools?.map(toFunctionTool) ?? null) : null,
  };
}

/** Returns the tool calls of a message, or null if its variant has none. */
export function callsOf(message: Message): readonly ToolCall[] | null {
  const { role, tool_calls } = message as AnyMessage;
  return role === 'assistant' || !KNOWN_ROLES.has(role) ? (tool_calls ?? null) : null;
}

/** Returns the `function_call` of a message, the older form of calls. */
export function oldCallOf(message: Message): FunctionCall | null {
  return message.role === 'assistant' ? ((message as AssistantMessage).function_call ?? null) : null;
}

/** Returns content of any form as parts. */
export function toParts(content: string | readonly ContentPart[]): ChatContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.flatMap(toPart);
}

/** Normalizes a part. A text part whose text is null counts as absent. */
function toPart(part: ContentPart): ChatContentPart | [] {
  if (typeof part === 'string') return { type: 'text', text: part };
  if (part.type === 'file') return toFile(part);
  const { type } = part;
  if (!Object.hasOwn(TEXT_PART_FIELDS, type)) return { type: 'media', kind: type, part: { ...part } };
  const field = TEXT_PART_FIELDS[type as keyof typeof TEXT_PART_FIELDS];
  const text = (part as Record<string, unknown>)[field] as string | null | undefined;
  return text == null ? [] : { type: 'text', text };
}

/** Normalizes a file. A text file becomes text, headed by its name. */
function toFile(part: FilePart): ChatContentPart {
  const { file_data, filename } = part.file;
  const read = fileText(file_data);
  if (!read || !('text' in read)) return { type: 'media', kind: 'file', part: { ...part } };
  return { type: 'text', text: filename ? `${filename}:\n${read.text}` : read.text };
}

function toToolCall(call: ToolCall): ChatToolCall {
  const called =
    call.type === 'custom'
      ? {
          name: call.custom.name,
          arguments: `{"${CUSTOM_INPUT}": ${JSON.stringify(call.custom.input ?? '')}}`,
        }
      : { name: call.function.name, arguments: call.function.arguments || '{}' };
  return { id: call.id ?? null, type: 'function', function: called };
}
