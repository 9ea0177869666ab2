/** Events of a parser -> the whole message. */
import type { ToolCallEvent } from '../../../src/template/tool-calls/index.ts';

/** One call. Of a broken one, the arguments are not complete. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string };

/** The message of a list of events. */
export type ToolCallMessage = {
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  /** True if a call was announced but not completed. */
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
