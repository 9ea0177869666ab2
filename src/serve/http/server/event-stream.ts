/** Chunks of a completion -> server-sent events. A chunk is requested only when the reader asks for it. */

import { OnpolicyError } from '../../../errors.ts';
import {
  EVENT_HEADERS,
  eventOf,
  failureEvents,
  IDLE_EVENT,
  type ResponseStreamEvent,
  SILENCE_MS,
  STREAM_END,
  toErrorBody,
  toWireError,
} from '../../../protocol/index.ts';
import type { AnswerStream } from '../../../protocol/service/index.ts';

/** The end of a stream. `left`: its reader disconnected. */
export type Outcome = 'complete' | 'failed' | 'left';

/** Callbacks and signal of the request that an event stream belongs to. */
export type EventStreamHooks = {
  /** Ends the request. An active reader gets the reason as an event; one that has stopped reading is disconnected. */
  readonly signal: AbortSignal;
  /** Turns an error that the chunks threw into the error to send. */
  readonly toError: (error: unknown) => OnpolicyError;
  /** Called once when the stream is over. */
  readonly onEnd: (outcome: Outcome) => void;
  /** Called with each chunk before it is sent. */
  readonly onChunk?: (chunk: unknown) => void;
};

/**
 * The events of a stream as text or bytes for the wire, for one reader. `next` must not be called again before it resolves. `return` ends
 * the request because the reader has disconnected.
 */
export type EventStream = AsyncIterableIterator<string | Uint8Array, undefined> & {
  readonly return: () => Promise<IteratorReturnResult<undefined>>;
  /** Text that is sent during silence and that readers skip. Empty if the format has none. */
  readonly idle: string;
  /** Registers the function that disconnects a reader who has stopped reading. */
  readonly onCut: (callback: (reason: unknown) => void) => void;
};

/** How the parts of an answer become events. */
export type EventFormat = {
  /** The type of the response. */
  readonly type: string;
  /** Text that is sent during silence and that readers skip. */
  readonly idle: string;
  readonly event: (part: unknown) => string | Uint8Array;
  /** Text after the last part. May be empty. */
  readonly end: string;
  /** Returns the text for an error. Null if the connection is closed instead, so that the reader sees that parts are missing. */
  readonly failure: ((error: OnpolicyError) => string) | null;
};

/** Fields that all formats of server-sent events share. Readers skip comments. */
const EVENTS = { type: EVENT_HEADERS['content-type'], idle: IDLE_EVENT };

/** Events without a name, then `[DONE]`. */
export const chunkEvents: EventFormat = {
  ...EVENTS,
  event: (part) => eventOf(JSON.stringify(part)),
  end: eventOf(STREAM_END),
  failure: failureEvents,
};

/** Events of the messages API, named by their `type`. */
export const MESSAGE_EVENTS: EventFormat = {
  ...EVENTS,
  event: (part) => named((part as { type: string }).type, part),
  end: '',
  failure: (error) => named('error', toErrorBody(error, 'messages').body),
};

/** Events of one stream of the responses API: named by their `type`, an error numbered like the others. */
export function responseEvents(): EventFormat {
  let next = 0;
  return {
    ...EVENTS,
    event: (part) => {
      const { type, sequence_number } = part as ResponseStreamEvent;
      next = sequence_number + 1;
      return named(type, part);
    },
    end: '',
    failure: (error) => {
      const shown = toWireError(error);
      const { code, message, param } = shown;
      return named('error', { type: 'error', sequence_number: next, code, message, param, error: shown });
    },
  };
}

/** One line of JSON per part. */
export const jsonLines = {
  type: 'application/x-ndjson',
  idle: ' ',
  event: (part: unknown) => `${JSON.stringify(part)}\n`,
  end: '',
  failure: (error: OnpolicyError) => `${JSON.stringify(toErrorBody(error, 'ollama').body)}\n`,
} satisfies EventFormat;

/** Bytes without any framing. */
export const BYTES: EventFormat = {
  type: 'application/octet-stream',
  idle: '',
  event: (part) => part as Uint8Array,
  end: '',
  failure: null,
};

const DONE = { done: true, value: undefined } as const;

/** An event, and the outcome of the stream if it was the last one. */
type Made = { readonly event: string | Uint8Array; readonly outcome: Outcome | null };

/** Makes one event per part, and one for an error. Sends idle events during silence. */
export function toEventStream(
  chunks: AnswerStream<unknown>,
  { signal, toError, onEnd, onChunk }: EventStreamHooks,
  format: EventFormat,
): EventStream {
  const iterator = chunks[Symbol.asyncIterator]();
  let isOver = false;
  let isMaking = false; // true while the next event is made
  let made: Made | null = null; // an event that was made while an idle event was being sent
  let give: ((event: Made['event'] | null) => void) | null = null; // gives an event to the waiting reader
  let isCut = false;
  let cut: (reason: unknown) => void = () => {};
  const onSilence = (): void => {
    const to = give;
    if (!to) return;
    give = null;
    const parts = chunks.idleParts?.() ?? []; // a caller's own service may return any iterable
    to(parts.length === 0 ? format.idle : parts.map((part) => format.event(part)).join(''));
  };
  const silence = setTimeout(onSilence, SILENCE_MS).unref();
  const finish = (outcome: Outcome): void => {
    isOver = true;
    clearTimeout(silence);
    signal.removeEventListener('abort', onAbort);
    onEnd(outcome);
  };
  /** Ends the request. A generator between two parts does what it does at its end only if it is left. */
  const stop = (): void => {
    chunks.abort();
    void (async () => await iterator.return?.())().catch(() => {});
  };
  const onAbort = (): void => {
    if (give || isOver) return; // the chunks end with the error themselves
    isCut = true;
    finish(outcomeOf(signal.reason));
    stop();
    cut(signal.reason);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  const deliver = ({ event, outcome }: Made): void => {
    const to = give!;
    give = null;
    if (isOver) return to(null); // the reader disconnected meanwhile
    if (outcome !== null) finish(outcome);
    to(event || null);
  };
  const onMade = (event: Made): void => {
    isMaking = false;
    if (give) deliver(event);
    else made = event;
  };
  const onFailure = (error: unknown): void => {
    const shown = toError(error);
    if (!format.failure) cut(shown);
    onMade({ event: format.failure?.(shown) ?? '', outcome: outcomeOf(shown) });
  };
  const onPart = ({ done, value }: IteratorResult<unknown>): void => {
    try {
      if (!done) onChunk?.(value);
      onMade(
        done ? { event: format.end, outcome: 'complete' } : { event: format.event(value), outcome: null },
      );
    } catch (error) {
      onFailure(error);
    }
  };
  const make = (): void => {
    isMaking = true;
    try {
      Promise.resolve(iterator.next()).then(onPart, onFailure);
    } catch (error) {
      onFailure(error);
    }
  };
  return {
    idle: format.idle,
    next() {
      if (isOver) return Promise.resolve(DONE);
      silence.refresh();
      return new Promise((resolve) => {
        give = (value) => resolve(value === null ? DONE : { done: false, value });
        if (made) {
          const event = made;
          made = null;
          deliver(event);
        } else if (!isMaking) make();
      });
    },
    async return() {
      if (!isOver) {
        finish('left');
        stop();
      }
      return DONE;
    },
    [Symbol.asyncIterator]() {
      return this;
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

function named(type: string, part: unknown): string {
  return `event: ${type}\n${eventOf(JSON.stringify(part))}`;
}
