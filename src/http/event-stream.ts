/** Chunks of a completion <-> server-sent events. Nothing is made before the reader asks for it. */
import { createParser } from 'eventsource-parser';
import type { ChatCompletionStream } from '../answer/index.ts';
import { iterateBatches } from '../common/index.ts';
import { messageOf, OnpolicyError } from '../errors.ts';
import type { ChatCompletionChunk } from '../protocol/index.ts';
import { decodeWhole, NO_BYTES } from '../tokenizer/index.ts';
import type { OpenResponse } from './transport.ts';
import { fromWireError, toWireError } from './wire-errors.ts';

const END = '[DONE]';

/** How a stream ended; `left`: its reader went away. */
export type Outcome = 'complete' | 'failed' | 'left';

/** What an event stream tells of itself. */
export type EventStreamHooks = {
  /** Ends the request when it fires: a reader hears the reason as an event, one who has stopped reading is cut off. */
  readonly signal: AbortSignal;
  /** What to send for an error. */
  readonly toError: (error: unknown) => OnpolicyError;
  /** The stream is over, whichever way. */
  readonly onEnd: (outcome: Outcome) => void;
};

/** Events as they go over the wire. */
export type EventStream = {
  /** The next event; null after the last. One call at a time. */
  readonly read: () => Promise<string | null>;
  /** The reader has left: ends the request. */
  readonly leave: () => void;
  /** Whom to call when a reader who has stopped reading is to be cut off. */
  readonly onCut: (callback: (reason: unknown) => void) => void;
};

/** Chunks -> events: one each, then `[DONE]`; an error is an event, too. */
export function toEventStream(
  chunks: ChatCompletionStream,
  { signal, toError, onEnd }: EventStreamHooks,
): EventStream {
  const iterator = chunks[Symbol.asyncIterator]();
  let isOver = false;
  let isReading = false;
  let isCut = false;
  let cut: (reason: unknown) => void = () => {};
  const finish = (outcome: Outcome): void => {
    isOver = true;
    signal.removeEventListener('abort', onAbort);
    onEnd(outcome);
  };
  const onAbort = (): void => {
    if (isReading || isOver) return; // the chunks themselves will end with the error
    isCut = true;
    finish(outcomeOf(signal.reason));
    chunks.abort();
    cut(signal.reason);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  return {
    async read() {
      if (isOver) return null;
      isReading = true;
      let text: string;
      let outcome: Outcome | null = null;
      try {
        const { done, value } = await iterator.next();
        text = done ? event(END) : event(JSON.stringify(value));
        if (done) outcome = 'complete';
      } catch (error) {
        const shown = toError(error);
        text = event(JSON.stringify({ error: toWireError(shown) })) + event(END);
        outcome = outcomeOf(shown);
      }
      isReading = false;
      if (isOver) return null; // the reader has left meanwhile
      if (outcome !== null) finish(outcome);
      return text;
    },
    leave() {
      if (isOver) return;
      finish('left');
      chunks.abort();
    },
    onCut(callback) {
      cut = callback;
      if (isCut) callback(signal.reason);
    },
  };
}

function outcomeOf(error: unknown): Outcome {
  return error instanceof OnpolicyError && error.code === 'ABORTED' ? 'left' : 'failed';
}

function event(data: string): string {
  return `data: ${data}\n\n`;
}

/** May stand before the first event, and is none of it. */
const BYTE_ORDER_MARK = /^\uFEFF/;

/** Events -> chunks. Throws what an event or the stream itself says went wrong; a stream without its end is broken. */
export function fromEventStream({
  response,
  stop,
  toError,
  end,
}: OpenResponse): AsyncIterator<ChatCompletionChunk> {
  const ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => ready.push(data) });
  let open = NO_BYTES; // bytes of a character that is not complete
  let hasBegun = false;
  const parts = response.body[Symbol.asyncIterator]();
  let isOver = false;
  let failure: OnpolicyError | null = null;
  const finish = (rest: Promise<unknown> | undefined): void => {
    isOver = true;
    end();
    rest?.catch(() => {});
  };
  return iterateBatches({
    next: async () => {
      if (failure) throw failure;
      if (isOver) return null;
      const chunks: ChatCompletionChunk[] = [];
      try {
        const { done, value } = await parts.next();
        if (done) throw new OnpolicyError('NETWORK_FAILED', 'the stream broke off before its end');
        const decoded = decodeWhole(open, value);
        open = decoded.open;
        parser.feed(hasBegun ? decoded.text : decoded.text.replace(BYTE_ORDER_MARK, ''));
        hasBegun ||= decoded.text !== '';
        for (const data of ready.splice(0)) {
          if (data === END) {
            finish(readRest(parts, stop));
            break;
          }
          chunks.push(toChunk(data));
        }
      } catch (error) {
        finish(parts.return?.());
        failure = toError(error); // after the chunks that came before it
      }
      return chunks;
    },
    leave: () => finish(parts.return?.()),
  });
}

/** How long a server may take to end a body whose last event has come. */
const REST_MS = 1000;

/** Reads a body to its end, so that its connection can be used again. One that goes on after its last event is cut off. */
async function readRest(parts: AsyncIterator<Uint8Array>, stop: OpenResponse['stop']): Promise<void> {
  const late = (): void => stop(new OnpolicyError('ABORTED', 'the stream is over'));
  const timer = setTimeout(late, REST_MS);
  try {
    while (!(await parts.next()).done);
  } finally {
    clearTimeout(timer);
  }
}

function toChunk(data: string): ChatCompletionChunk {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch (error) {
    throw new OnpolicyError(
      'NETWORK_FAILED',
      `the server sent an event that is not JSON: ${messageOf(error)}`,
    );
  }
  const { error } = chunk as { error?: unknown };
  if (typeof error === 'object' && error !== null) throw fromWireError(error as Record<string, unknown>);
  return chunk as ChatCompletionChunk;
}
