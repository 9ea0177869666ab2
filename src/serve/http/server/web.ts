/** The response of an endpoint -> a standard `Response`. */
import type { EventStream } from './event-stream.ts';
import type { ServedResponse } from './wire.ts';

/** Returns an answer as a standard response, without its body for `HEAD`. */
export function toResponse({ status, headers, body }: ServedResponse, method: string): Response {
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
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value);
      },
      cancel: async () => void (await events.return()),
    },
    { highWaterMark: 0 },
  );
}
