/** The deltas of one choice -> its message, as far as it was received. */
import type { ChunkDelta, ResponseFunctionCall, ResponseToolCall, ToolCallDelta } from '../index.ts';

/** Joins the deltas of one choice. */
export class JoinedMessage {
  #content = '';
  #reasoning = '';
  readonly #calls: ResponseToolCall[] = [];
  #functionCall: ResponseFunctionCall | null = null;

  add({ content, reasoning, reasoning_content, tool_calls: calls, function_call: called }: ChunkDelta): void {
    if (content) this.#content += content;
    const thought = reasoning ?? reasoning_content;
    if (thought) this.#reasoning += thought;
    if (calls)
      for (const delta of calls) this.#calls[delta.index] = grownCall(this.#calls[delta.index], delta);
    if (!called) return;
    const { name, arguments: text } = this.#functionCall ?? { name: '', arguments: '' };
    this.#functionCall = { name: name + (called.name ?? ''), arguments: text + (called.arguments ?? '') };
  }

  /** The text. Null if it is empty and the message has reasoning or calls. */
  get content(): string | null {
    const isElsewhere = this.#reasoning !== '' || this.#calls.length > 0 || this.#functionCall !== null;
    return this.#content || (isElsewhere ? null : '');
  }

  /** The reasoning, or null if there is none. */
  get reasoning(): string | null {
    return this.#reasoning || null;
  }

  /** A copy of the list of calls. */
  get calls(): ResponseToolCall[] {
    return this.#calls.slice();
  }

  /** The call if the request had `functions`, or null if there is none. */
  get functionCall(): ResponseFunctionCall | null {
    return this.#functionCall;
  }
}

function grownCall(call: ResponseToolCall | undefined, delta: ToolCallDelta): ResponseToolCall {
  const id = delta.id ?? call?.id ?? '';
  if (call?.type === 'custom' || delta.type === 'custom') {
    const { name, input } = call?.type === 'custom' ? call.custom : { name: '', input: '' };
    const { custom } = delta;
    return {
      id,
      type: 'custom',
      custom: { name: custom?.name ?? name, input: input + (custom?.input ?? '') },
    };
  }
  const { name, arguments: text } = call?.function ?? { name: '', arguments: '' };
  const { function: called } = delta;
  return {
    id,
    type: 'function',
    function: { name: called?.name ?? name, arguments: text + (called?.arguments ?? '') },
  };
}
