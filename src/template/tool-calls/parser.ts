/** A model's text, piece by piece -> content and tool calls, independent of the boundaries of the pieces. */
import { ParserRun, TextReader } from '../text-reader.ts';
import { CallSink, type ToolCallIdFactory } from './call-sink.ts';
import type { ToolDefinition } from './context.ts';
import type { ToolCallEvent } from './events.ts';
import { formatRow, type ToolFormat } from './formats.ts';
import { readCalls } from './machine.ts';

/** Options of {@link createToolCallParser}. */
export type ToolCallParserOptions = {
  /** The request's tools. Their schemas type parameters, and their names distinguish calls without markers from text. */
  readonly tools: readonly ToolDefinition[];
  readonly createId: ToolCallIdFactory;
  /** Names of tools that must not be called. Text that calls one is content. */
  readonly refused?: ReadonlySet<string>;
  /** If false, only the first call is reported. Default true. */
  readonly parallel?: boolean;
};

/** Turns the text of one answer into events. */
export type ToolCallParser = {
  /** Parses a piece of text; returns the new events. */
  push(delta: string): ToolCallEvent[];
  /** Ends the text; returns the last events. Call it once. */
  finish(): ToolCallEvent[];
};

/** Creates the parser of one answer. */
export function createToolCallParser(format: ToolFormat, options: ToolCallParserOptions): ToolCallParser {
  const reader = new TextReader();
  const sink = new CallSink(options.createId, options.refused);
  const tools = new Map(options.tools.map((tool) => [tool.function.name, tool.function.parameters]));
  const run = new ParserRun(reader, readCalls({ reader, sink, tools }, formatRow(format).reads));
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
