/** Chunks of a completion -> server-sent events. Requests no chunk before the reader asks for it. */
import type { AnswerStream } from '../../answer/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { type ErrorForm, STREAM_END, toErrorBody, toWireError } from '../../wires/index.ts';

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
  /** The reader has disconnected: ends the request. */
  readonly leave: () => void;
  /** Registers the function that disconnects a reader who has stopped reading. */
  readonly onCut: (callback: (reason: unknown) => void) => void;
};

/** How the parts of an answer become events. */
export type EventFormat = {
  readonly event: (part: unknown) => string;
  /** Follows the last part; empty: nothing does. */
  readonly end: string;
  readonly failure: (error: OnpolicyError) => string;
};

/** Parts without a name, then `[DONE]`. */
const CHUNKS: EventFormat = {
  event: (part) => event(JSON.stringify(part)),
  end: event(STREAM_END),
  failure: (error) => event(JSON.stringify({ error: toWireError(error) })) + event(STREAM_END),
};

/** Events that are named by their `type`. An error is one named `error`, in the form of the endpoint. */
export function namedEvents(form: ErrorForm): EventFormat {
  const named = (type: string, part: unknown): string => `event: ${type}\n${event(JSON.stringify(part))}`;
  return {
    event: (part) => named((part as { type: string }).type, part),
    end: '',
    failure: (error) => named('error', toErrorBody(error, form).body),
  };
}

/** Makes one event per part; an error is an event, too. */
export function toEventStream(
  chunks: AnswerStream<unknown>,
  { signal, toError, onEnd, onChunk }: EventStreamHooks,
  format: EventFormat = CHUNKS,
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
        if (!done) onChunk?.(value);
        text = done ? format.end : format.event(value);
        if (done) outcome = 'complete';
      } catch (error) {
        const shown = toError(error);
        text = format.failure(shown);
        outcome = outcomeOf(shown);
      }
      isReading = false;
      if (isOver) return null; // the reader disconnected meanwhile
      if (outcome !== null) finish(outcome);
      return text || null;
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
