/** Chunks of a completion -> server-sent events. Requests no chunk before the reader asks for it. */
import type { AnswerStream } from '../../answer/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { ResponseStreamEvent } from '../../protocol/index.ts';
import { STREAM_END, toErrorBody, toWireError } from '../../wires/index.ts';

/** How a stream ended; `left`: its reader disconnected. */
export type Outcome = 'complete' | 'failed' | 'left';

/** What an event stream needs of its request. */
export type EventStreamHooks = {
  /** Ends the request. An active reader gets the reason as an event; one that has stopped reading is disconnected. */
  readonly signal: AbortSignal;
  /** The error to send for what the chunks threw. */
  readonly toError: (error: unknown) => OnpolicyError;
  /** Called once when the stream is over. */
  readonly onEnd: (outcome: Outcome) => void;
  /** Called with each chunk before it is sent. */
  readonly onChunk?: (chunk: unknown) => void;
};

/** Events, or bytes, as they go over the wire. */
export type EventStream = {
  /** The next part; null after the last. One call at a time. */
  readonly read: () => Promise<string | Uint8Array | null>;
  /** A sign of life between events, which readers skip; empty where there is none. */
  readonly idle: string;
  /** The reader has disconnected: ends the request. */
  readonly leave: () => void;
  /** Registers the function that disconnects a reader who has stopped reading. */
  readonly onCut: (callback: (reason: unknown) => void) => void;
};

/** How the parts of an answer become events. */
export type EventFormat = {
  /** The type of the response. */
  readonly type: string;
  /** A sign of life between events, which readers skip. */
  readonly idle: string;
  readonly event: (part: unknown) => string | Uint8Array;
  /** Follows the last part; empty: nothing does. */
  readonly end: string;
  /** Null: the connection breaks, which tells a reader that parts are missing. */
  readonly failure: ((error: OnpolicyError) => string) | null;
};

/** What formats of server-sent events share; readers skip comments. */
const EVENTS = { type: 'text/event-stream; charset=utf-8', idle: ': still here\n\n' };

/** Parts without a name, then `[DONE]`. */
export const chunkEvents: EventFormat = {
  ...EVENTS,
  event: (part) => event(JSON.stringify(part)),
  end: event(STREAM_END),
  failure: (error) => event(JSON.stringify({ error: toWireError(error) })) + event(STREAM_END),
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

/** Parts as lines of JSON. */
export const jsonLines = {
  type: 'application/x-ndjson',
  idle: ' ',
  event: (part: unknown) => `${JSON.stringify(part)}\n`,
  end: '',
  failure: (error: OnpolicyError) => `${JSON.stringify(toErrorBody(error, 'ollama').body)}\n`,
} satisfies EventFormat;

/** Bytes as they are. */
export const BYTES: EventFormat = {
  type: 'application/octet-stream',
  idle: '',
  event: (part) => part as Uint8Array,
  end: '',
  failure: null,
};

/** An event, and how the stream has ended with it. */
type Made = { readonly event: string | Uint8Array; readonly outcome: Outcome | null };

/** Milliseconds of silence after which a sign of life is sent. */
const SILENCE_MS = 10_000;

/** Makes one event per part; an error is an event, too. In silence there are signs of life. */
export function toEventStream(
  chunks: AnswerStream<unknown>,
  { signal, toError, onEnd, onChunk }: EventStreamHooks,
  format: EventFormat,
): EventStream {
  const iterator = chunks[Symbol.asyncIterator]();
  let isOver = false;
  let isMaking = false; // the next event
  let made: Made | null = null; // the next event, which came while a sign of life was on its way
  let give: ((event: Made['event'] | null) => void) | null = null; // to the reader, while it waits
  let isCut = false;
  let cut: (reason: unknown) => void = () => {};
  const onSilence = (): void => {
    const to = give;
    if (!to) return;
    give = null;
    const parts = chunks.idleParts?.() ?? []; // a service of the caller's may give any iterable
    to(parts.length === 0 ? format.idle : parts.map((part) => format.event(part)).join(''));
  };
  const silence = setTimeout(onSilence, SILENCE_MS).unref();
  const finish = (outcome: Outcome): void => {
    isOver = true;
    clearTimeout(silence);
    signal.removeEventListener('abort', onAbort);
    onEnd(outcome);
  };
  const onAbort = (): void => {
    if (give || isOver) return; // the chunks themselves will end with the error
    isCut = true;
    finish(outcomeOf(signal.reason));
    chunks.abort();
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
    read() {
      if (isOver) return Promise.resolve(null);
      silence.refresh();
      return new Promise((resolve) => {
        give = resolve;
        if (made) {
          const event = made;
          made = null;
          deliver(event);
        } else if (!isMaking) make();
      });
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

function named(type: string, part: unknown): string {
  return `event: ${type}\n${event(JSON.stringify(part))}`;
}

function event(data: string): string {
  return `data: ${data}\n\n`;
}
