/** The chunks of a chat completion -> the numbered events of the responses API, in their order. */

import { messageOf, OnpolicyError } from '../../../errors.ts';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ResponseEventBody,
  ResponseMessageOutput,
  ResponseObject,
  ResponseOutputItem,
  ResponseReasoningOutput,
  ResponseRequest,
  ResponseStreamEvent,
  TokenLogprob,
  ToolCallDelta,
  Usage,
} from '../../../protocol/index.ts';
import type { ChatCompletionStream } from '../../../protocol/service/index.ts';
import { splitCalls } from '../split-calls.ts';
import { translate } from '../translate.ts';
import {
  beginResponse,
  endResponse,
  newItem,
  sealedThoughts,
  type ThoughtsPart,
  textPart,
  thoughtsOf,
  thoughtsPart,
} from './to-response.ts';
import { type CalledTool, namesOfTools } from './tools.ts';

/**
 * Returns the events of a stream. If the answer fails after it has begun, `response.failed` is sent before the error is thrown. `onEnd`
 * takes the whole response before its last event. `idleEvents`: returns events without content for times of silence.
 */
export function toEvents(
  chunks: ChatCompletionStream,
  request: ResponseRequest,
  onEnd: (response: ResponseObject) => void,
): {
  readonly events: AsyncIterator<ResponseStreamEvent>;
  readonly idleEvents: () => ResponseStreamEvent[];
} {
  const writer = new EventWriter(request);
  let next = 0;
  const numbered = (events: ResponseEventBody[]): ResponseStreamEvent[] =>
    events.map((event) => ({ ...event, sequence_number: next++ }));
  const events = translate(chunks, {
    push: (chunk: ChatCompletionChunk) => numbered(writer.push(chunk)),
    finish: () => numbered(writer.finish(onEnd)),
    fail: (error) => numbered(writer.fail(error)),
  });
  return { events, idleEvents: () => numbered(writer.idle()) };
}

/** Returns the response of a whole answer. */
export function toResponse(
  { id, created, model, usage, choices }: ChatCompletion,
  request: ResponseRequest,
): ResponseObject {
  const { message, logprobs, finish_reason } = choices[0]!;
  const { content, reasoning, tool_calls } = message;
  const calls = tool_calls.map((call, index) => ({ ...call, index }));
  const choice = { index: 0, delta: { content, reasoning, tool_calls: calls }, logprobs, finish_reason };
  const writer = new EventWriter(request);
  writer.push({ id, object: 'chat.completion.chunk', created, model, choices: [choice], usage });
  let whole: ResponseObject | null = null;
  writer.finish((response) => {
    whole = response;
  });
  return whole!;
}

/** Returns the events of a stored response, with one delta for each of its texts. */
export function replayEvents(response: ResponseObject): ResponseStreamEvent[] {
  const { reasoning, output } = response;
  const isSealed = output.some((item) => 'encrypted_content' in item);
  const include = isSealed ? ['reasoning.encrypted_content'] : [];
  const events = new EventWriter({ input: [], reasoning, include }).replay(response);
  return events.map((event, i) => ({ ...event, sequence_number: i }));
}

/** Opens and closes items when the kind of content changes. */
class EventWriter {
  readonly #request: ResponseRequest;
  readonly #called: (name: string) => CalledTool;
  readonly #output: ResponseOutputItem[] = [];
  #response: ResponseObject | null = null;
  #open: ResponseOutputItem | null = null; // the last item, until it is complete
  #call = -1; // index of the open call
  #events: ResponseEventBody[] = [];
  #isCut = false;
  #usage: Usage | null = null;

  constructor(request: ResponseRequest) {
    this.#request = request;
    this.#called = namesOfTools(request.tools);
  }

