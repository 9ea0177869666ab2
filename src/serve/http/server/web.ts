/** Standard `Request` and `Response` <-> requests and responses of the endpoints. */
import type { EventStream } from './event-stream.ts';
import type { WireBody, WireRequest, WireResponse } from './wire.ts';

/** Wraps a standard request for the endpoints. */
export function fromRequest(request: Request): WireRequest {
  const { method, headers, signal } = request;
  return {
    method,
    url: new URL(request.url),
    header: (name) => headers.get(name),
    body: bodyOf(request),
    address: undefined,
    onLeave: (callback) => {
      signal.addEventListener('abort', callback, { once: true });
      if (signal.aborted) callback();
      return () => signal.removeEventListener('abort', callback);
    },
  };
}

function bodyOf({ body }: Request): WireBody {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  return {
    read: async (onPart) => {
      if (!body) return;
      reader = body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) onPart(part.value);
    },
    parts: async function* () {
      if (body) yield* body;
    },
    stop: () => void reader?.cancel().catch(() => {}),
  };
}

/** Returns an answer as a standard response, without its body for `HEAD`. */
export function toResponse({ status, headers, body }: WireResponse, method: string): Response {
  if (method === 'HEAD') return new Response(null, { status, headers });
  const content = typeof body === 'string' ? body || null : toStream(body);
  return new Response(content, { status, headers });
}

/** Returns a stream that reads an event only when its reader asks for it. */
function toStream(events: EventStream): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      start: (controller) => events.onCut((reason) => controller.error(reason)),
      pull: async (controller) => {
        const part = await events.read();
        if (part === null) controller.close();
        else controller.enqueue(typeof part === 'string' ? encoder.encode(part) : part);
      },
      cancel: () => events.leave(),
    },
    { highWaterMark: 0 },
  );
}
