/** A valid message -> what a chat template reads: plain values under the names that templates use. */
import { OnpolicyError } from './errors.ts';
import type { ChatMessage, ChatToolCall } from './protocol/index.ts';

/** `asParts`: the template loops over content parts; else it gets their text, joined by newlines. */
export function toTemplateMessage(
  message: ChatMessage,
  index: number,
  asParts: boolean,
): Record<string, unknown> {
  const { role, name, tool_calls, tool_call_id, reasoning, tools } = message;
  return {
    role,
    content: asParts ? contentParts(message, index) : contentText(message, index),
    ...(name === null ? {} : { name }),
    ...(tool_calls === null ? {} : { tool_calls: tool_calls.map(parseArguments) }),
    ...(tool_call_id === null ? {} : { tool_call_id }),
    ...(reasoning === null ? {} : { reasoning, reasoning_content: reasoning }),
    ...(tools === null ? {} : { tools }),
  };
}

/** The text of a message, its parts joined by newlines. */
export function contentText(message: ChatMessage, index: number): string {
  return contentParts(message, index)
    .map(({ text }) => text)
    .join('\n');
}

function contentParts(message: ChatMessage, index: number): { type: 'text'; text: string }[] {
  return message.content.map((part, at) => {
    if (part.type === 'text') return part;
    throw new OnpolicyError(
      'UNSUPPORTED',
      `messages.${index}.content.${at}: this model takes text only, got a part of type ${part.kind}`,
      { param: `messages.${index}.content.${at}` },
    );
  });
}

/** Templates want arguments as an object; text that is no JSON object stays text. */
function parseArguments(call: ChatToolCall): unknown {
  let parsed: unknown = call.function.arguments;
  try {
    parsed = JSON.parse(call.function.arguments);
  } catch {
    // an earlier answer that was cut short is still worth showing to the model
  }
  return { ...call, function: { ...call.function, arguments: parsed } };
}
