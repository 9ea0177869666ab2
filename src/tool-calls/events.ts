/** Events of a parser -> the whole message. Streams and whole answers use the same events. */

/** What a parser found in the text so far. */
export type ToolCallEvent =
  | { readonly kind: 'content'; readonly text: string }
  /** A call whose name is complete. Its arguments follow. */
  | { readonly kind: 'call_start'; readonly index: number; readonly id: string; readonly name: string }
  /** The next piece of the arguments, JSON text of an object. */
  | { readonly kind: 'call_arguments'; readonly index: number; readonly delta: string }
  /** The arguments are complete and valid JSON. */
  | { readonly kind: 'call_end'; readonly index: number }
  /**
   * A started call never ended: what came of its arguments is all there is. `text`: of a malformed call all that the model wrote,
   * as content; empty where the text ended inside the call.
   */
  | { readonly kind: 'call_broken'; readonly index: number; readonly text: string };

/** One call. Of a broken one, the arguments are not complete. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string };

/** The message of a list of events. */
export type ToolCallMessage = {
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  /** Whether a call was announced and never completed. */
  readonly hasBrokenCall: boolean;
};

/** Joins events to a message. */
export function foldToolCallEvents(events: Iterable<ToolCallEvent>): ToolCallMessage {
  let content = '';
  let hasBrokenCall = false;
  const calls = new Map<number, { id: string; name: string; arguments: string }>();
  for (const event of events) {
    switch (event.kind) {
      case 'content':
        content += event.text;
        break;
      case 'call_start':
        calls.set(event.index, { id: event.id, name: event.name, arguments: '' });
        break;
      case 'call_arguments':
        calls.get(event.index)!.arguments += event.delta;
        break;
      case 'call_end':
        break;
      case 'call_broken':
        content += event.text;
        hasBrokenCall = true;
        break;
      default:
        event satisfies never;
    }
  }
  return { content, toolCalls: [...calls.values()], hasBrokenCall };
}
