/** Chunks of a completion <-> server-sent events. Nothing is made before the reader asks for it. */
import { createParser } from 'eventsource-parser';
import { messageOf, OnpolicyError } from '../errors.ts';
import type { ChatCompletionChunk } from '../protocol/index.ts';
import type { ChatCompletionStream } from '../stream.ts';
import { fromWireError, toWireError } from './wire-errors.ts';

const END = '[DONE]';
const encoder = new TextEncoder();

/** What an event stream tells of itself. */
export type EventStreamHooks = {
  /** Ends the request when it fires: a reader hears the reason as an event, one who has stopped reading is cut off. */
  readonly signal: AbortSignal;
  /** What to send for an error. */
  readonly toError: (error: unknown) => OnpolicyError;
  /** The stream is over, whichever way. */
  readonly onEnd: (outcome: 'complete' | 'failed' | 'left') => void;
};

/** Chunks -> events: one each, then `[DONE]`; an error is an event, too. Cancelling ends the request. */
export function toEventStream(
  chunks: ChatCompletionStream,
  { signal, toError, onEnd }: EventStreamHooks,
): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  let isOver = false;
  let isPulling = false;
  let onAbort = (): void => {};
  const finish = (outcome: 'complete' | 'failed' | 'left'): void => {
    isOver = true;
    signal.removeEventListener('abort', onAbort);
    onEnd(outcome);
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onAbort = () => {
          if (isPulling || isOver) return; // the chunks themselves will end with the error
          finish('failed');
          chunks.abort();
          controller.error(signal.reason);
        };
        signal.addEventListener('abort', onAbort);
        if (signal.aborted) onAbort();
      },
      async pull(controller) {
        isPulling = true;
        let text: string;
        let outcome: 'complete' | 'failed' | null = null;
        try {
          const { done, value } = await iterator.next();
          text = done ? event(END) : event(JSON.stringify(value));
          if (done) outcome = 'complete';
        } catch (error) {
          text = event(JSON.stringify({ error: toWireError(toError(error)) })) + event(END);
          outcome = 'failed';
        }
        isPulling = false;
        if (isOver) return;
        controller.enqueue(encoder.encode(text));
        if (outcome === null) return;
        finish(outcome);
        controller.close();
      },
      cancel() {
        if (isOver) return;
        finish('left');
        chunks.abort();
      },
    },
    { highWaterMark: 0 },
  );
}

function event(data: string): string {
  return `data: ${data}\n\n`;
}

/**
 * Events -> chunks. Throws what an event or the stream itself says went wrong; a stream without its end is broken. `cut`
 * ends a body that goes on after its last event.
 */
export async function* fromEventStream(
  body: AsyncIterable<Uint8Array>,
  cut: () => void,
): AsyncGenerator<ChatCompletionChunk> {
  let ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => ready.push(data) });
  const decoder = new TextDecoder();
  const parts = body[Symbol.asyncIterator]();
  let hasEnded = false;
  try {
    for (;;) {
      const { done, value } = await parts.next();
      if (done) throw new OnpolicyError('NETWORK_FAILED', 'the stream broke off before its end');
      parser.feed(decoder.decode(value, { stream: true }));
      const events = ready;
      ready = [];
      for (const data of events) {
        hasEnded = data === END;
        if (hasEnded) return;
        yield toChunk(data);
      }
    }
  } finally {
    void (hasEnded ? readRest(parts, cut) : Promise.resolve(parts.return?.())).catch(() => {});
  }
}

/** How long a server may take to end a body whose last event has come. */
const REST_MS = 1000;

/** Reads a body to its end, so that its connection can be used again. */
async function readRest(parts: AsyncIterator<Uint8Array>, cut: () => void): Promise<void> {
  const timer = setTimeout(cut, REST_MS);
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
