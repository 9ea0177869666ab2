/** A valid message -> what a chat template reads: plain values under the names that templates use. */
import { OnpolicyError } from '../errors.ts';
import type { ChatMessage } from '../protocol/index.ts';

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
    ...(tool_calls === null ? {} : { tool_calls }),
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