  push(chunk: ChatCompletionChunk): ResponseEventBody[] {
    this.#usage = chunk.usage ?? this.#usage;
    if (!this.#response) this.#start(beginResponse(this.#request, chunk));
    const [choice] = chunk.choices;
    if (choice) this.#readChoice(choice);
    return this.#take();
  }

  /** Returns an event which shows that the response is still running. Returns none before it has begun. */
  idle(): ResponseEventBody[] {
    return this.#response ? [{ type: 'response.in_progress', response: this.#response }] : [];
  }

  finish(onEnd: (response: ResponseObject) => void): ResponseEventBody[] {
    if (this.#output.length === 0) this.#beginText(newMessage()); // an empty answer
    this.#close();
    const response = endResponse(this.#response!, this.#output, this.#isCut, this.#usage);
    onEnd(response);
    return this.#end(response);
  }

  /** Returns the events of a response that has ended. */
  replay(response: ResponseObject): ResponseEventBody[] {
    const begun = {
      status: 'in_progress',
      completed_at: null,
      incomplete_details: null,
      usage: null,
    } as const;
    this.#start({ ...response, ...begun, output: [], output_text: '' });
    for (const item of response.output) {
      this.#close();
      this.#isCut = item.status === 'incomplete';
      const status = 'in_progress' as const;
      if (item.type === 'reasoning') this.#addReasoning(thoughtsOf(item), item.id);
      else if (item.type === 'message') {
        this.#beginText({ ...item, status, content: [] });
        for (const { text, logprobs } of item.content) this.#addText(text, logprobs);
      } else if (item.type === 'custom_tool_call') {
        this.#begin({ ...item, status, input: '' });
        this.#addToCall({ custom: { input: item.input } });
      } else {
        this.#begin({ ...item, status, arguments: '' });
        this.#addToCall({ function: { arguments: item.arguments } });
      }
    }
    this.#close();
    return this.#end(response);
  }

  #start(response: ResponseObject): void {
    this.#response = response;
    this.#events.push({ type: 'response.created', response }, { type: 'response.in_progress', response });
  }

  #end(response: ResponseObject): ResponseEventBody[] {
    const isCut = response.status === 'incomplete';
    this.#events.push({ type: isCut ? 'response.incomplete' : 'response.completed', response });
    return this.#take();
  }

  /** Returns the events of a failure. Returns none if the answer has not begun, or its reader has stopped it. */
  fail(error: unknown): ResponseEventBody[] {
    const isStopped = error instanceof OnpolicyError && error.code === 'ABORTED';
    if (!this.#response || isStopped) return [];
    const isOverflow = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
    const code = (isOverflow ? 'context_length_exceeded' : 'server_error') as 'server_error'; // OpenAI sends it, but its types lack it
    const response = {
      ...this.#response,
      status: 'failed' as const,
      error: { code, message: messageOf(error) },
      output: this.#output,
    };
    return [{ type: 'response.failed', response }];
  }

  #take(): ResponseEventBody[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #readChoice({ delta, logprobs, finish_reason }: ChatCompletionChunk['choices'][number]): void {
    const [continued, begun] = splitCalls(delta.tool_calls ?? [], this.#isInCall ? this.#call : null);
    for (const call of continued) this.#addToCall(call);
    const reasoning = delta.reasoning ?? delta.reasoning_content;
    if (reasoning) this.#addReasoning(reasoning);
    if (delta.content) this.#addText(delta.content, logprobs?.content ?? []);
    for (const call of begun) {
      if (!this.#isInCall || call.index !== this.#call) this.#beginCall(call);
      this.#addToCall(call);
    }
    if (finish_reason) this.#isCut = finish_reason === 'length';
  }

  #begin<Item extends ResponseOutputItem>(item: Item): Item {
    this.#close();
    this.#open = item;
    this.#output.push(item);
    const shown = {
      ...item,
      ...('content' in item ? { content: [] } : {}),
      ...('summary' in item ? { summary: [] } : {}),
    };
    this.#events.push({ type: 'response.output_item.added', output_index: this.#index, item: shown });
    return item;
  }

  get #index(): number {
    return this.#output.length - 1;
  }

  #place(item: ResponseOutputItem): { item_id: string; output_index: number; content_index: number } {
    return { item_id: item.id, output_index: this.#index, content_index: 0 };
  }

  #addReasoning(delta: string, id?: string): void {
    let item = this.#open;
    if (item?.type !== 'reasoning') {
      const begun = newItem('reasoning', { summary: [], content: [] });
      item = this.#begin({ ...begun, ...(id === undefined ? {} : { id }) });
      this.#pushThoughts('added', item, thoughtsPart(item, this.#request));
    }
    const [part] = item.content.length > 0 ? item.content : item.summary;
    part!.text += delta;
    const { content_index, ...place } = this.#place(item);
    this.#events.push(
      part!.type === 'summary_text'
        ? { type: 'response.reasoning_summary_text.delta', ...place, summary_index: 0, delta }
        : { type: 'response.reasoning_text.delta', ...place, content_index, delta },
    );
  }

  /** Adds the event that the one part of the thoughts begins or is complete. */
  #pushThoughts(what: 'added' | 'done', item: ResponseReasoningOutput, { type, text }: ThoughtsPart): void {
    const { content_index, ...at } = this.#place(item);
    this.#events.push(
      type === 'summary_text'
        ? { type: `response.reasoning_summary_part.${what}`, ...at, summary_index: 0, part: { type, text } }
        : { type: `response.content_part.${what}`, ...at, content_index, part: { type, text } },
    );
  }

  #beginText(message: ResponseMessageOutput): ResponseMessageOutput {
    const item = this.#begin(message);
    item.content.push(textPart('', []));
    this.#events.push({ type: 'response.content_part.added', ...this.#place(item), part: textPart('', []) });
    return item;
  }

  #addText(delta: string, logprobs: TokenLogprob[]): void {
    const item = this.#open?.type === 'message' ? this.#open : this.#beginText(newMessage());
    const part = item.content[0]!;
    part.text += delta;
    part.logprobs.push(...logprobs);
    this.#events.push({ type: 'response.output_text.delta', ...this.#place(item), delta, logprobs });
  }

  get #isInCall(): boolean {
    return this.#open?.type === 'function_call' || this.#open?.type === 'custom_tool_call';
  }

  #beginCall({ index, id, type, function: called, custom }: ToolCallDelta): void {
    this.#call = index;
    const tool = this.#called(custom?.name ?? called?.name ?? '');
    const call = { call_id: id ?? '', ...tool };
    if (type === 'custom') this.#begin(newItem('custom_tool_call', { ...call, input: '' }));
    else this.#begin(newItem('function_call', { ...call, arguments: '' }));
  }

  #addToCall({ function: called, custom }: Pick<ToolCallDelta, 'function' | 'custom'>): void {
    const delta = called?.arguments ?? custom?.input;
    if (!delta) return;
    const item = this.#open;
    if (item?.type === 'function_call') item.arguments += delta;
    else if (item?.type === 'custom_tool_call') item.input += delta;
    else return;
    const type =
      item.type === 'function_call'
        ? 'response.function_call_arguments.delta'
        : 'response.custom_tool_call_input.delta';
    const { item_id, output_index } = this.#place(item);
    this.#events.push({ type, item_id, output_index, delta });
  }

  #close(): void {
    const item = this.#open;
    if (!item) return;
    this.#open = null;
    item.status = this.#isCut ? 'incomplete' : 'completed';
    const place = this.#place(item);
    if (item.type === 'reasoning') {
      const [part] = item.content.length > 0 ? item.content : item.summary;
      const { text } = part!;
      const { content_index, ...at } = place;
      this.#events.push(
        part!.type === 'summary_text'
          ? { type: 'response.reasoning_summary_text.done', ...at, summary_index: 0, text }
          : { type: 'response.reasoning_text.done', ...at, content_index, text },
      );
      this.#pushThoughts('done', item, part!);
      Object.assign(item, sealedThoughts(item, this.#request));
    } else if (item.type === 'message') {
      const part = { ...item.content[0]! };
      this.#events.push(
        { type: 'response.output_text.done', ...place, text: part.text, logprobs: part.logprobs },
        { type: 'response.content_part.done', ...place, part },
      );
    } else {
      const { item_id, output_index } = place;
      const at = { item_id, output_index };
      this.#events.push(
        item.type === 'function_call'
          ? {
              type: 'response.function_call_arguments.done',
              ...at,
              name: item.name,
              arguments: item.arguments,
            }
          : { type: 'response.custom_tool_call_input.done', ...at, input: item.input },
      );
    }
    this.#events.push({
      type: 'response.output_item.done',
      output_index: place.output_index,
      item: { ...item },
    });
  }
}

function newMessage(): ResponseMessageOutput {
  return newItem('message', { role: 'assistant', content: [] });
}
