/** The chunks of an answer -> the response that streams them. */
import type { AnswerStream } from '../../answer/index.ts';
import type { RequestContext } from './context.ts';
import { type EventFormat, toEventStream } from './event-stream.ts';
import type { WireResponse } from './wire.ts';

/** The response that streams the chunks of an answer. */
export function eventStreamResponse(
  chunks: AnswerStream<unknown>,
  { call, toError, beginStream }: RequestContext,
  format?: EventFormat,
): WireResponse {
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    },
    body: toEventStream(chunks, { signal: call.signal, toError, onEnd: beginStream() }, format),
  };
}
