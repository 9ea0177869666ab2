/** A message -> the value that a chat template reads: plain values under the names and in the forms that this template takes. */
import { isObject, parseJson } from '../common/index.ts';
import type { ChatMessage, ChatToolCall } from '../protocol/index.ts';
import { callsText, type ToolFormat } from '../template/tool-calls/index.ts';
import type { PlacedMessage, PlacedPart } from './arrange-messages.ts';
import type { CallIds } from './call-ids.ts';
import type { CallTraits } from './call-traits.ts';
import type { MediaMarkers } from './media-markers.ts';
import { textPart } from './template-probe.ts';
import type { ContentForm, TemplateTraits } from './template-traits.ts';

/** Shared context of the messages of one chat. */
export type MessageContext = {
  readonly traits: TemplateTraits;
  /** Format in which the model writes calls. */
  readonly toolFormat: ToolFormat;
  readonly markers: MediaMarkers;
  /** True if the template itself writes the placeholders of media. */
  readonly writesMedia: boolean;
  /** Null for a chat without calls and results. */
  readonly ids: CallIds | null;
};

type Fields = Record<string, unknown>;

/** Converts a message. `isContinued`: the answer continues this message, so that its content stays a string. */
export function toTemplateMessage(
  message: PlacedMessage,
  context: MessageContext,
  isContinued: boolean,
): Fields {
  const { role, name, tool_calls, tool_call_id, reasoning, tools } = message;
  const { traits, ids } = context;
  const made: Fields = { role, content: contentOf(message, context) };
  if (name !== null) made['name'] = name;
  if (tool_calls !== null && !traits.calls.showsCalls)
    made['content'] = withCalls(message, tool_calls, context);
  else if (tool_calls !== null) {
    const { emptyContent } = traits.calls;
    if (message.content.every(isEmptyText) && !isContinued) {
      if (emptyContent === undefined) delete made['content'];
      else made['content'] = emptyContent;
    }
    made['tool_calls'] = tool_calls.map((call) => toTemplateCall(call, context));
  }
  if (role === 'tool') Object.assign(made, ids?.resultFields(message.index));
  else if (tool_call_id !== null) made['tool_call_id'] = tool_call_id;
  if (reasoning !== null) addReasoning(made, reasoning, traits.calls, isContinued);
  if (tools !== null) made['tools'] = tools;
  return made;
}

/** Returns the content of a message with its calls as text, for a template that shows no calls. */
function withCalls(
  message: PlacedMessage,
  calls: readonly ChatToolCall[],
  { traits, toolFormat, markers, writesMedia }: MessageContext,
): unknown {
  const written = callsText(
    toolFormat,
    calls.map((call) => call.function),
  );
  const text = [contentText(message), written].filter((part) => part !== '').join('\n');
  return inForm(traits.formOf(message.role), writesMedia ? markers.hide(text) : text);
}

/** Returns the text of a message, its parts joined by newlines. */
export function contentText({ content }: Pick<ChatMessage, 'content'>): string {
  const [first] = content;
  if (content.length === 1 && first?.type === 'text') return first.text;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

function isEmptyText(part: PlacedPart): boolean {
  return part.type === 'text' && part.text === '';
}

function contentOf(message: PlacedMessage, { traits, markers, writesMedia }: MessageContext): unknown {
  const { content, index } = message;
  const form = traits.formOf(message.role);
  const hasMedia = content.some(({ type }) => type === 'media');
  if (!hasMedia || !writesMedia) {
    if (!hasMedia && content.length > 1 && form.list && content.every((part) => 'text' in part))
      return content.map((part) => textPart(markers.hide(part.text)));
    const text = hasMedia ? markedText(message, markers) : contentText(message);
    return inForm(form, writesMedia ? markers.hide(text) : text);
  }
  return content.map((part, at) => {
    if (part.type === 'text') return textPart(markers.hide(part.text));
    markers.add({ path: part.path ?? `messages.${index}.content.${at}`, part });
    return { type: 'image' };
  });
}

function inForm(form: ContentForm, text: string): unknown {
  return form.text || !form.list ? text : [textPart(text)];
}

/**
 * Returns the text of a message with markers for its media, as one string. The template's own placeholder is not used: the projector adds
 * the tokens around a medium. Texts are joined by newlines, except beside a medium.
 */
function markedText({ content, index }: PlacedMessage, markers: MediaMarkers): string {
  let text = '';
  let wasMedium = false;
  for (const [at, part] of content.entries()) {
    const isMedium = part.type === 'media';
    if (!isMedium && !wasMedium && text !== '') text += '\n';
    text += isMedium
      ? markers.mark({ path: part.path ?? `messages.${index}.content.${at}`, part })
      : part.text;
    wasMedium = isMedium;
  }
  return text;
}

/**
 * Converts a call. Arguments stay JSON text, which the renderer parses. If the text is not a JSON object, it becomes the one field of an
 * object, unless the template shows such text unchanged.
 */
function toTemplateCall(call: ChatToolCall, { traits: { calls }, ids }: MessageContext): Fields {
  const { name, arguments: text } = call.function;
  const isWrapped = !calls.showsBroken && !isObject(parseJson(text));
  return {
    ...call,
    id: ids?.idOf(call) ?? null,
    function: { name, arguments: isWrapped ? { arguments: text } : text },
  };
}

/** Adds the reasoning under the names that the template reads. */
function addReasoning(made: Fields, given: string, calls: CallTraits, isContinued: boolean): void {
  const { reasoning: form, joinsContent, emptyContent } = calls;
  const { content } = made;
  let text = given;
  if (form === 'part' && text !== '' && !isContinued) {
    const rest = typeof content === 'string' ? (content === '' ? [] : [textPart(content)]) : (content ?? []);
    made['content'] = [{ type: 'thinking', thinking: text }, ...(rest as readonly unknown[])];
    return;
  }
  if (
    joinsContent &&
    text !== '' &&
    made['tool_calls'] !== undefined &&
    typeof content === 'string' &&
    content !== ''
  ) {
    text = `${text}\n\n${content}`;
    made['content'] = emptyContent ?? '';
  }
  made['reasoning'] = made['reasoning_content'] = text;
  if (form === 'thinking' && text !== '') made['thinking'] = text;
}
