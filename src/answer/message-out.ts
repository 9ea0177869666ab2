/** Text of one choice, piece by piece -> its message: content, reasoning and tool calls, whole or in deltas. */

import { randomInt } from 'node:crypto';
import type { ResponseToolCall, ToolCallDelta } from '../protocol/index.ts';
import type { MessagePlan } from '../template/chat-format/index.ts';
import { createReasoningParser, type ReasoningParser } from '../template/reasoning/index.ts';
import {
  createToolCallIds,
  createToolCallParser,
  type ToolCallEvent,
  type ToolCallParser,
} from '../template/tool-calls/index.ts';
import { CustomInput } from './custom-input.ts';

/** New parts of a message. */
export type MessageDelta = {
  content: string;
  reasoning: string;
  toolCalls: ToolCallDelta[];
};

/** Reads the text of one choice. The deltas joined are the message: both are built from the same events. */
export class MessageOut {
  /** Length of the text that ends reasoning; 0 if reasoning is not parsed. */
  readonly reasoningEndLength: number;
  readonly #tools: ToolCallParser | null;
  readonly #isForced: boolean;
  readonly #reasoning: ReasoningParser | null;
  readonly #includeReasoning: boolean;
  readonly #custom: ReadonlySet<string>;
  readonly #inputs = new Map<number, CustomInput>(); // by index, for calls of custom tools
  readonly #calls = new Map<number, ResponseToolCall>();
  #delta: MessageDelta = { content: '', reasoning: '', toolCalls: [] };
  content = '';
  /** The text of the reasoning. Empty if the request excludes it. */
  reasoning = '';
  /** True if a call was begun but never completed. */
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
      reasoning &&
      createReasoningParser(reasoning.format, {
        startsInside: reasoning.startsInside,
        calls: tools && { format: tools.format, tools: tools.definitions },
      });
    this.reasoningEndLength = reasoning?.format.end.length ?? 0;
    this.#custom = tools?.custom ?? new Set();
    this.#isForced = tools?.isForced ?? false;
    this.#includeReasoning = includeReasoning;
  }

  /** True if the text is parsed for calls or reasoning. */
  get isParsed(): boolean {
    return this.#tools !== null || this.#reasoning !== null;
  }

  /** True if reasoning is separated from the answer. */
  get readsReasoning(): boolean {
    return this.#reasoning !== null;
  }

  /** True if the text so far ends inside reasoning, behind the marker that begins it. */
  get isThinking(): boolean {
    return this.#reasoning?.phase() === 'reasoning';
  }

  /** True if the text so far ends before the answer: inside reasoning, or in a header of harmony. */
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

  /** Ends the parsers. Call it once, when the choice has ended. */
  finish(): void {
    for (const event of this.#reasoning?.finish() ?? []) this.#readPart(event);
    for (const event of this.#tools?.finish() ?? []) this.#readEvent(event);
  }

  /** Returns the parts added since the last call. */
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
    } else if (event.kind === 'content' && !this.#isForced) this.#addContent(event.text); // forced: the framing of a cut call
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

  /** Adds arguments. Pieces of the same call that are taken together form one delta. */
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
