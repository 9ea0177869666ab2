/** Text of one choice, as it comes -> its message: content, reasoning and tool calls, whole or in deltas. */
import { randomInt } from 'node:crypto';
import type { MessagePlan } from '../models/index.ts';
import type { ResponseToolCall, ToolCallDelta } from '../protocol/index.ts';
import { createReasoningParser, type ReasoningParser } from '../reasoning/index.ts';
import {
  createToolCallIds,
  createToolCallParser,
  type ToolCallEvent,
  type ToolCallParser,
} from '../tool-calls/index.ts';
import { CustomInput } from './custom-input.ts';

/** New parts of a message. */
export type MessageDelta = {
  content: string;
  reasoning: string;
  toolCalls: ToolCallDelta[];
};

/** Reads the text of one choice. Deltas joined are the message; the whole and the stream come from the same events. */
export class MessageOut {
  /** Length of the text that ends reasoning; 0: none is looked for. */
  readonly reasoningEndLength: number;
  readonly #tools: ToolCallParser | null;
  readonly #isForced: boolean;
  readonly #reasoning: ReasoningParser | null;
  readonly #includeReasoning: boolean;
  readonly #custom: ReadonlySet<string>;
  readonly #inputs = new Map<number, CustomInput>(); // of calls of custom tools
  readonly #calls = new Map<number, ResponseToolCall>();
  #delta: MessageDelta = { content: '', reasoning: '', toolCalls: [] };
  content = '';
  /** The text of the reasoning, if it is wanted. */
  reasoning = '';
  /** A call was announced but never completed. */
  hasBrokenCall = false;

  constructor({ tools, reasoning, includeReasoning }: MessagePlan) {
    this.#tools =
      tools &&
      createToolCallParser(tools.format, {
        tools: tools.definitions,
        createId: createToolCallIds(tools.format, randomInt),
        refused: tools.refused,
        parallel: tools.parallel,
      });
    this.#reasoning =
      reasoning && createReasoningParser(reasoning.format, { startsInside: reasoning.startsInside });
    this.reasoningEndLength = reasoning?.format.end.length ?? 0;
    this.#custom = tools?.custom ?? new Set();
    this.#isForced = tools?.isForced ?? false;
    this.#includeReasoning = includeReasoning;
  }

  /** Whether anything but plain content is looked for. */
  get isParsed(): boolean {
    return this.#tools !== null || this.#reasoning !== null;
  }

  /** Whether reasoning is told from the answer. */
  get readsReasoning(): boolean {
    return this.#reasoning !== null;
  }

  /** The text so far ends in the words of reasoning, behind the marker that begins it. */
  get isThinking(): boolean {
    return this.#reasoning?.phase() === 'reasoning';
  }

  /** The text so far ends before the answer: inside reasoning, or in a header of harmony. */
  get isReasoning(): boolean {
    return this.#reasoning?.isInside() ?? false;
  }

  get toolCalls(): ResponseToolCall[] {
    return [...this.#calls.values()];
  }

  push(text: string): void {
    if (text === '') return;
    if (!this.#reasoning) return this.#readContent(text);
    for (const event of this.#reasoning.push(text)) this.#readPart(event);
  }

  /** Call it once, when the choice has ended. */
  finish(): void {
    for (const event of this.#reasoning?.finish() ?? []) this.#readPart(event);
    for (const event of this.#tools?.finish() ?? []) this.#readEvent(event);
  }

  /** The parts that came since the last call. */
  takeDelta(): MessageDelta {
    const delta = this.#delta;
    this.#delta = { content: '', reasoning: '', toolCalls: [] };
    return delta;
  }

  #readPart({ kind, text }: { kind: 'reasoning' | 'content'; text: string }): void {
    if (kind === 'content') return this.#readContent(text);
    if (!this.#includeReasoning) return;
    this.reasoning += text;
    this.#delta.reasoning += text;
  }

  #readContent(text: string): void {
    if (!this.#tools) return this.#addContent(text);
    for (const event of this.#tools.push(text)) this.#readEvent(event);
  }

  #readEvent(event: ToolCallEvent): void {
    if (event.kind === 'call_start') this.#startCall(event.index, event.id, event.name);
    else if (event.kind === 'call_arguments') this.#addArguments(event.index, event.delta);
    else if (event.kind === 'call_broken') {
      this.hasBrokenCall = true;
      this.#addContent(event.text);
    } else if (event.kind === 'content' && !this.#isForced) this.#addContent(event.text); // forced: the framing of a call that was cut
  }

  #addContent(text: string): void {
    this.content += text;
    this.#delta.content += text;
  }

  #startCall(index: number, id: string, name: string): void {
    const isCustom = this.#custom.has(name);
    if (isCustom) this.#inputs.set(index, new CustomInput());
    const make = (): ResponseToolCall =>
      isCustom
        ? { id, type: 'custom', custom: { name, input: '' } }
        : { id, type: 'function', function: { name, arguments: '' } };
    this.#calls.set(index, make());
    this.#delta.toolCalls.push({ index, ...make() });
  }

  /** Pieces of one call that are taken together travel in one delta. */
  #addArguments(index: number, json: string): void {
    const call = this.#calls.get(index)!;
    const text = this.#inputs.get(index)?.push(json) ?? json;
    if (text === '') return;
    const last = this.#delta.toolCalls.at(-1);
    const delta = last?.index === index ? last : { index };
    if (delta !== last) this.#delta.toolCalls.push(delta);
    if (call.type === 'custom') {
      call.custom.input += text;
      delta.custom = { ...delta.custom, input: (delta.custom?.input ?? '') + text };
    } else {
      call.function.arguments += text;
      delta.function = { ...delta.function, arguments: (delta.function?.arguments ?? '') + text };
    }
  }
}
