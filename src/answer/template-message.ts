/** A valid message -> what a chat template reads: plain values under the names that templates use. */
import type { ChatMessage } from '../protocol/index.ts';
import type { MediaMarkers } from './media-markers.ts';

/** `asParts`: the template loops over content parts; else it gets their text, joined by newlines. */
export function toTemplateMessage(
  message: ChatMessage,
  index: number,
  asParts: boolean,
  markers: MediaMarkers,
): Record<string, unknown> {
  const { role, name, tool_calls, tool_call_id, reasoning, tools } = message;
  const made: Record<string, unknown> = { role, content: contentOf(message, index, asParts, markers) };
  if (name !== null) made['name'] = name;
  if (tool_calls !== null) made['tool_calls'] = tool_calls;
  if (tool_call_id !== null) made['tool_call_id'] = tool_call_id;
  if (reasoning !== null) made['reasoning'] = made['reasoning_content'] = reasoning;
  if (tools !== null) made['tools'] = tools;
  return made;
}

/** The text of a message, its parts joined by newlines. */
export function contentText({ content }: ChatMessage): string {
  const [first] = content;
  if (content.length === 1 && first?.type === 'text') return first.text;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

type TextPart = { readonly type: 'text'; readonly text: string };
type Content = string | readonly (TextPart | { readonly type: 'image' })[];

function contentOf(message: ChatMessage, index: number, asParts: boolean, markers: MediaMarkers): Content {
  const { content } = message;
  if (asParts && markers.areWritten)
    return content.map((part, at) => {
      if (part.type === 'text') return { type: 'text', text: markers.hide(part.text) };
      markers.add({ path: `messages.${index}.content.${at}`, part });
      return { type: 'image' };
    });
  if (!content.some(({ type }) => type === 'media'))
    return asParts ? (content as readonly TextPart[]) : contentText(message);
  const text = markedText(message, index, markers);
  return asParts ? [{ type: 'text', text }] : text;
}

/**
 * The text of a message with markers for its media: one text, whatever the template writes for a picture of its own. The
 * projector knows what must stand around one. Newlines join texts, but not beside a medium.
 */
function markedText({ content }: ChatMessage, index: number, markers: MediaMarkers): string {
  let text = '';
  let wasMedium = false;
  for (const [at, part] of content.entries()) {
    const isMedium = part.type === 'media';
    if (!isMedium && !wasMedium && text !== '') text += '\n';
    text += isMedium ? markers.mark({ path: `messages.${index}.content.${at}`, part }) : part.text;
    wasMedium = isMedium;
  }
  return text;
}
