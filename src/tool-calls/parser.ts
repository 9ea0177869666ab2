/** model text -> content and tool calls, on a growing prefix: how the text is cut into deltas changes nothing. */
import { ParserRun, TextReader } from '../common/index.ts';
import { CallSink, type ToolCallIdFactory } from './call-sink.ts';
import type { ToolDefinition } from './context.ts';
import type { ToolCallEvent } from './events.ts';
import { familyOf, type ToolFormat } from './formats.ts';
import { readCalls } from './machine.ts';

/** Options of {@link createToolCallParser}. */
export type ToolCallParserOptions = {
  /** The request's tools: their schemas give untyped parameters a type, and their names tell bare calls from text. */
  readonly tools: readonly ToolDefinition[];
  readonly createId: ToolCallIdFactory;
  /** false: only the first call is reported. Default true. */
  readonly parallel?: boolean;
};

/** Turns the text of one answer into events. */
export type ToolCallParser = {
  /** The events that this piece of text settles. */
  push(delta: string): ToolCallEvent[];
  /** The events of what was still open. Call it once, at the end of generation. */
  finish(): ToolCallEvent[];
};

/** Creates the parser of one answer. */
export function createToolCallParser(format: ToolFormat, options: ToolCallParserOptions): ToolCallParser {
  const reader = new TextReader();
  const sink = new CallSink(options.createId);
  const tools = new Map(options.tools.map((tool) => [tool.function.name, tool.function.parameters]));
  const run = new ParserRun(reader, readCalls({ reader, sink, tools }, familyOf(format)));
  const takeEvents = (): ToolCallEvent[] => {
    const events = sink.takeEvents();
    return options.parallel === false
      ? events.filter((event) => !('index' in event) || event.index === 0)
      : events;
  };
  return {
    push(delta) {
      run.push(delta);
      return takeEvents();
    },
    finish() {
      run.finish();
      return takeEvents();
    },
  };
}
