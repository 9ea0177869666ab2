/** A text cut into deltas -> the events of a parser, joined to a message. */
import {
  createReasoningParser,
  REASONING_FORMATS,
  type ReasoningFormatName,
} from '../../../src/template/reasoning/index.ts';
import {
  createToolCallParser,
  type ToolCallEvent,
  type ToolDefinition,
  type ToolFormat,
} from '../../../src/template/tool-calls/index.ts';
import { foldToolCallEvents, type ToolCallMessage } from './fold.ts';

export const TOOLS: readonly ToolDefinition[] = [
  {
    function: {
      name: 'get_weather',
      parameters: {
        type: 'object',
        properties: {
          city: { type: 'string' },
          days: { type: 'integer' },
          exact: { type: 'boolean' },
          limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
          tags: { type: 'array', items: { type: 'string' } },
          filter: { type: 'object' },
        },
      },
    },
  },
  {
    function: { name: 'get_time', parameters: { type: 'object', properties: { zone: { type: 'string' } } } },
  },
];

/** All events of a text that comes in these pieces. */
export function eventsOf(
  format: ToolFormat,
  deltas: readonly string[],
  tools: readonly ToolDefinition[] = TOOLS,
): ToolCallEvent[] {
  const parser = createToolCallParser(format, { tools, createId: ({ index }) => `id${index}` });
  return [...deltas.flatMap((delta) => parser.push(delta)), ...parser.finish()];
}

/** The message of a whole text. */
export function messageOf(
  format: ToolFormat,
  text: string,
  tools: readonly ToolDefinition[] = TOOLS,
): ToolCallMessage {
  return foldToolCallEvents(eventsOf(format, [text], tools));
}

/** The message of a whole answer. In formats whose messages have headers, the parser of reasoning reads these first. */
export function answerOf(format: ToolFormat, text: string): ToolCallMessage {
  const framing = REASONING_FORMATS[format as ReasoningFormatName];
  if (framing?.kind !== 'messages') return messageOf(format, text);
  const framed = createReasoningParser(framing, { startsInside: false, calls: { format, tools: TOOLS } });
  const events = [...framed.push(text), ...framed.finish()];
  const content = events.map((event) => (event.kind === 'content' ? event.text : '')).join('');
  return messageOf(format, content);
}

/** Calls as name and parsed arguments. */
export function callsOf(message: ToolCallMessage): [string, unknown][] {
  return message.toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]);
}

/** Cuts a text at the given places. */
export function cut(text: string, places: readonly number[]): string[] {
  const at = [...new Set([0, ...places.map((place) => place % (text.length + 1)), text.length])].sort(
    (a, b) => a - b,
  );
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}
