/** The chunks of a chat completion -> the events of the messages API, in their order. */

import type {
  ChatCompletionChunk,
  ChunkChoice,
  ChunkDelta,
  MessageBlockDelta,
  MessageResponseBlock,
  MessageStreamEvent,
  ToolCallDelta,
  Usage,
} from '../../../protocol/index.ts';
import type { ChatCompletionStream } from '../../../protocol/service/index.ts';
import { splitCalls } from '../split-calls.ts';
import { translate } from '../translate.ts';
import { countsOf, emptyMessage, endOf, toUsage, UNSIGNED } from './to-message.ts';

/**
 * Returns the events of the answer to a request for at most `maxTokens` tokens. `idleEvents`: returns events without content for times of
 * silence.
 */
export function toEvents(
  chunks: ChatCompletionStream,
  maxTokens: number,
): { readonly events: AsyncIterator<MessageStreamEvent>; readonly idleEvents: () => MessageStreamEvent[] } {
  const writer = new EventWriter(maxTokens);
  return { events: translate(chunks, writer), idleEvents: () => writer.idle() };
}

/** Every twelfth idle event is more than a ping, because Claude Code waits five minutes at most for another event. */
const PINGS = 12;

const EMPTY_TEXT: MessageResponseBlock = { type: 'text', text: '', citations: [] };

/** Opens and closes blocks when the kind of content changes. */
class EventWriter {
  readonly #maxTokens: number;
  #hasBegun = false;
  #index = -1; // index of the last block
  #open: 'thinking' | 'text' | number | null = null; // kind of the open block, or the index of its call; null if no block is open
  #hasCalls = false;
  #last: ChunkChoice | null = null; // the choice with the reason of the end
  #usage: Usage | null = null;
  #pings = 0; // idle events since the last event
  #events: MessageStreamEvent[] = []; // events that were not taken yet

  constructor(maxTokens: number) {
    this.#maxTokens = maxTokens;
  }

  push(chunk: ChatCompletionChunk): MessageStreamEvent[] {
    this.#usage = chunk.usage ?? this.#usage;
    this.#pings = 0;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      const message = { ...emptyMessage(chunk.id, chunk.model), usage: toUsage(chunk.usage ?? null) };
      this.#events.push({ type: 'message_start', message }, { type: 'ping' });
    }
    const [choice] = chunk.choices;
    if (!choice) return this.#take();
    this.#readDelta(choice.delta);
    if (choice.finish_reason) this.#last = choice;
    return this.#take();
  }

  /** Returns a ping. After several pings it is an empty delta for the open block; a text block is opened if there is none. */
  idle(): MessageStreamEvent[] {
    this.#pings += 1;
    if (!this.#hasBegun || this.#pings % PINGS !== 0) return [{ type: 'ping' }];
    if (this.#open === null) this.#begin('text', EMPTY_TEXT);
    if (this.#open === 'thinking') this.#add({ type: 'thinking_delta', thinking: '' });
    else if (this.#open === 'text') this.#add({ type: 'text_delta', text: '' });
    else this.#add({ type: 'input_json_delta', partial_json: '' });
    return this.#take();
  }

  finish(): MessageStreamEvent[] {
    this.#close();
    const { finish_reason = null, stop_reason } = this.#last ?? {};
    const end = finish_reason
      ? endOf(finish_reason, stop_reason, this.#hasCalls, this.#usage, this.#maxTokens)
      : { stop_reason: 'end_turn' as const, stop_sequence: null };
    const delta = { ...end, stop_details: null, container: null };
    this.#events.push(
      { type: 'message_delta', delta, usage: countsOf(this.#usage) },
      { type: 'message_stop' },
    );
    return this.#take();
  }

  #take(): MessageStreamEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #readDelta({ reasoning, reasoning_content, content, tool_calls }: ChunkDelta): void {
    const [continued, begun] = splitCalls(tool_calls ?? [], this.#open);
    for (const call of continued) this.#addToCall(call);
    const thinking = reasoning ?? reasoning_content;
    if (thinking) {
      this.#begin('thinking', { type: 'thinking', thinking: '', signature: '' });
      this.#add({ type: 'thinking_delta', thinking });
    }
    if (content) {
      this.#begin('text', EMPTY_TEXT);
      this.#add({ type: 'text_delta', text: content });
    }
    for (const call of begun) {
      if (call.id !== undefined) this.#beginCall(call.id, call);
      this.#addToCall(call);
    }
  }

  #beginCall(id: string, { index, function: called }: ToolCallDelta): void {
    this.#hasCalls = true;
    const name = called?.name ?? '';
    const block = { type: 'tool_use' as const, id, name, input: {}, caller: { type: 'direct' as const } };
    this.#begin(index, block);
  }

  #addToCall({ function: called }: ToolCallDelta): void {
    const partial_json = called?.arguments;
    if (partial_json) this.#add({ type: 'input_json_delta', partial_json });
  }

  /** Opens a block unless one of this kind is open. */
  #begin(kind: 'thinking' | 'text' | number, content_block: MessageResponseBlock): void {
    if (this.#open === kind) return;
    this.#close();
    this.#open = kind;
    this.#index += 1;
    this.#events.push({ type: 'content_block_start', index: this.#index, content_block });
  }

  #add(delta: MessageBlockDelta): void {
    this.#events.push({ type: 'content_block_delta', index: this.#index, delta });
  }

  #close(): void {
    if (this.#open === null) return;
    if (this.#open === 'thinking') this.#add({ type: 'signature_delta', signature: UNSIGNED });
    this.#open = null;
    this.#events.push({ type: 'content_block_stop', index: this.#index });
  }
}
